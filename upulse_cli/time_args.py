"""Moments and durations as people write them on a command line, and as they read them."""

import re
import time
from datetime import UTC, datetime

from pulse_core.model.durations import parse_duration
from pulse_core.ports.readers import EventQuery

US = 1_000_000
LONGEST_ROW = 18
"""Digits of a row's number, for SQLite."""


def since_arg(text: str) -> EventQuery:
    """`10m` ago, a time in ISO 8601 (local if it names no zone), or a row's number; else a usage error."""
    if text.isascii() and text.isdigit():
        if len(text) > LONGEST_ROW:
            raise _usage_error("no row has a number of so many digits", "--since")
        return EventQuery(since_seq=int(text))
    return EventQuery(since_at=_moment(text, "--since", ", nor a row's number"))


def moment_arg(text: str | None, option: str) -> int | None:
    """UTC microseconds of `10m` ago or of a time in ISO 8601; None for None; else a usage error."""
    return None if text is None else _moment(text, option)


def _moment(text: str, option: str, nor: str = "") -> int:
    if span := re.fullmatch(r"([0-9.]+[a-z]+)( ago)?", text):
        return time.time_ns() // 1000 - duration_arg(span[1], option)
    try:
        return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * US)
    except (ValueError, OverflowError, OSError) as error:
        words = f"{text!r} is neither a duration ('10m'), nor a time ('2026-01-31T08:15'){nor}"
        raise _usage_error(words, option) from error


def duration_arg(text: str, option: str) -> int:
    """Microseconds of `10m`, `1.5h`; else a usage error that names the option."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise _usage_error(str(error), option) from error


def _usage_error(words: str, option: str) -> Exception:
    from typer import BadParameter  # the daemon reads and writes times, too, and needs no command line

    return BadParameter(words, param_hint=option)


def local(at: str | None, *, date: bool = False) -> str:
    """An ISO 8601 time as the local clock of today, or with its date if it is of another day."""
    if not at:
        return "-"
    then = datetime.fromisoformat(at).astimezone()
    today = then.date() == datetime.now().astimezone().date()
    return then.strftime("%H:%M:%S" if today and not date else "%Y-%m-%d %H:%M:%S")


def ago(at: str | None) -> str:
    """How long ago an ISO 8601 time was, roughly."""
    if not at:
        return "-"
    seconds = max(0, round((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()))
    return took(seconds * US) if seconds >= 120 else f"{seconds} s"


def took(microseconds: float) -> str:
    """A measured duration with about three digits: `340 us`, `2.4 ms`, `1.2 s`, `3 min`, `5 h`, `2 days`."""
    for size, unit in ((86_400 * US, "days"), (3_600 * US, "h"), (60 * US, "min")):
        if microseconds >= 2 * size:
            return f"{microseconds / size:.0f} {unit}"
    if microseconds >= US:
        return f"{microseconds / US:.1f} s"
    return f"{microseconds / 1000:.1f} ms" if microseconds >= 1000 else f"{microseconds:.0f} us"
