"""The daemon's log as people read it."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from pulse_adapters.ipc.daemon_process import LONGEST_LINE, log_lines
from pulse_adapters.systemd.manager import Unit, journal_line, journal_lines
from pulse_adapters.systemd.notify import is_journal
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.projections.effects import OpenEffect, Phase
from upulse_cli.views.narrator import AT_A_TIME, JournalLines, JsonLines, Narrator, log_line

AT = "2020-01-31T08:15:00+00:00"


def said(message: str, **more: str) -> str:
    return json.dumps({"at": AT, "level": "info", "message": message, **more})


def test_a_json_line_becomes_words() -> None:
    assert log_line(said("process-up  demo")).endswith("process-up  demo")
    assert "{" not in log_line(said("x"))


def test_warnings_say_so_and_tracebacks_follow() -> None:
    text = log_line(said("it failed", level="error", traceback="Traceback: deep"))
    assert "ERROR" in text
    assert text.endswith("it failed\nTraceback: deep")
    assert text.splitlines()[0].split(" ", 2)[2] == "ERROR it failed"  # the day and the time stay together


def test_a_line_that_is_no_json_stays() -> None:
    assert log_line("Segmentation fault") == "Segmentation fault"
    assert log_line("[1, 2]") == "[1, 2]"


def test_the_last_lines_come_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(9)))
    assert list(log_lines(log, 3, follow=False)) == ["line 6", "line 7", "line 8"]
    assert list(log_lines(log, 0, follow=False)) == []
    assert list(log_lines(tmp_path / "none", 3, follow=False)) == []


def test_of_a_log_of_any_size_only_the_end_is_read_and_of_a_long_line_a_part(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n")
    with log.open("ab") as file:
        file.truncate(1 << 43)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\r\n" + b"x" * (1 << 20))
    *_, end, long = log_lines(log, 3, follow=False)
    assert (end, len(long), long[-1]) == ("the end", LONGEST_LINE + 1, "…")
    coming = log_lines(log, 2, follow=True)
    assert next(coming) == "the end"
    with log.open("ab") as file:
        file.write(b"y" * (1 << 20) + b"\nlate\n")
    assert next(coming)[-2:] == "x…"
    assert next(coming) == "late"
    coming.close()  # type: ignore[attr-defined]  # a generator


def test_lines_are_followed_into_the_next_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\nnew\n")
    coming = log_lines(log, 1, follow=True)
    assert next(coming) == "new"
    with log.open("a") as file:
        file.write("late\n")
    assert next(coming) == "late"  # it follows the file by now
    log.rename(tmp_path / "log.1")
    log.write_text("two\nthr")
    assert next(coming) == "two"
    with log.open("a") as file:
        file.write("ee\n")
    assert next(coming) == "three"
    coming.close()  # type: ignore[attr-defined]  # a generator


def test_a_log_that_was_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a long old line\n")
    coming = log_lines(log, 5, follow=True)
    assert next(coming) == "a long old line"
    log.write_text("new\n")
    assert next(coming) == "new"
    coming.close()  # type: ignore[attr-defined]  # a generator


@pytest.mark.parametrize(
    ("level", "severity"),
    [(logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3), (logging.CRITICAL, 2)],
)
def test_each_line_in_the_journal_has_its_severity(level: int, severity: int) -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        record = logging.LogRecord("pulse", level, "", 0, "it\x1b[2J failed", (), sys.exc_info())
    lines = JournalLines().format(record).splitlines()
    assert lines[0] == f"<{severity}>it\\x1b[2J failed"
    assert lines[-1] == f"<{severity}>b"
    assert all(line.startswith(f"<{severity}>") for line in lines)


async def narrated(caplog: pytest.LogCaptureFixture, kind: str, data: str) -> logging.LogRecord:
    narrator = Narrator()
    narrator([Event(1, "id", 0, "boot", 0, kind, "it", "pulse", "host", None, data)])
    with caplog.at_level(logging.INFO, "pulse.event"):
        narrator.speak()
    return caplog.records[-1]


async def test_what_a_killed_daemon_has_left_is_told_by_its_key(caplog: pytest.LogCaptureFixture) -> None:
    wish = Event(1, "id", 0, "boot", 0, "effect", "restart-process:it", "pulse", "host", None, "{}")
    earlier = {"id": OpenEffect(wish, Phase.EXECUTING, Moment(0, "boot", 0))}
    narrator = Narrator(lambda: earlier)
    narrator([Event(2, "other", 0, "boot", 0, "effect-unknown", "id", "pulse", "host", None, "{}")])
    with caplog.at_level(logging.INFO, "pulse.event"):
        narrator.speak()
    assert caplog.records[-1].getMessage() == "effect-unknown     restart-process:it"


async def test_what_is_wrong_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert (
        await narrated(caplog, "process-died", '{"evidence": "pid 7 is gone"}')
    ).levelno == logging.WARNING
    assert (await narrated(caplog, "process-up", '{"evidence": "pid 8"}')).levelno == logging.INFO


@pytest.mark.parametrize(("only_start", "levels"), [(False, "IWIIW"), (True, "IWIII")])
async def test_a_restart_of_one_that_lives_is_a_warning_if_no_death_was_told_of_it(
    caplog: pytest.LogCaptureFixture, only_start: bool, levels: str
) -> None:
    params = {"process": "it", "if_dead": True, "only_start": only_start}
    wish = json.dumps(
        {"action": "restart-process", "key": "restart-process:it", "reason": "x", "params": params}
    )
    said = [("process-up", '{"evidence": "x"}'), ("process-died", '{"evidence": "x"}')]
    narrator = Narrator()
    never_up = ("process-died", '{"evidence": "x", "pid": null, "intended": true}')
    for kind, data in (*said, ("effect", wish), never_up, ("effect", wish)):
        narrator([Event(1, "id", 0, "boot", 0, kind, "it", "pulse", "host", None, data)])
    with caplog.at_level(logging.INFO, "pulse.event"):
        narrator.speak()
    assert "".join(record.levelname[0] for record in caplog.records) == levels


async def test_a_start_after_a_crash_is_a_warning_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    told = await narrated(caplog, "daemon-started", '{"pid": 7, "version": "1", "last_seen": 9}')
    assert told.levelno == logging.WARNING
    assert told.getMessage().endswith("pid=7 version=1, the one before it ended without a stop")
    told = await narrated(caplog, "daemon-started", '{"pid": 7, "version": "1"}')
    assert told.levelno == logging.INFO


async def test_refused_settings_and_a_rollback_are_told_in_words(caplog: pytest.LogCaptureFixture) -> None:
    refused = await narrated(caplog, "settings-refused", '{"faults": ["a is no number", "b is unknown"]}')
    assert refused.getMessage().endswith("  a is no number; b is unknown")
    data = {"rejected": "a" * 40, "to": "b" * 40, "why": "it raised 3 errors", "asked_by": "pulse"}
    back = await narrated(caplog, "rollback", json.dumps(data))
    assert back.getMessage().endswith(f"  {'a' * 12} was rolled back to {'b' * 12}: it raised 3 errors")


async def test_a_first_start_and_a_death_that_was_intended_are_no_deaths_in_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    never_up = '{"evidence": "not running yet; port 80 is held", "pid": null, "intended": true}'
    told = await narrated(caplog, "process-died", never_up)
    assert (told.levelno, told.getMessage()) == (
        logging.INFO,
        "process-down       it  not running yet; port 80 is held, which is no death",
    )


async def test_a_line_about_an_event_is_bounded_however_much_it_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = await narrated(
        caplog, "guidance-imported", json.dumps({f"part{n}": "long " * 200 for n in range(1_000)})
    )
    assert len(JournalLines().format(record)) < 310
    assert len(JsonLines().format(record)) < 1_000


async def test_others_have_their_turn_while_many_events_are_told(caplog: pytest.LogCaptureFixture) -> None:
    narrator, told = Narrator(), [0]
    with caplog.at_level(logging.INFO, "pulse.event"):
        narrator(
            [Event(1, "id", 0, "boot", 0, "note", "it", "pulse", "host", None, '{"text": "t"}')]
            * (3 * AT_A_TIME)
        )
        async with asyncio.timeout(10):
            while told[-1] < 3 * AT_A_TIME:
                await asyncio.sleep(0)
                told.append(len(caplog.records))
    assert sorted({*told}) == [0, AT_A_TIME, 2 * AT_A_TIME, 3 * AT_A_TIME]


def test_the_journal_is_told_from_another_file_that_a_child_was_given(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream, (tmp_path / "other").open("w") as other:
        found = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert is_journal(stream.fileno(), environ)
        assert not is_journal(other.fileno(), environ)
        assert not is_journal(stream.fileno(), {})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("it failed", "WARNING it failed"),
        (list(b"\xffit"), "WARNING \ufffdit"),
        (["it", None, list(b"\xffit")], "WARNING it ↵  ↵ \ufffdit"),
        (None, "WARNING (too long to show)"),
    ],
)
def test_an_entry_of_the_journal_becomes_words(message: object, words: str) -> None:
    entry = {"__REALTIME_TIMESTAMP": "1580458500000000", "PRIORITY": "4", "MESSAGE": message}
    assert log_line(journal_line(json.dumps(entry))).endswith(f" {words}")


def test_a_journal_that_nobody_reads_on_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"__REALTIME_TIMESTAMP": "1580458500000000", "PRIORITY": "6", "MESSAGE": "one"}
    program = tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(entry)}'\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    lines = journal_lines(Unit(tmp_path / "it.service", False, tmp_path), 1, True)
    assert isinstance(lines, Generator)
    assert log_line(next(lines)).endswith("one")
    lines.close()
