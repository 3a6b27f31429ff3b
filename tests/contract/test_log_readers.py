"""What every reader of logs promises."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.memory.logs import MemoryLogs
from pulse_core.ports.logs import LogBatch, LogFollower, Place, ReadProgress
from pulse_core.settings.logs import LogSettings


@dataclass
class Room:
    """A reader, a way to write into the log that it follows, and all that it said."""

    reader: LogFollower
    source: str
    write: Callable[..., None]
    heard: list[LogBatch] = field(default_factory=list)
    progress: list[ReadProgress] = field(default_factory=list)
    news: int = 0

    def __post_init__(self) -> None:
        self.reader.listen(self._told)

    def _told(self) -> None:
        self.news += 1

    def log(self, **more: Any) -> LogSettings:
        return LogSettings(path=self.source, keywords=("ERROR",), **more)

    async def follow(self, place: Place | None = None, *, known: bool = False, **more: Any) -> None:
        """Follow the log; returns when the reader is at work."""
        before = len(self.progress)
        places = {self.source: place} if place else {}
        self.reader.follow((self.log(**more),), places, {self.source} if known else ())
        await self.until(lambda: len(self.progress) > before)

    def lines(self) -> list[str]:
        for message in self.reader.take():
            if isinstance(message, ReadProgress):
                self.progress.append(message)
            else:
                self.heard.append(message)
                self.reader.recorded([message.source])
        return [line for one in self.heard for hits in one.hits for line in hits.lines]

    def has(self, lines: int) -> bool:
        return len(self.lines()) == lines

    async def until(self, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 60
        self.lines()
        while not holds():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)
            self.lines()


@pytest.fixture(params=["memory", "real"])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    path = tmp_path / "app.log"
    if request.param == "memory":
        logs = MemoryLogs()
        yield Room(logs, str(path), lambda *lines: logs.write(str(path), *lines))
        return

    def write(*lines: str) -> None:
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    real = FollowedLogs(lambda *_: None)
    yield Room(real, str(path), write)
    real.close()


async def test_lines_are_said_in_order_with_places_that_grow(room: Room) -> None:
    room.write("fine")
    await room.follow()
    for number in range(3):
        room.write("fine", f"ERROR {number}")
        await room.until(partial(room.has, number + 1))
    assert room.lines() == ["ERROR 0", "ERROR 1", "ERROR 2"]
    totals = [one.place["total"] for one in room.heard]
    assert totals == sorted(set(totals))
    assert {one.source for one in room.heard} == {room.source}
    assert room.news > 0


async def test_what_was_taken_is_not_said_again(room: Room) -> None:
    room.write("fine")
    await room.follow()
    room.write("ERROR one")
    await room.until(lambda: room.heard)
    assert room.lines() == ["ERROR one"]
    assert not [one for one in room.reader.take() if isinstance(one, LogBatch)]


async def test_it_begins_at_its_place_or_at_its_end_or_at_its_beginning(room: Room) -> None:
    room.write("ERROR history")
    await room.follow()
    room.write("ERROR one", "fine")
    await room.until(lambda: room.heard)
    place = room.heard[-1].place
    room.write("ERROR two")
    await room.until(lambda: len(room.lines()) == 2)
    room.heard.clear()
    await room.follow(place)
    await room.until(lambda: room.heard)
    assert room.lines() == ["ERROR two"]
    room.heard.clear()
    await room.follow(known=True)
    await room.until(lambda: len(room.lines()) == 3)
    assert room.lines() == ["ERROR history", "ERROR one", "ERROR two"]


async def test_more_than_the_limit_is_only_counted(room: Room) -> None:
    room.write("fine")
    await room.follow(lines_per_minute=3)
    room.write(*(f"ERROR {number}" for number in range(10)))
    await room.until(lambda: sum(hits.number for one in room.heard for hits in one.hits) == 10)
    assert room.lines() == ["ERROR 0", "ERROR 1", "ERROR 2"]


async def test_what_is_not_followed_any_more_says_nothing(room: Room) -> None:
    room.write("fine")
    await room.follow()
    room.reader.follow((), {}, ())
    room.write("ERROR one")
    await asyncio.sleep(0.05)
    assert room.lines() == []
