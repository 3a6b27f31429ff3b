"""A log that can't be opened keeps nobody down: the output goes to what can be, and that is said."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

import pytest

from pulse_adapters.host import outputs
from pulse_adapters.host.outputs import FileOutput, MemoryOutput, open_log_output
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.home_folder import HomeFolder
from tests.processes import child_of_test


def a_pipe(log: Path) -> None:
    os.mkfifo(log)


def a_link(log: Path) -> None:
    log.symlink_to("/etc/passwd")


def a_directory(log: Path) -> None:
    log.mkdir()


@pytest.mark.parametrize("odd", [a_pipe, a_link, a_directory])
def test_what_is_no_plain_file_is_passed_over(tmp_path: Path, odd: Callable[[Path], None]) -> None:
    log = tmp_path / "it.log"
    odd(log)
    target, path, why, _ = open_log_output(log)
    os.write(target, b"words")
    os.close(target)
    assert path == tmp_path / "it.log.1"
    assert path.read_bytes() == b"words"
    assert why.startswith(f"{log} can't be opened (")
    assert why.endswith(f"the output goes to {path}")


def test_without_a_place_for_it_an_output_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()  # as if nothing could be written there, for root, too
    target, path, why, _ = open_log_output(tmp_path / "logs" / "it.log")
    os.write(target, b"words")
    os.close(target)
    assert path is None
    assert why == f"{tmp_path / 'logs'} is no directory; move it away; the output is not kept"


def test_a_log_that_can_not_be_rotated_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "ROTATE_AT", 3)
    log = tmp_path / "it.log"
    log.write_text("first")
    (tmp_path / "it.log.1").mkdir()
    target, path, why, _ = open_log_output(log)
    os.write(target, b" and last")
    os.close(target)
    assert path == log
    assert log.read_text() == "first and last"
    assert why == f"{log} can't be rotated (Is a directory); the output goes to {log}"


def test_a_plain_log_is_opened_without_a_word(tmp_path: Path) -> None:
    output = FileOutput(open_log_output(tmp_path / "logs" / "it.log"))
    os.write(output.target, b"words")
    assert (output.end(), output.why) == ("words", "")


async def test_an_output_goes_to_its_home_where_that_lies_now(tmp_path: Path) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    home.mkdir()
    folder, log = HomeFolder(home), home / "logs" / "it.log"
    home.rename(moved)
    log.parent.mkdir(parents=True)  # of another home
    log.write_text("theirs\n")
    spawner = Spawner(folder.current)
    try:
        outcome = await spawner.run(["echo", "ours"], log=log, timeout=60)
        assert (outcome.output, outcome.unlogged) == ("ours\n", "")
        assert (log.read_text(), (moved / "logs" / "it.log").read_text()) == ("theirs\n", "ours\n")
        rmtree(moved)
        rmtree(home)
        home.mkdir()  # the daemon makes it anew to save the rows of its log
        outcome = await spawner.run(["echo", "ours"], log=log, timeout=60)
        assert (outcome.unlogged, log.read_text()) == ("", "ours\n")
    finally:
        spawner.close()
        folder.close()


async def test_a_process_whose_log_can_not_be_opened_is_started_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    log, said, spawner = tmp_path / "logs" / "it.log", list[str](), Spawner()
    try:
        found = await spawner.start(["sh", "-c", "echo words"], output=log, unlogged=said.append)
        outcome = await spawner.run(["sh", "-c", "echo words"], timeout=30.0, log=log)
    finally:
        spawner.close()
    assert found.pid
    assert outcome.exit == 0
    assert said == [outcome.unlogged]
    assert "the output is not kept" in outcome.unlogged


async def test_who_prints_endlessly_waits_after_a_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "A_SECOND", 150_000)
    sink, written = MemoryOutput(), 0
    printing = os.dup(sink.target)
    os.set_blocking(printing, False)
    sink.begin()
    with suppress(BlockingIOError):
        while written < 4_000_000:
            written += os.write(printing, b"y\n" * 8_192)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    # Three pieces of 64 KiB at most, and what the pipe holds beyond.
    assert 150_000 <= written <= 4 * 65_536
    os.close(printing)
    assert len(sink.end()) >= 65_536


def test_a_log_that_is_written_without_a_pause_is_cut_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "it.log"
    with log.open("ab") as written:
        written.write(b"x" * 5_000_000)
        written.flush()
        writer = subprocess.Popen(["sh", "-c", "ulimit -f 2000000; exec yes"], stdout=written)
        with child_of_test(writer) as endless:
            freed = outputs.truncate_log(log, kept=1_000_000)
            endless.kill()
    assert freed > 0
    assert 1_000_000 <= (tmp_path / "it.log.1").stat().st_size <= 2_000_000
