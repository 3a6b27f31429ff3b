"""Durations as people write them: `500ms`, `1.5s`, `10m`, `1h30m`, `7d`."""

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
    """The shortest way to write a duration with one unit, exact for whole units: `90s`, `2m`, `1.5ms`."""
    if microseconds == 0:
        return "0s"
    for unit in ("d", "h", "m", "s", "ms"):
        if microseconds % UNITS[unit] == 0:
            return f"{microseconds // UNITS[unit]}{unit}"
    unit = "s" if microseconds > UNITS["s"] else "ms"
    return f"{microseconds / UNITS[unit]:.1f}{unit}"


def rough_duration(microseconds: int) -> str:
    """Format a duration for people, rounded."""
    for unit in (3_600_000_000, 60_000_000, 1_000_000, 100_000):
        if microseconds >= unit:
            return format_duration(round(microseconds / unit) * unit)
    return "a moment"
