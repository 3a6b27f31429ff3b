"""The rule that holds back effects that match a silence."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from pulse_core.model.durations import duration_text
from pulse_core.model.glob import glob_fault
from pulse_core.model.text import count, listed
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.holds import Hold, longest_hold, told_as_held, was_due
from pulse_core.silences.projection import SILENCES
from pulse_core.silences.settings import WINDOWS, SilenceSettings

MINUTE = 60_000_000
DAY = 1_440 * MINUTE
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EPOCH_DAY = DAYS.index("thu")
MOST = 200
"""Added silences that count at a time, the oldest: every effect is compared with each."""
SHOWN = 40
"""Characters of a pattern that are shown."""
NAMED = 3
"""Silences that are named in the status."""
LOOK_BACK = 7
"""Days: no window is longer."""


async def silence(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Hold back every effect whose key matches a silence that holds, and look again when that ends."""
    verdict = await inner(prev, curr)
    if not verdict.effects:
        return verdict
    verdict = _with_what_held_back(verdict, prev, curr)
    if not (quiet := tuple(silences_in_force(curr))):
        return verdict
    held = {effect.key: by for effect in verdict.effects if (by := longest_hold(effect.key, quiet))}
    kept = tuple(effect for effect in verdict.effects if effect.key not in held)
    for key, by in held.items():
        note = f"{key} is held back by {by.whose}, for another {duration_text(by.left_us)}"
        verdict = verdict.noting(note).within(by.left_us // 1000 + 1)
    return replace(verdict, effects=kept) if held else verdict


def _with_what_held_back(verdict: Verdict, prev: Snapshot, curr: Snapshot) -> Verdict:
    """The verdict in which new effects say which silence had held them back."""
    effects, ended = list(verdict.effects), tuple(silences_in_force(prev))
    for place, effect in enumerate(effects) if ended else ():
        if was_due(effect, prev, curr) and (by := longest_hold(effect.key, ended)):
            effects[place] = told_as_held(effect, by.whose)
    return replace(verdict, effects=tuple(effects))


def silences_in_force(curr: Snapshot) -> Iterator[Hold]:
    """The silences that hold now: those that a person has added, then the recurring ones of the settings."""
    for one in islice(curr.of(SILENCES).holding(curr.now).values(), MOST):
        whose = f"the silence {one.match!r} of {one.by}{f' ({one.why})' if one.why else ''}"
        yield Hold(one.match, one.left(curr.now), whose)
    for window in WINDOWS.of(curr.settings):
        if (left := remaining(window, curr.now.at)) > 0:
            why = f" ({window.why})" if window.why else ""
            yield Hold(window.match, left, f"the recurring silence {window.match!r}{why}")


def status_lines(curr: Snapshot) -> Iterator[str]:
    """The silences that hold, since what is never wished nobody would miss, as a notice; and those that match nothing."""
    holds = list(silences_in_force(curr))
    faults = {one.match: fault for one in holds if (fault := glob_fault(one.match))}
    quiet = [
        f"{one.match} for another {duration_text(one.left_us)}" for one in holds if one.match not in faults
    ]
    if quiet:
        yield f"silences  {listed(quiet, NAMED)}"
    if (over := len(curr.of(SILENCES).holding(curr.now)) - MOST) > 0:
        yield f"{count(over, 'silence')} too many: the oldest {MOST} count; remove some: upulse silence list"
    for match, fault in faults.items():
        yield f"a silence holds nothing back: {fault}: {match[:SHOWN]!r}"


def remaining(window: SilenceSettings, at: int) -> int:
    """Microseconds that a recurring window still holds at this time (UTC microseconds); 0 outside of it."""
    began = (start for start in _starts(window, at, range(-LOOK_BACK, 1)) if start <= at)
    return max(0, max((start + window.for_ - at for start in began), default=0))


def next_start(window: SilenceSettings, at: int) -> int:
    """When it begins the next time after this one, UTC microseconds."""
    return next(start for start in _starts(window, at, range(LOOK_BACK + 1)) if start > at)


def _starts(window: SilenceSettings, at: int, days: range) -> Iterator[int]:
    """When it begins on each of these days that is one of its own, counted from today."""
    hours, minutes = window.at.split(":")
    for day in (at // DAY + offset for offset in days):
        if not window.days or DAYS[(day + EPOCH_DAY) % 7] in window.days:
            yield day * DAY + (int(hours) * 60 + int(minutes)) * MINUTE
