"""Saying things: data to stdout, words to stderr, and nothing that could take over the terminal."""

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # rich costs 40 ms: imported where something is drawn
    from rich.console import Console

    from pulse_core.app.append import Appended


def put(text: str) -> None:
    """Data for whoever reads stdout, at once."""
    print(text, flush=True)


def put_json(value: Any) -> None:
    """A value as JSON: on one line for pipes, indented for a terminal."""
    put(json.dumps(value, indent=2 if sys.stdout.isatty() else None))


def put_line(value: Any) -> None:
    """A value as one line of JSON, wherever it goes."""
    put(json.dumps(value))


def say(words: str) -> None:
    """Words for a person, on stderr."""
    print(clean(words), file=sys.stderr)


def count(number: int, noun: str) -> str:
    """`1 process`, `3 processes`, `1 row`, `3,000 rows`."""
    plural = f"{noun}es" if noun.endswith(("s", "sh", "ch")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def clean(text: object) -> str:
    """Text from elsewhere, with control characters made visible: a log must not steer a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else _shown(char) for char in str(text))


def one_line(text: object) -> str:
    """The same with line breaks made visible too: text from elsewhere must not forge the next row."""
    return clean(text).replace("\n", "\\n")


def _shown(char: str) -> str:
    return " " if char == "\t" else char.encode("unicode_escape", "backslashreplace").decode()


def console() -> "Console":
    """Where tables and trees are drawn; as wide as the terminal, or wide enough for a pipe."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 160)


def say_when(answer: "Appended") -> None:
    """Say that it will take effect later, if no daemon runs."""
    if not answer.by_daemon:
        say("no daemon runs; this takes effect when one starts (upulse daemon start)")
