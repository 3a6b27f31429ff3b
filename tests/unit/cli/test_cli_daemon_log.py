"""The daemon's log as people read it."""

import json
from pathlib import Path

from pulse_adapters.ipc.daemon_process import log_lines
from upulse_cli.views.narrator import log_line

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


def test_a_line_that_is_no_json_stays() -> None:
    assert log_line("Segmentation fault") == "Segmentation fault"
    assert log_line("[1, 2]") == "[1, 2]"


def test_the_last_lines_come_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(9)))
    assert list(log_lines(log, 3, follow=False)) == ["line 6", "line 7", "line 8"]
    assert list(log_lines(log, 0, follow=False)) == []
    assert list(log_lines(tmp_path / "none", 3, follow=False)) == []


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
