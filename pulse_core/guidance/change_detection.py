"""What a look at a project's files says: one function for the daemon's watcher and for every call of an agent."""

from collections.abc import Mapping
from typing import NamedTuple

from pulse_core.guidance.events import GuidanceChanged
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import FILES, Change, ChangeKind, make_event_id, row_id
from pulse_core.model.event import Draft


class FileObservation(NamedTuple):
    """The bytes of a file as they were read at once: their hash and number. None and 0: there is no such file."""

    sha256: str | None = None
    size: int = 0


def next_change(
    root: str, project: GuidedProject, seen: Mapping[str, FileObservation], now: int, digits: str
) -> tuple[Draft, GuidedProject] | None:
    """The event of the first difference between what is recorded and what was seen, and the project after it.

    What was seen is compared with nothing newer: the next difference is one to that project, and whoever was quicker is
    noticed by the number. now: UTC microseconds; digits: eight random ones, hexadecimal. The times in ids of a project only
    grow.
    """
    for name in FILES:
        before, found = project.hashes.get(name), seen[name]
        if found.sha256 == before:
            continue
        kind = ChangeKind.of(before, found.sha256)
        at = max(now, project.latest_at + 1)
        size = None if found.sha256 is None else found.size
        change = Change(project.count + 1, make_event_id(at, digits), at, kind, name, found.sha256, size)
        payload = GuidanceChanged(
            number=change.number, event_id=change.id, change=kind, file=name, sha256=found.sha256, size=size
        )
        return Draft(payload, root, id=row_id(root, change.id)), project.after_changes(change)
    return None
