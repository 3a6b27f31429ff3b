"""What is printed: nothing of it controls a terminal, and a pipe gets it as it is."""

import ast
import os
import sys
from io import StringIO
from pathlib import Path

import pytest

from upulse_cli.output import put

ROOT = Path(__file__).parents[3] / "upulse_cli"
HOSTILE = "a\x1b]0;title\x07\tb\x9b31m\u202ec\r\n"


def test_what_would_control_a_terminal_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, ours = os.openpty()
    with os.fdopen(ours, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        put(HOSTILE, end="")
        said = os.read(shown, 10_000).decode()
    os.close(shown)
    assert said == "a\\x1b]0;title\\x07\tb\\x9b31m\\u202ec\\r\r\n"


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
