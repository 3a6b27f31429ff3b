"""How the guidance of each project stands, in which nothing grows with the number of changes; and what may be recorded about
it: whoever comes second with the same change is refused, and looks again."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pulse_core.capability import Check
from pulse_core.guidance.events import (
    GuidanceAcknowledged,
    GuidanceChanged,
    GuidanceImported,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
)
from pulse_core.guidance.protocol import FILES, INVALIDATING, Change, ChangeKind, time_of
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.payload import Role, decode_plain
from pulse_core.model.text import count
from pulse_core.projections.state import Snapshot, State, StateProjection
from pulse_core.settings.settings import Settings

RECENT = 20
FEW = 20
"""Projects up to which they are stored with each tick that emitted effects."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What was acknowledged last: a change, and the plan of that moment. at: UTC microseconds; None: nobody noted when."""

    id: str
    plan_sha256: str | None
    at: int | None


@dataclass(frozen=True, slots=True)
class GuidedProject:
    """One project. initialized_at: UTC microseconds, 0 until its import has ended; hashes: of each file; last: the number of
    each file's last change; count: of all changes; recent: the last of them, oldest first; pending: the files that wait
    for an acknowledgement, in the order in which they began to, with the number of their last change; pending_id, and
    since when (UTC microseconds): of the newest of these changes; imports: events that hold imported ones."""

    initialized_at: int = 0
    hashes: Mapping[str, str | None] = field(default_factory=lambda: dict.fromkeys(FILES))
    last: Mapping[str, int] = field(default_factory=dict)
    count: int = 0
    recent: tuple[Change, ...] = ()
    pending: Mapping[str, int] = field(default_factory=dict)
    pending_id: str | None = None
    pending_since: int = 0
    acknowledged: Acknowledgement | None = None
    is_watched: bool = False
    imports: int = 0

    @property
    def latest_at(self) -> int:
        """The time in the id of the last change (UTC microseconds); 0 if there is none, or none before the year 6536."""
        at = (time_of(self.recent[-1].id) or self.recent[-1].at) if self.recent else 0
        return at if at < 1 << 57 else 0  # what another program has recorded may leave no later time

    def after_changes(self, *changes: Change) -> "GuidedProject":
        """It after more changes, of which there is at least one."""
        pending, pending_id, since = dict(self.pending), self.pending_id, self.pending_since
        hashes, last = dict(self.hashes), dict(self.last)
        for number, id_, at, _, file, sha256, _ in changes:
            hashes[file], last[file] = sha256, number
            if file in INVALIDATING:
                pending[file], pending_id, since = number, id_, at
        return replace(
            self,
            hashes=hashes,
            last=last,
            count=changes[-1].number,
            recent=(*self.recent, *changes)[-RECENT:],
            pending=pending,
            pending_id=pending_id,
            pending_since=since,
        )

    def after_acknowledgement(self, acknowledgement: Acknowledgement) -> "GuidedProject":
        """It after the newest pending change, and so all of them, was acknowledged."""
        return replace(self, acknowledged=acknowledgement, pending={}, pending_id=None, pending_since=0)


@dataclass(frozen=True, slots=True)
class Guidance:
    """Projects by their roots."""

    projects: Mapping[str, GuidedProject] = field(default_factory=dict)

    @property
    def watched(self) -> Mapping[str, GuidedProject]:
        """Those that the daemon looks at."""
        return {root: one for root, one in self.projects.items() if one.is_watched}

    def known(self, root: str) -> GuidedProject:
        """The project; raises Refused if nobody has added it."""
        project = self.projects.get(root)
        if project is None or not project.initialized_at:
            raise Refused(f"{root} is no project with guidance; add it with: upulse guidance add {root}")
        return project


def after(state: Guidance, events: Iterable[Event]) -> Guidance:
    """The guidance after more events; those of other kinds are passed over."""
    projects: dict[str, GuidedProject] | None = None
    for event in events:
        if event.kind not in _ACTS:
            continue
        if projects is None:
            projects = dict(state.projects)
        project = projects.get(event.subject, GuidedProject())
        changed = _ACTS[event.kind](project, event, decode_plain(event.data))
        if changed is not project:
            projects[event.subject] = changed
    return state if projects is None else Guidance(projects)


def changes_in(event: Event) -> Iterator[Change]:
    """The changes that an event tells of."""
    data = decode_plain(event.data)
    if event.kind == GuidanceChanged.kind and data:
        at, id_ = time_of(data["event_id"]) or event.at, data["event_id"]
        values = data["change"], data["file"], data.get("sha256"), data.get("size")
        yield Change(data["number"], id_, at, *values)
    elif event.kind == GuidanceImported.kind and data:
        for place, row in enumerate(data["changes"]):
            yield Change(data["number"] + place, *row)


def _changed(project: GuidedProject, event: Event, data: Mapping[str, Any]) -> GuidedProject:
    is_import = event.kind == GuidanceImported.kind
    if is_import == bool(project.initialized_at) or data.get("number", 0) <= project.count:
        return project  # a gap is what was redacted
    project = replace(project.after_changes(*changes_in(event)), imports=project.imports + is_import)
    if data.get("event_id", "") != project.pending_id:
        return project
    return replace(project, pending_since=event.at)  # the times in ids only grow, whatever a clock has shown


def _initialized(project: GuidedProject, event: Event, data: Mapping[str, Any]) -> GuidedProject:
    if project.initialized_at or not data:
        return project
    hashes = {name: data["hashes"].get(name) for name in FILES}
    project = replace(project, initialized_at=data.get("initialized_at") or event.at, hashes=hashes)
    if not (id_ := data.get("acknowledged")):
        return project
    acknowledged = Acknowledgement(id_, data.get("acknowledged_plan"), data.get("acknowledged_at"))
    upto = data.get("acknowledged_number", 0)
    if left := {name: number for name, number in project.pending.items() if number > upto}:
        return replace(project, acknowledged=acknowledged, pending=left)
    return project.after_acknowledgement(acknowledged)


def _acknowledged(project: GuidedProject, event: Event, data: Mapping[str, Any]) -> GuidedProject:
    if (id_ := data.get("event_id")) is None or id_ != project.pending_id:
        return project
    return project.after_acknowledgement(Acknowledgement(id_, data.get("plan_sha256"), event.at))


def _watched(project: GuidedProject, event: Event, data: Mapping[str, Any]) -> GuidedProject:
    return replace(project, is_watched=event.kind == GuidanceWatched.kind)


_ACTS = {
    GuidanceImported.kind: _changed,
    GuidanceInitialized.kind: _initialized,
    GuidanceChanged.kind: _changed,
    GuidanceAcknowledged.kind: _acknowledged,
    GuidanceWatched.kind: _watched,
    GuidanceUnwatched.kind: _watched,
}

GUIDANCE = StateProjection(
    "pending-guidance", 3, Guidance, frozenset(_ACTS), after, lambda state: len(state.projects) <= FEW
)


def lines(curr: Snapshot) -> Iterator[str]:
    """How many projects are looked at, and in which an agent has to replan."""
    if watched := curr.of(GUIDANCE).watched:
        pending = [root for root, one in watched.items() if one.pending]
        words = "with changes that no agent has acknowledged"
        waits = f", {len(pending)} {words}: {', '.join(pending)}" if pending else ""
        yield f"guidance  {count(len(watched), 'project')}{waits}"


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
