"""After a sync that failed the kernel takes pages for written that are not: what is acknowledged later is on the disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite import commits
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.verify import verify
from pulse_core.home import HomeLayout
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused
from tests.long_form import sample
from tests.thin_disk import ThinDisk, thin_disk

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ThinDisk]:
    with thin_disk(tmp_path) as disk:
        yield disk


def rows(count: int, size: int = 1_000) -> list[Draft]:
    return [Draft(Paused(why="x" * size))] * count


def forget(home: HomeLayout) -> None:
    """Have the kernel forget what it need not read from the disk, as a power cut does."""
    os.sync()
    for file in (home.events, home.events.with_name("events.db-wal")):
        open_file = os.open(file, os.O_RDONLY)
        os.posix_fadvise(open_file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(open_file)


async def found_on_disk(log: SqliteEventLog, home: HomeLayout) -> tuple[str, int]:
    """What is wrong with the log and how many rows it has, read from the disk alone."""
    forget(home)
    await log.check()
    found = verify(home.events, home.objects)
    return found.fault, found.rows


async def test_what_is_recorded_after_a_commit_that_failed_is_on_the_disk(
    disk: ThinDisk, open_log: Open
) -> None:
    home = Home(disk.path)
    async with open_log(disk.path) as log:
        await log.append(*rows(3))
        os.sync()
        disk.fill()
        for _ in range(3):
            with pytest.raises(LogUnavailable):
                await log.append(*rows(200))
        disk.make_room()
        await log.append(*rows(200))
        await log.append(*rows(1))
        assert await found_on_disk(log, home) == ("", 204)


async def test_rows_are_on_the_disk_after_a_checkpoint_that_failed(disk: ThinDisk, open_log: Open) -> None:
    home, moved = Home(disk.path), 0
    async with open_log(disk.path) as log:
        await log.append(*rows(3_500))
        await log.append(*rows(1))  # the -wal is begun anew, in the blocks that it has
        os.sync()
        size = home.events.stat().st_size
        disk.fill()
        while home.events.stat().st_size == size and moved < 30:
            await log.append(*rows(100))
            moved += 1
        disk.make_room()
        await log.append(*rows(1))
        await log.append(*rows(1))
        assert await found_on_disk(log, home) == ("", 3_503 + 100 * moved)


@pytest.mark.parametrize("seed", range(sample(1, 40)))
async def test_whatever_the_disk_refuses_between_what_was_acknowledged_outlives_a_power_cut(
    disk: ThinDisk, open_log: Open, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, acknowledged, is_full, refused = Random(seed), 0, False, 0
    monkeypatch.setattr(commits, "MOVED", chance.choice([30, 1_000]))
    async with open_log(disk.path) as log:
        for step in range(80):
            if chance.random() < 0.25:
                (disk.make_room if is_full else disk.fill)()
                is_full = not is_full
            try:
                acknowledged = (await log.append(*rows(chance.choice([1, 3, 20]), 900)))[-1].seq
            except LogUnavailable:
                refused += 1
            if step % 8 == 0:
                with disk.after_power_cut() as found:
                    home = Home(found)
                    (found / "events.db-shm").unlink(
                        missing_ok=True
                    )  # a power cut leaves nothing that was not synced
                    there = verify(home.events, home.objects)
                    assert there.fault == ""
                    assert there.rows >= acknowledged
    assert refused
