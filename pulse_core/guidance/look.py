"""What a look at a project's files says: one function for the daemon's watcher and for every call of an agent."""

from collections.abc import Mapping
from typing import NamedTuple

from pulse_core.guidance.events import GuidanceChanged
from pulse_core.guidance.projection import Project
from pulse_core.guidance.protocol import FILES, ChangeKind, make_event_id, row_id
from pulse_core.model.event import Draft


class FileObservation(NamedTuple):
    """The bytes of a file as they were read at once: their hash and number. None and 0: there is no such file."""

    sha256: str | None = None
    size: int = 0


def next_change(
    root: str, project: Project, seen: Mapping[str, FileObservation], now: int, digits: str
) -> Draft | None:
    """The first difference between what is recorded and what was seen, as an event to record; None if there is none.

    now: UTC microseconds; digits: eight random ones, hexadecimal. The times in ids of a project only grow.
    """
    for name in FILES:
        before, found = project.hashes.get(name), seen[name]
        if found.sha256 == before:
            continue
        kind = ChangeKind.MODIFIED
        if found.sha256 is None:
            kind = ChangeKind.DELETED
        elif before is None:
            kind = ChangeKind.CREATED
        id_ = make_event_id(max(now, project.latest_at + 1), digits)
        payload = GuidanceChanged(
            number=project.count + 1,
            event_id=id_,
            change=kind,
            file=name,
            sha256=found.sha256,
            size=None if found.sha256 is None else found.size,
        )
        return Draft(payload, root, id=row_id(root, id_))
    return None
