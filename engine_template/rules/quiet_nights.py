"""At night only what can't wait makes a noise; the rest is told in the morning, if it is still true."""

from dataclasses import replace
from fnmatch import fnmatchcase

from pulse_core import Effect, Inner, Snapshot, Verdict

HOUR_US = 3_600_000_000
NIGHT, MORNING = 23, 7
"""Hours of the day, in UTC."""
URGENT = ("notify:disk-fills-up:*",)
"""The keys of notices that may wake somebody."""


async def quiet_nights(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Hold back the engine's own notices at night, but urgent ones; survival's are outside, and never held back.

    Nothing is lost: a rule whose notice was not sent wishes for it again, tick after tick.
    """
    verdict = await inner(prev, curr)
    hour = curr.now.at // HOUR_US % 24
    if MORNING <= hour < NIGHT:
        return verdict
    loud = tuple(effect for effect in verdict.effects if not can_wait(effect))
    held = [effect.key for effect in verdict.effects if can_wait(effect)]
    return replace(verdict, effects=loud).noting(*(f"{key} waits for the morning" for key in held))


def can_wait(effect: Effect) -> bool:
    """Whether it is a notice that need not wake anybody."""
    return effect.action == "notify" and not any(fnmatchcase(effect.key, pattern) for pattern in URGENT)
