"""`state.json` and `events.jsonl` as other tools read and write them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple, NotRequired

from pydantic import BeforeValidator, Field, OnErrorOmit, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from pulse_core.guidance.events import (
    MOST_IMPORTED,
    File,
    GuidanceImported,
    GuidanceInitialized,
    ImportedChange,
    OldEventId,
    Sha256,
    Time,
)
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import FILES, FOLDER, ChangeKind
from pulse_core.model.moment import EPOCH, iso

SCHEMA = 2


def _microseconds(text: object) -> int:
    """A time in ISO 8601 as UTC microseconds; raises ValueError if it is none."""
    moment = datetime.fromisoformat(str(text))
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


WrittenTime = Annotated[Time, BeforeValidator(_microseconds)]


class EarlierLine(TypedDict):
    """A line of another program's `events.jsonl`."""

    id: OldEventId
    timestamp: WrittenTime
    kind: ChangeKind
    path: Annotated[File, BeforeValidator(lambda path: str(path).removeprefix(f"{FOLDER}/"))]
    sha256: NotRequired[Sha256 | None]
    size: NotRequired[Annotated[int, Field(ge=0)] | None]


class EarlierState(TypedDict, total=False):
    """What is used of another program's `state.json`; what does not fit counts as missing."""

    last_hashes: OnErrorOmit[dict[OnErrorOmit[File], OnErrorOmit[Sha256 | None]]]
    initialized_at: OnErrorOmit[WrittenTime]
    last_acknowledged_event_id: OnErrorOmit[OldEventId]
    last_acknowledged_plan_sha256: OnErrorOmit[Sha256]
    last_acknowledged_at: OnErrorOmit[WrittenTime]


_LINE: TypeAdapter[EarlierLine] = TypeAdapter(EarlierLine)
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
        try:
            row = _LINE.validate_json(line)
        except ValidationError:
            unread += bool(line.strip())
            continue
        change = row["id"], row["timestamp"], row["kind"], row["path"], row.get("sha256"), row.get("size")
        changes.append(ImportedChange(*change))
    try:
        said = _STATE.validate_json(state or b"{}")
    except ValidationError:
        said = {}
    recorded = said.get("last_hashes", {change.file: change.sha256 for change in changes})
    acknowledged = said.get("last_acknowledged_event_id")
    places = {change.id: number for number, change in enumerate(changes, 1)}
    initialized = GuidanceInitialized(
        hashes={**now, **recorded},
        initialized_at=said.get("initialized_at"),
        acknowledged=acknowledged,
        acknowledged_number=places.get(acknowledged or "", 0),
        acknowledged_plan=said.get("last_acknowledged_plan_sha256"),
        acknowledged_at=said.get("last_acknowledged_at"),
    )
    return EarlierRecord(changes, initialized, unread)


def imports(changes: Sequence[ImportedChange], known: int) -> Iterator[GuidanceImported]:
    """What is to be recorded of them if the first ones are recorded already. known: how many."""
    for begin in range(known, len(changes), MOST_IMPORTED):
        yield GuidanceImported(number=begin + 1, changes=tuple(changes[begin : begin + MOST_IMPORTED]))
