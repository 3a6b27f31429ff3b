"""What reading a home promises, on the files of a home."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.model.errors import Ambiguous, UnknownName
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Paused, Resumed
from pulse_core.model.vitals import MinuteRange
from pulse_core.ports.log import EventLog
from pulse_core.ports.readers import EventQuery, EventReader, ObjectReader, VitalsReader
from pulse_core.ports.stores import Objects, Vitals
from tests.contract.conftest import SteppingClock
from tests.contract.test_stores_vitals import at, tick

MINUTE_US = 60_000_000


class ReadLog(NamedTuple):
    """A log and how it is read."""

    log: EventLog
    reader: Callable[[], AbstractContextManager[EventReader]]


class ReadVitals(NamedTuple):
    """Vitals and how they are read."""

    vitals: Vitals
    reader: Callable[[], AbstractContextManager[VitalsReader]]


class ReadObjects(NamedTuple):
    """Objects and how they are read."""

    objects: Objects
    reader: ObjectReader


@pytest.fixture
async def read_log(tmp_path: Path) -> AsyncIterator[ReadLog]:
    objects = FileObjects(tmp_path / "objects")
    async with SqliteEventLog.open(tmp_path / "events.db", clock=SteppingClock(), objects=objects) as log:
        yield ReadLog(log, lambda: SqliteEventReader(tmp_path))


@pytest.fixture
async def read_vitals(tmp_path: Path) -> AsyncIterator[ReadVitals]:
    async with SqliteVitals.open(tmp_path / "vitals.db") as vitals:
        yield ReadVitals(vitals, lambda: SqliteVitalsReader(tmp_path))


@pytest.fixture
def read_objects(tmp_path: Path) -> ReadObjects:
    files = FileObjects(tmp_path / "objects")
    return ReadObjects(files, files)


async def written(log: EventLog) -> list[Event]:
    """Four events: paused, resumed, paused, resumed, about two subjects."""
    drafts = [
        Draft(kind(why=str(number)), f"s{number % 2}") for number, kind in enumerate((Paused, Resumed) * 2)
    ]
    return [(await log.append(draft))[0] for draft in drafts]


async def test_an_empty_log_is_read_as_empty(read_log: ReadLog) -> None:
    with read_log.reader() as reader:
        assert (reader.head(), list(reader.events())) == (read_log.log.head, [])
        assert reader.last_before(1 << 62) is None
        assert (reader.chain_at(0), reader.chain_at(1)) == (bytes(32), None)


async def test_events_are_read_as_they_were_recorded(read_log: ReadLog) -> None:
    events = await written(read_log.log)
    with read_log.reader() as reader:
        assert list(reader.events()) == events
        assert list(reader.events(newest_first=True)) == events[::-1]
        assert list(reader.events(limit=2, newest_first=True)) == events[:1:-1]
        assert reader.head() == read_log.log.head
        assert reader.chain_at(4) == read_log.log.head.chain


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (EventQuery(since_seq=2), [3, 4]),
        (EventQuery(kinds=("paused",)), [1, 3]),
        (EventQuery(subject="s1"), [2, 4]),
        (EventQuery(since_seq=1, kinds=("resumed", "effect"), subject="s1"), [2, 4]),
        (EventQuery(subject="nobody"), []),
    ],
)
async def test_a_query_says_which_events(read_log: ReadLog, query: EventQuery, rows: list[int]) -> None:
    await written(read_log.log)
    with read_log.reader() as reader:
        assert [event.seq for event in reader.events(query)] == rows


async def test_events_are_found_by_time(read_log: ReadLog) -> None:
    events = await written(read_log.log)
    with read_log.reader() as reader:
        assert list(reader.events(EventQuery(since_at=events[2].at))) == events[2:]
        assert reader.last_before(events[1].at) == events[1]
        assert reader.last_before(events[1].at + 1) == events[1]
        assert reader.last_before(events[0].at - 1) is None


async def test_an_event_is_found_by_its_id_or_the_beginning_of_it(read_log: ReadLog) -> None:
    log = read_log.log
    ids = [f"0190a000-0000-7000-8000-00000000000{number}" for number in range(2)]
    events = [(await log.append(Draft(Paused(), id=id_)))[0] for id_ in ids]
    with read_log.reader() as reader:
        assert reader.event(ids[1]) == events[1]
        with pytest.raises(Ambiguous):
            reader.event(ids[0][:-1])
        assert reader.event("…0000000001") == events[1]
        for unknown in ("", "f", "…", "…7"):
            with pytest.raises(UnknownName):
                reader.event(unknown)


async def test_samples_are_read_by_key_time_and_id(read_vitals: ReadVitals) -> None:
    vitals = read_vitals.vitals
    samples = [vitals.sample(key, at(second), {"x": second}) for second in (1, 2) for key in ("a", "b")]
    await vitals.flush()
    with read_vitals.reader() as reader:
        assert reader.last_samples() == samples[2:]
        assert reader.samples([samples[3].id, samples[0].id, 99]) == [samples[0], samples[3]]
        assert reader.between(at(1).at, at(2).at) == samples[2:]
        assert reader.between(0, at(2).at, "a") == [samples[0], samples[2]]
        assert reader.oldest_sample() == at(1).at
        assert reader.sample_keys() == ["a", "b"]


async def test_what_is_rolled_up_is_read_as_ranges_of_minutes(read_vitals: ReadVitals) -> None:
    vitals = read_vitals.vitals
    for second, value in ((1, 1), (2, 3), (61, 8), (121, 5)):
        vitals.sample("k", at(second), {"x": value})
    await vitals.trim(at(120).at)
    with read_vitals.reader() as reader:
        each = [MinuteRange("x", 0, 1, 2, 3), MinuteRange("x", MINUTE_US, 8, 8, 8)]
        assert reader.minute_ranges("k", 0, at(300).at) == each
        assert reader.minute_ranges("k", 1, at(300).at) == each[1:]
        assert reader.minute_ranges("k", 0, at(300).at, 5) == [MinuteRange("x", 0, 1, 4, 8)]
        assert reader.minute_ranges("other", 0, at(300).at) == []
        assert (reader.oldest_sample(), reader.sample_keys()) == (at(121).at, ["k"])


async def test_ticks_are_read_by_number_and_time(read_vitals: ReadVitals) -> None:
    ticks = [replace(tick(number), snapshot="abc" if number == 2 else None) for number in range(1, 5)]
    for one in ticks:
        read_vitals.vitals.record(one)
    await read_vitals.vitals.flush()
    with read_vitals.reader() as reader:
        assert (reader.tick(2), reader.tick(9), reader.tick_count()) == (ticks[1], None, 4)
        assert reader.ticks(2) == [ticks[3], ticks[2]]
        assert reader.ticks_since(at(2).at) == ticks[2:]
        assert reader.ticks_after(1, 2) == ticks[1:3]
        assert (reader.tick_before(at(3).at), reader.tick_before(0)) == (ticks[2], None)
        assert (reader.snapshot_before(at(9).at), reader.snapshot_before(at(1).at)) == ("abc", None)
        assert list(reader.layers_since(at(3).at)) == [(ticks[3].took_us, ticks[3].layers)]


async def test_no_vitals_are_read_as_nothing(read_vitals: ReadVitals) -> None:
    with read_vitals.reader() as reader:
        assert (reader.last_samples(), reader.ticks(5), reader.sample_keys()) == ([], [], [])
        assert (reader.tick_count(), reader.oldest_sample()) == (0, 0)


async def test_objects_are_read_by_their_name(read_objects: ReadObjects) -> None:
    name = await read_objects.objects.put(b"blob")
    assert (read_objects.reader.read(name), read_objects.reader.exists(name)) == (b"blob", True)
    assert (read_objects.reader.read("0" * 64), read_objects.reader.exists("0" * 64)) == (None, False)
    assert (read_objects.reader.read("../x"), read_objects.reader.exists("../x")) == (None, False)
