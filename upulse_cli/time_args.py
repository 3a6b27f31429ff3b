"""Moments and durations as people write them on a command line, and as they read them."""

import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from datetime import time as clock

from pulse_core.model.durations import duration_text, parse_duration
from pulse_core.model.moment import on_local_clock
from pulse_core.ports.readers import EventQuery

US = 1_000_000
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPAN = re.compile(r"((?:[0-9.]+[a-z]+)+)( ago)?")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
LONGEST_ROW = 18
"""Digits of a row's number, for SQLite."""


def since_arg(text: str) -> EventQuery:
    """A moment as `moment_arg` takes it, or a row's number; else a usage error."""
    if text.isascii() and text.isdigit():
        if len(text) > LONGEST_ROW:
            raise _usage_error("no row has a number of so many digits", "--since")
        return EventQuery(since_seq=int(text))
    return EventQuery(since_at=_moment(text, "--since", " or a row's number"))


def moment_arg(text: str | None, option: str) -> int | None:
    """UTC microseconds of `10m` ago, `15:20`, `yesterday`, `monday` or a time in ISO 8601, local if it names no zone; None
    for None; else a usage error."""
    return None if text is None else _moment(text, option)


def coming_arg(text: str, option: str) -> int:
    """UTC microseconds of `2h` from now, the next `15:20`, `tomorrow`, the next `monday` or a time in ISO 8601, local if it
    names no zone; else a usage error. A time that has passed is taken, and said."""
    now = datetime.now()
    try:
        if (span := _SPAN.fullmatch(text)) and not span[2]:
            return time.time_ns() // 1000 + parse_duration(span[1])
        then = coming_moment(text.lower(), now) or datetime.fromisoformat(text)
        at = round(then.timestamp() * US)
    except (ValueError, OverflowError, OSError) as error:
        words = f"expected 2h, 15:20, tomorrow, monday, 2026-01-31 or 2026-01-31T08:15, not {text!r}"
        raise _usage_error(words, option) from error
    if at < time.time_ns() // 1000:
        print(f"{option} {text}: that has passed", file=sys.stderr)
    return at


def when_words(text: str) -> str:
    """From such a moment on, in words: `in the last 24h` or `since yesterday`."""
    span = _SPAN.fullmatch(text)
    return f"in the last {span[1]}" if span else f"since {text}"


def _moment(text: str, option: str, other: str = "") -> int:
    try:
        if span := _SPAN.fullmatch(text):
            return time.time_ns() // 1000 - parse_duration(span[1])
        then = local_moment(text.lower(), now := datetime.now()) or datetime.fromisoformat(text)
        if words := yesterday_note(text, now):
            print(f"{option} {text}: {words}", file=sys.stderr)
        at = round(then.timestamp() * US)
    except (ValueError, OverflowError, OSError) as error:
        words = f"expected 10m, 15:20, yesterday, monday, 2026-01-31 or 2026-01-31T08:15{other}, not {text!r}"
        raise _usage_error(words, option) from error
    if option == "--since" and at > time.time_ns() // 1000:
        print(f"--since {text}: that has not come yet", file=sys.stderr)
    return at


def local_moment(text: str, now: datetime) -> datetime | None:
    """The last `15:20`, or the beginning of `today`, `yesterday` or the last `monday` before today, on the clock of `now`.

    None for other words; raises ValueError for a time that no day has.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if _CLOCK.fullmatch(text):
        often = _times_of_day(text, now, (-1, 0))
        return next(one for one in reversed(often) if _has_come(one, now))
    if text in ("today", "yesterday"):
        return midnight - timedelta(days=text == "yesterday")
    if text in WEEKDAYS:
        return midnight - timedelta(days=(now.weekday() - WEEKDAYS.index(text) - 1) % 7 + 1)
    return None


def coming_moment(text: str, now: datetime) -> datetime | None:
    """The next `15:20`, or the beginning of `tomorrow` or of the next `monday` after today, on the clock of `now`.

    None for other words; raises ValueError for a time that no day has.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if _CLOCK.fullmatch(text):
        return next(one for one in _times_of_day(text, now, (0, 1)) if not _has_come(one, now))
    if text == "tomorrow":
        return midnight + timedelta(days=1)
    if text in WEEKDAYS:
        return midnight + timedelta(days=(WEEKDAYS.index(text) - now.weekday() - 1) % 7 + 1)
    return None


def _times_of_day(text: str, now: datetime, days: Sequence[int]) -> Sequence[datetime]:
    """This time of so many days after today, in order."""
    then = datetime.combine(now, clock.fromisoformat(f"0{text}" if text[1] == ":" else text))
    # When summer time ends, an hour comes twice; the clock of `now` tells which of them it is by its fold.
    return [(then + timedelta(days=day)).replace(fold=fold) for day in days for fold in (0, 1)]


def _has_come(then: datetime, now: datetime) -> bool:
    """Whether the clock has reached this time. One that the beginning of summer time leaves out comes as that is passed."""
    is_left_out = then.replace(fold=0).timestamp() > then.replace(fold=1).timestamp()
    return then <= now if is_left_out else then.timestamp() <= now.timestamp()


def yesterday_note(text: str, now: datetime) -> str:
    """That this time of day is yesterday's, since today's has not come yet; empty for anything else."""
    then = local_moment(text, now) if _CLOCK.fullmatch(text) else None
    return f"yesterday's, since it is {now:%H:%M} now" if then and then.date() != now.date() else ""


def duration_arg(text: str, option: str) -> int:
    """Microseconds of `10m`, `1.5h`; else a usage error that names the option."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise _usage_error(str(error), option) from error


def _usage_error(words: str, option: str) -> Exception:
    from typer import BadParameter  # the daemon reads and writes times, too, and needs no command line

    return BadParameter(words, param_hint=option)


def local(at: str | None, *, date: bool = False, named: bool = False) -> str:
    """An ISO 8601 time as the local clock of today, or with its date if it is of another day.

    With the name of its zone if it is to be named, or if it is another one than now, as before a change of summer time.
    """
    if not at:
        return "-"
    then, now = on_local_clock(datetime.fromisoformat(at)), on_local_clock(datetime.now(UTC))
    today = then.date() == now.date()
    words = then.strftime("%H:%M:%S" if today and not date else "%Y-%m-%d %H:%M:%S")
    return f"{words} {_zone_name(then)}" if named or then.utcoffset() != now.utcoffset() else words


def local_span(first: str, last: str, between: str = " to ", named: bool = False) -> str:
    """From when to when: the second with its date, too, if the first has one, whose day it would else seem to be of."""
    return f"{local(first)}{between}{local(last, date=local(first) == local(first, date=True), named=named)}"


def zone() -> str:
    """The name of the zone that `local` times are of, as `CET` or `UTC+03`, unless they name another one."""
    return _zone_name(on_local_clock(datetime.now(UTC)))


def _zone_name(then: datetime) -> str:
    name = then.tzname() or "UTC"
    return f"UTC{name}" if name.startswith(("+", "-")) else name


def ago(at: str | None) -> str:
    """How long ago an ISO 8601 time was, roughly."""
    if not at:
        return "-"
    seconds = max(0, round((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()))
    return duration_text(seconds * US)
