"""Runs one command and turns what went wrong into words."""

import atexit
import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, TextIO

import typer
from typer.main import get_command_name

import upulse_cli.blocked_imports  # noqa: F401 - before whatever would import what it keeps out
from pulse_adapters.ipc.umask import private_files
from pulse_core.model.errors import PulseError
from pulse_core.model.text import is_text, one_line
from upulse_cli.app import app
from upulse_cli.output import say
from upulse_cli.shortages import (
    NO_MEMORY,
    NO_MEMORY_WORDS,
    NO_THREAD_WORDS,
    is_memory_shortage,
    is_thread_shortage,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDOUT = "<stdout>"
"""What Python calls it, and so the file that an error of a write to it names."""
NOT_UNDERSTOOD = 2
BUG = 70
LONGEST_SIZE = 4
"""Digits of a terminal's width or height at most."""


@private_files()
def run_command(argv: Sequence[str] | None) -> int:
    """Run one command; the exit code. A traceback is for bugs, or for whoever asks with UPULSE_DEBUG=1."""
    if argv is None:  # the process is this command's own
        collect_seldom()
    fill_closed_streams()
    if argv is None:
        sys.stdout = named_stdout(sys.stdout)
    show_what_has_no_place()
    forget_odd_sizes()
    try:
        code = run([as_text(word) for word in (sys.argv[1:] if argv is None else argv)])
        sys.stdout.flush()
        return code
    except NoText as error:
        return failed(str(error), NOT_UNDERSTOOD)
    except PulseError as error:
        return failed(str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, people get a sentence
        if is_memory_shortage(error):
            return failed(NO_MEMORY_WORDS, NO_MEMORY)
        if is_thread_shortage(error):
            return failed(NO_THREAD_WORDS, NO_MEMORY)
        if isinstance(error, OSError):
            let_go_of_stdout()
            return failed(sentence(error))
        return failed(unexpected(error), BUG)


def collect_seldom() -> None:
    """Search for garbage seldom, and not once more at the end: nearly all that a command imports stays until then."""
    gc.set_threshold(50_000, 20, 20)
    atexit.register(gc.freeze)


def forget_odd_sizes() -> None:
    """Take from the environment a terminal's size that is no size: libraries read it as a number, whatever it is."""
    for name in ("COLUMNS", "LINES"):
        if len(os.environ.get(name, "")) > LONGEST_SIZE:
            del os.environ[name]


def run(argv: Sequence[str]) -> int:
    """Run one command; the exit code that it asked for."""
    if "_UPULSE_COMPLETE" in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes typer know the shells, without options of its own in every help
    try:
        tree_for(argv[0] if argv else "")(args=argv, prog_name="upulse")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


@cache
def tree_for(word: str) -> typer.Typer:
    """The command tree below this word, if it is a command's or a group's name; else the whole one, which takes long."""
    tree = copy(app)
    tree.registered_commands = [
        one
        for one in app.registered_commands
        if one.callback and word == (one.name or get_command_name(one.callback.__name__))
    ]
    tree.registered_groups = [one for one in app.registered_groups if word == one.name]
    return tree if tree.registered_commands or tree.registered_groups else app


class NoText(PulseError):
    """An argument that is no text, so nothing can find, record or print it."""

    def __init__(self, word: str) -> None:
        super().__init__(f"the argument {word!r} is no text in UTF-8; write it in UTF-8, without NUL")


def as_text(word: str) -> str:
    """An argument as text: Python has surrogates for bytes that the locale's encoding lacks. Raises NoText."""
    try:
        word = word if is_text(word) else os.fsencode(word).decode()
    except UnicodeError as error:
        raise NoText(word) from error
    if "\0" in word:
        raise NoText(word)
    return word


def failed(words: str, code: int = 1) -> int:
    """Say what went wrong; the exit code for it."""
    if os.environ.get("UPULSE_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
    say(words)
    return code


def unexpected(error: Exception) -> str:
    """What nobody thought of, and how to see where it is."""
    what = one_line(f"{type(error).__name__}: {error}")
    return f"upulse failed, and that is a bug of its own ({what[:500]}); with UPULSE_DEBUG=1 it says where"


def sentence(error: OSError) -> str:
    """What the system refused, and of which file, if whoever asked has named it."""
    why = error.strerror or str(error)
    if error.filename == STDOUT:
        return f"stdout can't be written: {why}"
    if error.filename:
        return f"{error.filename}: {why}"
    if error.errno == errno.ENOENT:  # of what is opened by its name, only the working directory has none
        return "the directory in which this runs is gone; change to another one"
    return f"the system refused: {why}"


class NamedStdout(io.FileIO):
    """Writes to stdout's descriptor, and names it in an error: the kernel names nothing, of any file."""

    name = STDOUT

    def __init__(self, stdout: TextIO) -> None:
        super().__init__(stdout.fileno(), "w", closefd=False)
        self._before = stdout  # which else would close it

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def named_stdout(stdout: TextIO) -> TextIO:
    """The same stream, by whose errors stdout is known."""
    assert isinstance(stdout, io.TextIOWrapper)
    raw = NamedStdout(stdout)
    return io.TextIOWrapper(
        raw if stdout.write_through else io.BufferedWriter(raw),
        stdout.encoding,
        stdout.errors,
        "\n",
        stdout.line_buffering,
        stdout.write_through,
    )


def let_go_of_stdout() -> None:
    """Drop what stdout did not take, or the interpreter would try once more at its exit and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def fill_closed_streams() -> None:
    """Open what the caller closed, so that no store gets its number; stdout still refuses what is written."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - it lives as long as the process
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as above


def show_what_has_no_place() -> None:
    """Write a character that the terminal's encoding does not have as `\\u2026`, instead of failing at it."""
    for stream in (sys.stdout, sys.stderr):
        # In the locale C Python lets bytes through that are no text, and fails at all else.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
