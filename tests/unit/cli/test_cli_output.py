"""What is printed: nothing of it controls a terminal, a pipe gets it as it is, and what takes long says how far it is."""

import ast
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from pulse_core.model.event import Event
from upulse_cli.output import draw, fold_progress, put, put_hanging, put_line

ROOT = Path(__file__).parents[3] / "upulse_cli"
BATCHES = [
    [Event(seq, "id", 1, "boot", 1, "paused", "", "ada", "here", None, "{}")] for seq in (1_000, 2_000)
]
HOSTILE = "a\x1b]0;title\x07\tb\x9b31m\u202ec\r\n"


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, stream: str = "stdout", kind: str = "dumb") -> Iterator[int]:
    """A terminal that a stream goes to; what it shows is read from the descriptor."""
    shown, ours = os.openpty()
    monkeypatch.setenv("TERM", kind)
    with os.fdopen(ours, "w") as file:
        monkeypatch.setattr(sys, stream, file)
        yield shown
    os.close(shown)


def test_half_a_character_is_spelled_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_line({os.fsdecode(b"\xff"): ["\U0001f600", "a\\udcff", "\ud83d"]})
    said = json.loads(capsys.readouterr().out)
    assert said == {"format": 1, "\\udcff": ["\U0001f600", "a\\udcff", "\\ud83d"]}


def test_what_would_control_a_terminal_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shown:
        put(HOSTILE, end="")
        assert os.read(shown, 10_000).decode() == "a\\x1b]0;title\\x07\tb\\x9b31m\\u202ec\\r\r\n"


def test_so_is_what_is_drawn_even_if_a_view_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("what", title=HOSTILE)
    table.add_row(Text(HOSTILE))
    with terminal(monkeypatch) as shown:
        draw(table)
        said = os.read(shown, 10_000).decode()
    assert all(char.isprintable() or char in "\r\n" for char in said)
    assert r"\x1b]0;title" in said


def test_a_line_that_is_longer_than_a_terminal_is_wide_goes_on_further_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    line = "12  08:15:00  kind  it is-not\x1b short, and  goes on"
    with terminal(monkeypatch) as shown:
        put_hanging(line, 4)
        rows = os.read(shown, 1_000).decode().splitlines()
    assert rows == ["12  08:15:00  kind  it", "    is-not\\x1b short, and", "    goes on"]
    monkeypatch.undo()
    put_hanging(line, 4)
    assert capsys.readouterr().out == f"{line}\n"


def test_a_pipe_gets_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    put(HOSTILE, end="")
    assert pipe.getvalue() == HOSTILE


def test_what_takes_long_on_a_terminal_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr", "xterm") as shown:
        assert list(fold_progress(BATCHES, 2_000, quiet=0.0)) == BATCHES
        said = b""
        while "folding the log … row 2,000 of 2,000".encode() not in said:  # the test's own timeout ends it
            said += os.read(shown, 10_000)


def test_what_is_quick_says_nothing_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "stderr", "xterm") as shown:
        assert list(fold_progress(BATCHES, 2_000)) == BATCHES
        os.set_blocking(shown, False)
        with pytest.raises(BlockingIOError):
            os.read(shown, 1)


def test_a_pipe_is_not_told_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert list(fold_progress(BATCHES, 2_000, quiet=0.0)) == BATCHES
    assert pipe.getvalue() == ""


WRITES = re.compile(r"\bprint\(|\bstdout\b|\becho\b|\bsecho\b")


def test_nobody_else_prints_to_stdout() -> None:
    found = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if WRITES.search(file.read_text())
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and is_print(node)
    }
    assert found == {"output.py"}


def is_print(call: ast.Call) -> bool:
    """Whether it writes to stdout by itself."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "print" and "file" not in {word.arg for word in call.keywords}
    return ast.unparse(call.func) in {
        "sys.stdout.write",
        "typer.echo",
        "typer.secho",
        "sys.stdout.buffer.write",
    }
