"""Units through journalctl: a child that follows, dies, complains and is begun again behind its cursor."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.logs.journal import DROPPED, JournalUnit
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.processes import ProcessSettings
from tests.descriptors import no_descriptors
from tests.integration.logs.logs_ear import Ear

SPOKEN = Path(__file__).with_name("spoken_journal.py")
UNIT = LogSettings(unit="agent.service", keywords=("ERROR",))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    (tmp_path / "journal").touch()
    return tmp_path / "journal"


def ear_on(journal: Path, *logs: LogSettings) -> Ear:
    return Ear(*(logs or (UNIT,)), journalctl=(sys.executable, str(SPOKEN), str(journal)))


def say(journal: Path, *messages: Any, **fields: Any) -> None:
    with journal.open("a") as file:
        file.writelines(json.dumps({"MESSAGE": message, **fields}) + "\n" for message in messages)


def asked(journal: Path) -> list[list[str]]:
    return [json.loads(line) for line in journal.with_name("journal.asked").read_text().splitlines()]


async def test_messages_are_heard_with_their_unit_and_cursor(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, "fine", "ERROR one", "two lines\nERROR second\nand third")
        await ear.until(lambda: len(ear.lines) == 2)
        assert ear.heard == [("agent.service", "ERROR one"), ("agent.service", "ERROR second")]
        assert ear.places["agent.service"]["cursor"] == "3"
    (arguments,) = asked(journal)
    assert {"--follow", "--output=json", "--all", "--unit=agent.service"} <= set(arguments)
    assert any(one.startswith("--since=@1") for one in arguments)


async def test_what_is_no_text_is_heard_too(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, list(b"\xff ERROR bytes"), None, ["one ERROR", list(b"another ERROR")])
        await ear.until(lambda: len(ear.lines) == 3)
        assert ear.lines == ["\ufffd ERROR bytes", "one ERROR", "another ERROR"]


async def test_a_user_s_unit_is_asked_for_as_such(journal: Path) -> None:
    log = LogSettings(unit="agent.service", user=True, keywords=("ERROR",))
    async with ear_on(journal, log) as ear:
        say(journal, "ERROR one")
        await ear.until(lambda: ear.lines)
        assert ear.heard == [("user:agent.service", "ERROR one")]
    assert "--user-unit=agent.service" in asked(journal)[0]


async def test_it_goes_on_behind_its_cursor_when_journalctl_dies(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, "ERROR one")
        with journal.open("a") as file:
            file.write("die 3\n")
        say(journal, "ERROR two")
        await ear.until(lambda: ear.said)
        assert ear.said == [
            ("log:agent.service", "journalctl ended (status 3) and is begun again: Journal file is corrupted")
        ]
        with journal.open("r+") as file:
            text = file.read().replace("die 3\n", '{"MESSAGE": "."}\n')
            file.seek(0)
            file.write(text)
        await ear.until(lambda: len(ear.lines) == 2)
        assert ear.lines == ["ERROR one", "ERROR two"]
    assert "--after-cursor=1" in asked(journal)[1]


async def test_a_reader_that_dies_goes_on_behind_its_cursor(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, *(f"ERROR {number}" for number in range(500)))
        await ear.until(lambda: len(ear.lines) >= 100)
        ear.kill()
        say(journal, *(f"ERROR {number}" for number in range(500, 600)))
        await ear.until(lambda: len(ear.lines) >= 600)
        assert ear.lines == [f"ERROR {number}" for number in range(600)]


async def test_a_pattern_does_not_take_journalctl_for_the_unit_it_follows(journal: Path) -> None:
    unit = LogSettings(unit=f"agent-{os.getpid()}.service", keywords=("ERROR",))
    process = ProcessSettings(name="agent", command=("true",), match=f"agent-{os.getpid()}")
    table = LinuxProcessTable(Spawner())
    try:
        async with ear_on(journal, unit) as ear:
            await ear.until(lambda: journal.with_name("journal.asked").exists())
            assert (await table.look([process], {}))["agent"].found == ()
        held = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "input()", unit.unit or "", stdin=asyncio.subprocess.PIPE
        )
        assert [one.pid for one in (await table.look([process], {}))["agent"].found] == [held.pid]
        held.kill()
        await held.wait()
    finally:
        table.close()


async def test_what_journald_suppressed_is_counted_and_said(journal: Path) -> None:
    async with ear_on(journal) as ear:
        suppressed = {"MESSAGE_ID": DROPPED, "N_DROPPED": "412", "_TRANSPORT": "driver"}
        say(journal, "Suppressed 412 messages from agent.service", **suppressed)
        say(journal, "ERROR one")
        await ear.until(lambda: ear.said)
        assert ear.said[0][0] == "log:agent.service"
        assert "suppressed" in ear.said[0][1]
        await ear.until(lambda: ear.lines)
        assert ear.lines == ["ERROR one"]
        await ear.until(lambda: ear.progress.dropped)
        assert ear.progress.dropped == {"agent.service": 412}


async def test_a_unit_that_says_what_only_journald_says_ends_no_reader(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, "ERROR forged", MESSAGE_ID=DROPPED, N_DROPPED="9" * 5_000, _TRANSPORT="journal")
        say(journal, "ERROR one")
        await ear.until(lambda: len(ear.lines) == 2 or ear.said)
        assert (ear.lines, ear.said) == (["ERROR forged", "ERROR one"], [])
        assert not ear.progress.dropped


async def test_a_message_without_end_is_passed_over(journal: Path) -> None:
    async with ear_on(journal) as ear:
        say(journal, "ERROR before", f"ERROR {'x' * (8 << 20)}", "ERROR behind")
        await ear.until(lambda: len(ear.lines) == 2)
        assert ear.lines == ["ERROR before", "ERROR behind"]
        assert ear.said == [("log:agent.service", "a message of more than 2 MiB was passed over")]


async def test_without_journalctl_it_is_said_what_is_missing(tmp_path: Path) -> None:
    async with Ear(UNIT, journalctl=(str(tmp_path / "journalctl"),)) as ear:
        await ear.until(lambda: ear.said)
        (whose, words) = ear.said[0]
        assert whose == "log:agent.service"
        assert "cannot be run: No such file or directory; is it installed?" in words


def test_tries_come_ever_more_rarely() -> None:
    said: list[str] = []
    unit = JournalUnit("a.service", False, (0,), lambda _whose, words: said.append(words), ("false",))
    pauses = []
    for _ in range(12):
        unit.start()
        while unit.file is not None:
            unit.read()
        pauses.append(round(unit.due - time.monotonic()))
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 300
    assert said[0] == "journalctl ended (status 1) and is begun again"


def test_one_that_can_t_be_started_is_tried_again() -> None:
    said: list[str] = []
    unit = JournalUnit("a.service", False, (0,), lambda _whose, words: said.append(words), ("false",))
    before = set(os.listdir("/proc/self/fd"))
    with no_descriptors(os.getpid()):
        assert unit.start() is None
    assert said == ["journalctl can't be started (Too many open files), which is tried again"]
    assert set(os.listdir("/proc/self/fd")) == before
    assert unit.due > time.monotonic()
    assert unit.start() is not None
    unit.close()


@pytest.mark.parametrize("place", [{}, {"cursor": "x"}, {"total": "many", "cursor": "x"}])
def test_a_place_of_another_version_is_as_none(place: dict[str, Any]) -> None:
    unit = JournalUnit("a.service", False, (0,), lambda *_: None)
    began = unit.place()
    unit.restore(place)
    assert unit.place() == began


def test_a_place_is_gone_on_with() -> None:
    unit = JournalUnit("a.service", False, (0,), lambda *_: None)
    unit.restore({"total": 9, "since": 1_700_000_000_123_456})
    assert "--since=@1700000000.123456" in unit.argv()
    unit.restore({"total": 9, "cursor": "s=1;i=2"})
    assert "--after-cursor=s=1;i=2" in unit.argv()
