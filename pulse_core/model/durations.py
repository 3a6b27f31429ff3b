"""Durations as settings have them, `500ms`, `10m`, `1h30m`, `7d`, and as people read them: `500 ms`, `10 min`, `1.5 h`."""

import re

UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
LONGEST = 36_500 * UNITS["d"]

_PART = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(us|ms|s|m|h|d)"
_SHAPE = re.compile(f"(?:{_PART})+")


def parse_duration(value: object) -> int:
    """Microseconds of a duration such as `10m` or `1h30m`; an integer is taken as microseconds already."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _SHAPE.fullmatch(value.strip()):
        microseconds = sum(float(number) * UNITS[unit] for number, unit in re.findall(_PART, value))
        if microseconds > LONGEST:
            raise ValueError(f"{value!r} is longer than 100 years; write at most '36500d'")
        return round(microseconds)
    raise ValueError(
        f"{value!r} is no duration; write a number and a unit, as '500ms', '10s', '5m', '1h30m', '7d'"
    )


def format_duration(microseconds: int) -> str:
    """The shortest way to write a duration in settings, exact for whole units: `90s`, `2m`, `23h55m`, `1.5ms`."""
    if microseconds == 0:
        return "0s"
    for unit in ("d", "h", "m", "s", "ms"):
        if microseconds % UNITS[unit] == 0:
            if unit == "m" and microseconds > UNITS["h"]:
                hours, rest = divmod(microseconds, UNITS["h"])
                return f"{hours}h{rest // UNITS[unit]}m"
            return f"{microseconds // UNITS[unit]}{unit}"
    unit = "s" if microseconds > UNITS["s"] else "ms"
    return f"{microseconds / UNITS[unit]:.1f}{unit}"


def duration_text(microseconds: float) -> str:
    """A duration for people, of about three digits: `340 us`, `2.4 ms`, `90 s`, `10.5 min`, `5 h`, `2 days`."""
    if not microseconds:
        return "0 s"
    for size, name in _NAMES:  # noqa: B007 - both are used after it
        least = size if size <= UNITS["s"] or microseconds % size == 0 else 2 * size
        if microseconds >= least:
            break
    number = microseconds / size
    text = f"{number:.0f}" if number >= 100 else f"{number:.1f}".removesuffix(".0")
    return f"{text} {'day' if (text, name) == ('1', 'days') else name}"


_NAMES = (
    (UNITS["d"], "days"),
    (UNITS["h"], "h"),
    (UNITS["m"], "min"),
    (UNITS["s"], "s"),
    (1_000, "ms"),
    (1, "us"),
)
