"""`state.json` and `events.jsonl` as other tools read and write them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pydantic import OnErrorOmit, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from pulse_core.guidance.events import (
    MOST_IMPORTED,
    File,
    GuidanceImported,
    GuidanceInitialized,
    ImportedChange,
    OldEventId,
    Sha256,
)
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import FILES, FOLDER
from pulse_core.model.moment import EPOCH, iso

SCHEMA = 2
_CHANGE: TypeAdapter[ImportedChange] = TypeAdapter(ImportedChange)


class EarlierState(TypedDict, total=False):
    """What is used of another program's `state.json`; what does not fit counts as missing."""

    last_hashes: OnErrorOmit[dict[OnErrorOmit[File], OnErrorOmit[Sha256 | None]]]
    initialized_at: Any
    last_acknowledged_event_id: OnErrorOmit[OldEventId]
    last_acknowledged_plan_sha256: OnErrorOmit[Sha256]
    last_acknowledged_at: Any


_STATE: TypeAdapter[EarlierState] = TypeAdapter(EarlierState)


def state_text(root: str, project: GuidedProject) -> str:
    """The text of `state.json`."""
    last = project.acknowledged
    said = {
        "schema_version": SCHEMA,
        "project_root": root,
        "initialized_at": iso(project.initialized_at),
        "last_hashes": {name: project.hashes.get(name) for name in FILES},
        "last_acknowledged_event_id": last.id if last else None,
        "last_acknowledged_plan_sha256": last.plan_sha256 if last else None,
        "last_acknowledged_at": iso(last.at) if last and last.at is not None else None,
    }
    return json.dumps(said, indent=2, sort_keys=True) + "\n"


class EarlierRecord(NamedTuple):
    """What another program has left: its changes, oldest first, and how the project begins after them; and how many lines
    could not be read."""

    changes: Sequence[ImportedChange]
    initialized: GuidanceInitialized
    unread: int


def read_earlier(state: bytes | None, events: Iterable[bytes], now: dict[str, str | None]) -> EarlierRecord:
    """What there is in these files. now: the hashes of the four files, the baseline for what the record doesn't know."""
    changes, unread = [], 0
    for line in events:
        if change := _read_line(line):
            changes.append(change)
        elif line.strip():
            unread += 1
    said = _STATE.validate_python(_read_object(state))
    recorded = said.get("last_hashes", {change.file: change.sha256 for change in changes})
    initialized = GuidanceInitialized(
        hashes={**now, **recorded}, initialized_at=_microseconds(said.get("initialized_at"))
    )
    if acknowledged := said.get("last_acknowledged_event_id"):
        places = {change.id: number for number, change in enumerate(changes, 1)}
        values = {
            "acknowledged": acknowledged,
            "acknowledged_number": places.get(acknowledged, 0),
            "acknowledged_plan": said.get("last_acknowledged_plan_sha256"),
            "acknowledged_at": _microseconds(said.get("last_acknowledged_at")),
        }
        initialized = initialized.model_copy(update=values)
    return EarlierRecord(changes, initialized, unread)


def imports(changes: Sequence[ImportedChange], known: int) -> Iterator[GuidanceImported]:
    """What is to be recorded of them if the first ones are recorded already. known: how many."""
    for begin in range(known, len(changes), MOST_IMPORTED):
        yield GuidanceImported(number=begin + 1, changes=tuple(changes[begin : begin + MOST_IMPORTED]))


def _read_line(line: bytes) -> ImportedChange | None:
    row = _read_object(line)
    path, at = row.get("path"), _microseconds(row.get("timestamp"))
    if not isinstance(path, str) or at is None or not path.startswith(f"{FOLDER}/"):
        return None
    values = (row.get("id"), at, row.get("kind"), path[len(FOLDER) + 1 :], row.get("sha256"), row.get("size"))
    try:
        return _CHANGE.validate_python(values)
    except ValidationError:
        return None


def _read_object(text: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(text or b"")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _microseconds(text: object) -> int | None:
    """A time in ISO 8601 as UTC microseconds; None if it is none, or lies before 1970."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        found = (moment - EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return found if found >= 0 else None
