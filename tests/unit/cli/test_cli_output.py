"""What is printed: nothing of it controls a terminal, and a pipe gets it as it is."""

import ast
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from upulse_cli.output import draw, put

ROOT = Path(__file__).parents[3] / "upulse_cli"
HOSTILE = "a\x1b]0;title\x07\tb\x9b31m\u202ec\r\n"


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal that is printed to; what it shows is read from the descriptor."""
    shown, ours = os.openpty()
    monkeypatch.setenv("TERM", "dumb")
    with os.fdopen(ours, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        yield shown
    os.close(shown)


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


def test_a_pipe_gets_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    put(HOSTILE, end="")
    assert pipe.getvalue() == HOSTILE


def test_nobody_else_prints_to_stdout() -> None:
    found = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
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
