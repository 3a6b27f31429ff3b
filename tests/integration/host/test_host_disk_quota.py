"""Pulse's own files don't fill the disk: real outputs and a real vitals.db over their bound."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.leftovers import HomeFiles, bytes_on_disk, cut_output, outputs_in
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_core.daemon import disk_quota
from pulse_core.daemon.disk_quota import Cut, ProcessOutput, keep_quota
from pulse_core.model.moment import Moment
from pulse_core.settings.settings import Settings
from tests.small_disk import small_disk

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    home.outputs.mkdir()
    return home


def own_files(home: Home) -> HomeFiles:
    return HomeFiles(home, SIZE, Reserve(home.reserve).make)


def whole(home: Home) -> int:
    """The bytes of all that is bounded."""
    vitals, outputs = own_files(home).sizes()
    return vitals + sum(output.whole for output in outputs)


def lines(first: int, last: int) -> bytes:
    return b"".join(b"line %09d\n" % number for number in range(first, last))


def test_the_end_of_an_output_becomes_the_older_file(tmp_path: Path) -> None:
    output = tmp_path / "a.log"
    output.write_bytes(lines(0, 1_000))
    (tmp_path / "a.log.1").write_bytes(b"x" * 2048)
    assert cut_output(output, 150) == "a.log gives back 16.5 KiB"
    assert output.read_bytes() == b""
    assert (tmp_path / "a.log.1").read_bytes() == lines(990, 1_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1"]


def test_an_older_file_that_takes_the_room_goes_and_the_new_one_stays(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"new\n")
    (tmp_path / "a.log.1").write_bytes(b"x" * MIB)
    cut_output(tmp_path / "a.log", 4)
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
    assert (tmp_path / "a.log").read_bytes() == b"new\n"


def test_who_writes_goes_on_writing_into_the_same_file(tmp_path: Path) -> None:
    output = tmp_path / "a.log"
    with output.open("ab") as file:
        writer = subprocess.Popen(
            [sys.executable, "-c", "for line in iter(input, 'end'): print(line, flush=True)"],
            stdin=subprocess.PIPE,
            stdout=file,
            text=True,
        )
    assert writer.stdin is not None
    for part in ("before", "after"):
        writer.stdin.write(f"{part}\n")
        writer.stdin.flush()
        until = time.monotonic() + 60
        while f"{part}\n" not in output.read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        if part == "before":
            cut_output(output, 3)
    writer.communicate("end\n")
    assert (tmp_path / "a.log.1").read_text() == "re\n"
    assert output.read_text() == "after\n"
    assert bytes_on_disk(output) == len("after\n")


def test_an_output_that_is_gone_or_is_none_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "link.log").symlink_to(precious)
    os.mkfifo(logs / "pipe.log")
    assert [one.whole for one in outputs_in(logs)] == [0, 0]
    for name in ("gone.log", "link.log", "pipe.log"):
        cut_output(logs / name, 0)
    assert precious.read_text() == "keep me"


def test_a_hole_in_a_file_counts_for_nothing(tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        file.truncate(1 << 40)
    assert bytes_on_disk(tmp_path / "a.log") == 0


def test_a_disk_without_room_for_the_copy_is_freed_all_the_same(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        output = disk / "a.log"
        with output.open("wb", buffering=0) as file:
            file.write(lines(0, MIB)[:MIB])
        assert cut_output(disk / "a.log", 512 * 1024) == "a.log gives back 1.0 MiB"
        assert [path.name for path in disk.iterdir()] == ["a.log"]
        assert output.stat().st_size == 0


@pytest.fixture
async def vitals(home: Home) -> AsyncIterator[SqliteVitals]:
    async with SqliteVitals.open(home.vitals) as opened:
        yield opened


async def filled(vitals: SqliteVitals, minutes: int) -> None:
    """Samples of so many minutes, the last one now, about 20 KiB each."""
    now = time.time_ns() // 60_000_000_000
    for minute in range(now - minutes, now):
        at = minute * 60_000_000
        vitals.sample("big", Moment(at, "boot", at), {"x": os.urandom(10_000).hex()})
    await vitals.flush()


async def test_the_oldest_vitals_go_and_the_file_gets_smaller(home: Home, vitals: SqliteVitals) -> None:
    await filled(vitals, 1_000)
    before = sum(bytes_on_disk(Path(f"{home.vitals}{part}")) for part in ("", "-wal"))
    await vitals.yield_oldest(0.5)
    after = sum(bytes_on_disk(Path(f"{home.vitals}{part}")) for part in ("", "-wal"))
    left = await vitals.recent(0)
    assert 490 <= len(left) <= 510
    assert left[-1].moment.at >= time.time_ns() // 1000 - 180_000_000  # a minute may have begun since
    assert after < before * 0.6


def pages(path: Path) -> int:
    with closing(connect_readonly(path)) as reader:
        return int(reader.execute("PRAGMA page_count").fetchone()[0])


async def test_others_write_while_the_room_is_given_back(home: Home, vitals: SqliteVitals) -> None:
    await filled(vitals, 1_500)
    before, seen, written = pages(home.vitals), set[int](), 0
    yielding = asyncio.create_task(vitals.yield_oldest(0.5))
    while not yielding.done():
        vitals.sample("new", Moment(time.time_ns() // 1000, "boot", 1), {})
        await vitals.flush()
        seen.add(pages(home.vitals))
        written += 1
    await yielding
    between = [count for count in seen if pages(home.vitals) < count < before]
    assert len(between) >= 3
    assert len([one for one in await vitals.recent(0) if one.key == "new"]) == written


async def test_a_file_of_before_there_were_slices_gets_smaller_too(home: Home) -> None:
    async with SqliteVitals.open(home.vitals):
        pass
    with closing(sqlite3.connect(home.vitals)) as old:
        old.executescript("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM")
        assert old.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    async with SqliteVitals.open(home.vitals) as vitals:
        for _ in range(2):
            await filled(vitals, 200)
            before = pages(home.vitals)
            await vitals.yield_oldest(0.5)
            assert pages(home.vitals) < before * 0.7
    with closing(connect_readonly(home.vitals)) as new:
        assert new.execute("PRAGMA auto_vacuum").fetchone() == (2,)


async def test_what_takes_too_much_is_cut_and_that_is_said(
    home: Home, vitals: SqliteVitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_quota, "CHECK_INTERVAL_S", 0.01)
    (home.outputs / "loud.log").write_bytes(lines(0, 2 * MIB))
    (home.outputs / "quiet.log").write_bytes(b"little\n")
    await filled(vitals, 700)
    said: list[str] = []
    settings = Settings.model_validate({"self": {"disk_mb": 16}})
    keeping = asyncio.create_task(
        keep_quota(
            own_files(home),
            vitals.yield_oldest,
            lambda: settings,
            lambda whose, words: said.append(f"{whose}: {words}"),
        )
    )
    async with asyncio.timeout(60):
        while not said:
            await asyncio.sleep(0.01)
        while whole(home) > 16 * MIB:
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert said[0].startswith("disk: vitals.db and logs/ took ")
    assert "16.0 MiB are allowed ([self] disk_mb): loud.log gives back " in said[0]
    assert (home.outputs / "quiet.log").read_bytes() == b"little\n"
    assert (home.outputs / "loud.log.1").read_bytes().endswith(lines(2 * MIB - 3, 2 * MIB))


async def test_that_outputs_have_no_room_is_said_while_it_is_so(
    home: Home, vitals: SqliteVitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_quota, "CHECK_INTERVAL_S", 0.01)
    files, said = own_files(home), list[str]()

    async def until(is_so: bool) -> None:
        async with asyncio.timeout(60):
            while bool(files.outputs_lost) is not is_so:
                await asyncio.sleep(0.01)

    with small_disk(home.outputs, "3m"):
        (home.outputs / "a.log").write_bytes(bytes(5 * MIB // 2))
        keeping = asyncio.create_task(
            keep_quota(files, vitals.yield_oldest, Settings, lambda *words: said.append(": ".join(words)))
        )
        await until(True)
        (home.outputs / "a.log").write_bytes(b"")
        await until(False)
        keeping.cancel()
        await asyncio.wait([keeping])
    full = f"disk: {home.outputs} is a file system of its own, and full"
    assert set(said) == {f"{full}; what processes print is lost while it does not fit"}


async def test_within_the_bound_nothing_is_touched_or_said(
    home: Home, vitals: SqliteVitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_quota, "CHECK_INTERVAL_S", 0.01)
    (home.outputs / "a.log").write_bytes(lines(0, 1_000))
    said: list[str] = []
    looks: list[int] = []

    def settings() -> Settings:
        looks.append(1)
        return Settings()

    keeping = asyncio.create_task(
        keep_quota(own_files(home), vitals.yield_oldest, settings, lambda *words: said.append(words[1]))
    )
    async with asyncio.timeout(60):
        while len(looks) < 5:
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.wait([keeping])
    assert said == []
    assert (home.outputs / "a.log").read_bytes() == lines(0, 1_000)


def test_nothing_is_cut_or_made_in_a_home_that_has_taken_the_place_of_one_that_was_moved(home: Home) -> None:
    folder = HomeFolder(home.path)
    files = HomeFiles(home, SIZE, Reserve(home.reserve).make, folder.is_in_place)
    (home.outputs / "a.log").write_bytes(b"ours")
    assert files.sizes()[1] == [ProcessOutput("a.log", 4)]
    assert folder.current(home.outputs) == home.outputs
    moved = home.path.rename(home.path.with_name("moved"))
    home.create()
    home.outputs.mkdir()
    (home.outputs / "a.log").write_bytes(b"theirs")
    files.hold_back()
    assert files.sizes() == (0, [])
    assert files.cut([Cut("a.log", 0)]) == []
    assert (home.outputs / "a.log").read_bytes() == b"theirs"
    assert not home.reserve.exists()
    assert folder.current(home.outputs / "a.log").read_bytes() == b"ours"
    assert folder.current(moved.parent) == moved.parent
    folder.close()


async def test_what_was_given_up_on_a_full_disk_is_held_back_again(
    home: Home, vitals: SqliteVitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_quota, "CHECK_INTERVAL_S", 0.01)
    assert not home.reserve.exists()
    keeping = asyncio.create_task(
        keep_quota(own_files(home), vitals.yield_oldest, Settings, lambda *words: None)
    )
    async with asyncio.timeout(60):
        while not (home.reserve.exists() and home.reserve.stat().st_blocks * 512 >= SIZE):
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.wait([keeping])
