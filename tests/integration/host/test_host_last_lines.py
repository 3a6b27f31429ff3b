"""What a process printed last, read from its log when it has died."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pulse_adapters.host.lives import Lives
from pulse_adapters.host.outputs import end_of_life
from pulse_adapters.host.process_deaths import MOST_KEPT, ProcessDeaths
from pulse_adapters.host.process_executors import RestartProcess
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import environment
from pulse_core.actions import RestartParams
from pulse_core.ports.host import ProcessId
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import until, wished

SAYING = 'echo first "$API_KEY"; printf "\\033[31mred\\033[0m \\007 \\r\\nlast\\n" >&2; exec sleep 1000'
NOBODY = ProcessId(0, 0)
SETTINGS = Settings.model_validate(
    {"process": [{"name": "it", "start": ["sh", "-c", SAYING], "env": {"API_KEY": "abcd-1234"}}]}
)


async def test_the_last_lines_are_those_of_this_life_without_secrets_and_control_characters(
    spawner: Spawner, tmp_path: Path
) -> None:
    table = LinuxProcessTable(spawner, outputs=tmp_path)
    log, known = tmp_path / "it.log", dict[str, ProcessId]()
    log.write_text("of an earlier life\n")
    executor = RestartProcess(lambda: SETTINGS, table, lambda: known, Lives(spawner, tmp_path), tmp_path)
    effect, event = wished("restart-process", process="it")
    result = await executor.execute(effect, RestartParams.model_validate(effect.params), event)
    await until(lambda: "last" in log.read_text())
    told = await table.last_lines(SETTINGS.process[0], NOBODY, result.data["logged"])
    assert told == "first ***\nred \\x07 \nlast"
    table.close()


async def test_of_an_environment_of_any_size_no_more_is_kept_than_can_be_looked_for(
    spawner: Spawner, tmp_path: Path
) -> None:
    given = {f"NAME_{number}": "value" for number in range(MOST_KEPT // 10)}
    found = await spawner.start(["sleep", "1000"], output=tmp_path / "it.log", env=given, inherits=False)
    await until(lambda: b"\0NAME_0=" in environment(found.pid))  # in the midst of its exec it shows none
    deaths = ProcessDeaths(spawner)
    deaths.hold([found], lambda _: None)
    kept = deaths.variables(found)
    assert kept["NAME_0"] == "value"
    assert len(given) // 3 < len(kept) < len(given) * 2 // 3
    assert deaths.may_have_more(found)
    deaths.close()
    table = LinuxProcessTable(spawner, outputs=tmp_path)
    table.hold([found], lambda _: None)
    (tmp_path / "it.log").write_text("a secret that lies behind what is kept\n")
    assert await table.last_lines(SETTINGS.process[0], NOBODY, 0) != ""
    assert await table.last_lines(SETTINGS.process[0], found, 0) == ""
    table.close()
    os.kill(found.pid, signal.SIGKILL)


def test_of_much_the_end_is_told_in_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "it.log"
    log.write_text("".join(f"line {number} é\n" for number in range(10_000)))
    told = end_of_life(log, 0)
    assert 1_900 < len(told.encode()) <= 2_000
    assert told.splitlines()[0] == f"line {10_000 - len(told.splitlines())} é"
    assert told.endswith("line 9999 é")
    log.write_text("x" * 100_000)
    assert end_of_life(log, 50) == "x" * 2_000


@pytest.mark.parametrize("after", [1_990, 2_000, 6_130, 6_140])
def test_a_secret_where_the_output_is_cut_is_told_in_no_part(tmp_path: Path, after: int) -> None:
    log = tmp_path / "it.log"
    for before in ("x" * 10_000, "x" * 10_000 + " ", "token="):
        log.write_text(f"{before}abcd-1234-efgh{' y' * (after // 2)}")
        told = end_of_life(log, 0, {"API_KEY": "abcd-1234-efgh"})
        assert not any(f"{part} y" in told for part in ("h", "fgh", "1234-efgh"))


def test_a_log_that_was_emptied_meanwhile_is_told_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "it.log"
    log.write_text("after\n")
    assert end_of_life(log, 1_000) == "after"


@pytest.mark.parametrize("other", ["pipe", "link", "nothing"])
async def test_what_is_no_log_tells_nothing_and_holds_up_nothing(
    spawner: Spawner, tmp_path: Path, other: str
) -> None:
    log, table = tmp_path / "it.log", LinuxProcessTable(spawner, outputs=tmp_path)
    if other == "pipe":
        os.mkfifo(log)
    elif other == "link":
        log.symlink_to("/etc/passwd")
    async with asyncio.timeout(30):
        assert await table.last_lines(SETTINGS.process[0], NOBODY, 0) == ""
    table.close()


async def test_a_log_whose_file_system_hangs_tells_nothing(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr("pulse_adapters.host.process_table.end_of_life", lambda *_: os.read(reading, 1))
    table = LinuxProcessTable(spawner, outputs=tmp_path)
    monkeypatch.setattr(table._output_files, "_is_needed", lambda: True)
    async with asyncio.timeout(30):
        assert await table.last_lines(SETTINGS.process[0], NOBODY, 0) == ""
        assert await table.last_lines(SETTINGS.process[0], NOBODY, 0) == ""
    os.close(writing)
    table.close()
