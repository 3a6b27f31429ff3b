"""What may be recorded about guidance: whoever comes second with the same change is refused, and looks again."""

from collections.abc import Mapping

from pulse_core.capability import Check
from pulse_core.guidance.events import (
    GuidanceAcknowledged,
    GuidanceChanged,
    GuidanceImported,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
)
from pulse_core.guidance.projection import GUIDANCE, GuidedProject
from pulse_core.guidance.protocol import ChangeKind
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.payload import Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings

MOST = 200
"""Projects that may be known."""


class Superseded(Refused):
    """Somebody else has recorded something about this project meanwhile; look at it again."""


def check_import(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse changes that were imported already, or come too late."""
    project = state.of(GUIDANCE).projects.get(draft.subject)
    if project is None and len(state.of(GUIDANCE).projects) >= MOST:
        raise Refused(f"{MOST} projects have guidance already")
    project = project or GuidedProject()
    payload = draft.payload
    if project.initialized_at:
        raise Superseded(f"{draft.subject} is known already")
    if isinstance(payload, GuidanceImported) and payload.number != project.count + 1:
        raise Superseded(f"change {payload.number} of {draft.subject} was imported already")
    if isinstance(payload, GuidanceInitialized) and not draft.subject.startswith("/"):
        raise Refused(f"{draft.subject!r} is no absolute path of a project")


def check_change(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a change that is not the next one of its project, and one that changes nothing."""
    project, change = state.of(GUIDANCE).known(draft.subject), draft.payload
    assert isinstance(change, GuidanceChanged)
    if change.number != project.count + 1:
        raise Superseded(f"change {change.number} of {draft.subject} was recorded already")
    before = project.hashes[change.file]
    if before == change.sha256 or change.change is not ChangeKind.of(before, change.sha256):
        raise Refused(f"{change.file} of {draft.subject} was not {change.change}")


def check_acknowledgement(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse to acknowledge anything but the newest change that waits for it."""
    project, said = state.of(GUIDANCE).known(draft.subject), draft.payload
    assert isinstance(said, GuidanceAcknowledged)
    if said.event_id != project.pending_id:
        raise Superseded(f"{said.event_id} is not what waits for an acknowledgement in {draft.subject}")


def check_known(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse what is about a project that nobody has added."""
    state.of(GUIDANCE).known(draft.subject)


ADMITS: Mapping[str, Check] = {
    GuidanceImported.kind: check_import,
    GuidanceInitialized.kind: check_import,
    GuidanceChanged.kind: check_change,
    GuidanceAcknowledged.kind: check_acknowledgement,
    GuidanceWatched.kind: check_known,
    GuidanceUnwatched.kind: check_known,
}
