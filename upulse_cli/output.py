"""Saying things: data to stdout, words to stderr, and nothing that could take over the terminal."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pulse_core.model.text import clean

if TYPE_CHECKING:  # rich costs 40 ms: imported where something is drawn
    from rich.console import Console, RenderableType

    from pulse_core.app.append import Appended
    from pulse_core.model.event import Event

UNBOUNDED = 1_000_000
"""Columns of a pipe."""
FORMAT = 1
"""Of what is printed as JSON; raised when a field is taken away or is of another type, as docs/json.md promises."""
_HALF = re.compile("[\ud800-\udfff]")
QUIET = 1.0
"""Seconds without a word before a fold of the log says how far it is."""


def put(text: str, end: str = "\n") -> None:
    """Data for whoever reads stdout, at once; on a terminal whatever could control that is escaped."""
    if sys.stdout.isatty():
        text = "\t".join(map(clean, text.split("\t")))
    print(text, end=end, flush=True)


def put_hanging(text: str, indent: int) -> None:
    """A line of data; on a terminal that is narrower than it, what is left of it follows on lines that begin so far in."""
    if sys.stdout.isatty():
        from shutil import get_terminal_size  # most commands need neither
        from textwrap import fill

        width = get_terminal_size().columns
        indent = min(indent, width // 3)
        text = fill(clean(text), max(width, 1), subsequent_indent=" " * indent, break_on_hyphens=False)
        print(text, flush=True)
    else:
        put(text)


def put_json(value: Any, by_name: bool = False) -> None:
    """A value as JSON: on one line for pipes, indented for a terminal. by_name: it has an object for each of many names."""
    value = {name: with_format(one) for name, one in value.items()} if by_name else with_format(value)
    put(json_text(value, indent=2 if sys.stdout.isatty() else None))


def put_line(value: Any) -> None:
    """A value as one line of JSON, wherever it goes."""
    put(json_text(with_format(value)))


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON; what is half a character, as of a file's name that is not UTF-8, is shown as `\\udcff`."""
    words = json.dumps(value, indent=indent)
    if "\\ud" not in words:
        return words
    spelled = _HALF.sub(lambda half: f"\\\\u{ord(half[0]):x}", json.dumps(value, ensure_ascii=False))
    return json.dumps(json.loads(spelled), indent=indent)


def with_format(value: Any) -> Any:
    """The object, or each of the array, with the number of the format of all that is printed as JSON."""
    if isinstance(value, Mapping):
        return {"format": FORMAT, **value}
    return [with_format(one) for one in value] if isinstance(value, list | tuple) else value


def say(words: str) -> None:
    """Words for a person, on stderr."""
    print(clean(words), file=sys.stderr)


@contextmanager
def progress_line(words: str) -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what is being done; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status(words) as line:
        yield line.update


def fold_progress(
    batches: "Iterable[Sequence[Event]]", last: int, quiet: float = QUIET
) -> "Iterator[Sequence[Event]]":
    """The same batches of rows; what takes longer tells on a terminal how far they are of the last row."""
    began = time.monotonic()
    with ExitStack() as drawing:
        update = None
        for batch in batches:
            if update is None and time.monotonic() - began >= quiet:
                update = drawing.enter_context(progress_line("folding the log …"))
            if update:
                update(f"folding the log … row {batch[-1].seq:,} of {last:,}")
            yield batch


def console() -> "Console":
    """Where tables and trees are drawn again and again; as wide as the terminal, or wide enough for a pipe."""
    return _console(None if sys.stdout.isatty() else 160)


def draw(drawn: "RenderableType") -> None:
    """Print a table, a tree or text once; into a pipe each row is one line, however long it is."""
    whole = _console(None if sys.stdout.isatty() else UNBOUNDED)
    if sys.stdout.isatty():
        whole.print(drawn)
        return
    with whole.capture() as captured:
        whole.print(drawn)
    put("\n".join(line.rstrip() for line in captured.get().removesuffix("\n").split("\n")))


def _console(width: int | None) -> "Console":
    from rich.console import Console
    from rich.segment import Segment

    class EscapingConsole(Console):
        """Escapes all that is text in what it draws; what views have cleaned stays as it is."""

        def render(self, *what: Any, **options: Any) -> "Iterable[Segment]":
            for text, style, control in super().render(*what, **options):
                yield Segment(text if control else clean(text), style, control)

    return EscapingConsole(highlight=False, markup=False, emoji=False, width=width)


def put_or_draw(value: Any, as_json: bool, view: str, nothing: str = "") -> None:
    """A value as JSON, or as `MODULE.FUNCTION` of the views draws it for people: that is imported only then.

    nothing: what is said instead, where there is nothing to draw.
    """
    if as_json:
        put_json(value)
    elif nothing and not value:
        say(nothing)
    else:
        module, _, function = view.rpartition(".")
        draw(getattr(import_module(f"upulse_cli.{module}"), function)(value))


def say_when(answer: "Appended") -> None:
    """Say that it will take effect later, if no daemon runs."""
    if not answer.by_daemon:
        say("no daemon runs; this takes effect when one starts (upulse daemon start)")


class CommandResult(NamedTuple):
    """What a command has changed. text: data for people; value: what was changed as it is now, for programs, None if it is
    gone; note: words for people; answer: of the append, if an event was recorded."""

    text: str = ""
    value: Callable[[], Any] = lambda: None
    note: str = ""
    answer: "Appended | None" = None


def show_change(change: CommandResult, as_json: bool) -> None:
    """Print a change: the value as JSON, or the text."""
    if as_json:
        put_json(change.value())
    elif change.text:
        put(change.text)
    if change.note:
        say(change.note)
    if change.answer:
        say_when(change.answer)
