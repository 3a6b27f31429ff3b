"""Indexes that don't agree with the rows: it is said, found all the same, and mended."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.verify import INDEX_FAULT, verify
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Paused
from pulse_core.ports.readers import EventQuery
from tests.integration.sqlite.conftest import Open

INDEX_LEAF = 0x0A
PAGE = 4096
SUBJECTS = ("gateway", "worker")


async def filled(open_log: Open) -> Sequence[Event]:
    async with open_log() as log:
        return await log.append(*(Draft(Paused(), subject=SUBJECTS[n % 2]) for n in range(40)))


def flip_in_index(path: Path, text: str) -> None:
    """Flip a bit of the last place in a leaf of an index where this text stands."""
    raw = bytearray(path.read_bytes())
    places = [
        place
        for start in range(0, len(raw), PAGE)
        if raw[start] == INDEX_LEAF and (place := raw.find(text.encode(), start, start + PAGE)) >= 0
    ]
    raw[places[-1] + 1] ^= 1
    path.write_bytes(raw)


def without_rows_in_index(path: Path, name: str) -> None:
    """Have an index lack all rows, as one does whose root was written over by an empty page."""
    with closing(sqlite3.connect(path)) as hand:
        root = hand.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    raw = bytearray(path.read_bytes())
    start = (root - 1) * PAGE
    raw[start : start + PAGE] = bytes([INDEX_LEAF, 0, 0, 0, 0, 0x10, 0, 0]) + bytes(PAGE - 8)
    path.write_bytes(raw)


@pytest.mark.parametrize("what", ["subject", "id"])
async def test_an_entry_that_was_altered_is_said(tmp_path: Path, open_log: Open, what: str) -> None:
    events = await filled(open_log)
    path = tmp_path / "events.db"
    flip_in_index(path, events[7].subject if what == "subject" else events[7].id)
    verdict = verify(path, tmp_path / "objects")
    assert verdict.fault.startswith(INDEX_FAULT)
    assert verdict.rows == 40


async def test_an_event_is_found_by_its_id_without_its_entry(tmp_path: Path, open_log: Open) -> None:
    event = (await filled(open_log))[7]
    flip_in_index(tmp_path / "events.db", event.id)
    with SqliteEventReader(tmp_path) as reader:
        assert reader.event(event.id) == event


@pytest.mark.parametrize("limit", [None, 3])
async def test_an_index_without_rows_hides_none(tmp_path: Path, open_log: Open, limit: int | None) -> None:
    events = [event for event in await filled(open_log) if event.subject == "gateway"]
    without_rows_in_index(tmp_path / "events.db", "event_subject")
    with SqliteEventReader(tmp_path) as reader:
        found = list(reader.events(EventQuery(subject="gateway"), limit=limit))
        assert found == events[:limit]
        assert list(reader.events(EventQuery(subject="gateway", kinds=("paused",)), limit=limit)) == found
        assert list(reader.events(EventQuery(subject="nobody"))) == []


async def test_accepting_the_damage_makes_the_indexes_anew(tmp_path: Path, open_log: Open) -> None:
    await filled(open_log)
    path = tmp_path / "events.db"
    without_rows_in_index(path, "event_subject")
    assert verify(path, tmp_path / "objects").fault.startswith(INDEX_FAULT)
    async with open_log(how=Opening(accept_damage=True)):
        pass
    assert verify(path, tmp_path / "objects").fault == ""
