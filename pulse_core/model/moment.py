"""Points in time on two clocks: the wall clock for people, the boot clock for durations."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

US_PER_SECOND = 1_000_000
TICK_US = 10_000
"""A clock tick of a process's start time: a hundredth of a second, on every machine that Linux runs on today."""


class Moment(NamedTuple):
    """A point in time.

    at: UTC in integer microseconds since the epoch; boot: the kernel's boot id;
    mono: CLOCK_BOOTTIME in integer microseconds, comparable only within one boot.
    """

    at: int
    boot: str
    mono: int

    def since(self, then: "Moment") -> int:
        """Microseconds from `then` to this moment, never negative.

        Within one boot the boot clock decides; across boots the wall clock, but it is at least `mono`.
        """
        if self.boot == then.boot:
            return max(0, self.mono - then.mono)
        return max(self.at - then.at, self.mono, 0)

    def plus(self, microseconds: int) -> "Moment":
        """The moment this many microseconds later in the same boot."""
        return Moment(self.at + microseconds, self.boot, self.mono + microseconds)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = 253_402_128_000 * US_PER_SECOND
"""The end of 9999-12-29: two days later the calendar of Python ends, whatever an event may say, and one for some zones."""


def on_local_clock(then: datetime) -> datetime:
    """The same time on this machine's clock; in UTC where `TZ` has an offset of a day or more, which Python lacks."""
    try:
        return then.astimezone()
    except ValueError:
        return then.astimezone(UTC)


def local_text(at: int) -> str:
    """UTC microseconds in words for people, on this machine's clock: `2026-01-31 09:15:00 CET`."""
    then = datetime.fromtimestamp(min(at, LAST) / US_PER_SECOND, UTC)
    return on_local_clock(then).strftime("%Y-%m-%d %H:%M:%S %Z")


def utc_text(at: int) -> str:
    """UTC microseconds in words: `2026-01-31 08:15:00 UTC`."""
    return f"{iso(at)[:19].replace('T', ' ')} UTC"


def describe_span(began: int, ended: int) -> str:
    """Between which seconds something was, both in UTC microseconds, in words."""
    first, last = (iso(at)[:19].replace("T", " ") for at in (began, ended))
    return f"between {first} and {last[11:] if first[:10] == last[:10] else last} UTC"


def iso(at: int) -> str:
    """UTC microseconds as ISO 8601, as `2026-01-31T08:15:00.000250Z`."""
    return (EPOCH + timedelta(microseconds=min(at, LAST))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
