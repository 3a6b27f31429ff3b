"""Fifty rules that look at twenty senses, and a minute of what those have seen."""

from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner

RULES, SENSES, SAMPLES = 50, 20, 12
EMITS_EVERY = 20


class Looks:
    """A rule that reads one sense's window and, now and then if it is the one that may, wishes something."""

    def __init__(self, number: int) -> None:
        self.key, self.emits = f"sense-{number % SENSES}", number == 0
        self.__name__ = f"looks_{number}"

    async def __call__(self, prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        verdict = await inner(prev, curr)
        values = curr.window(self.key).values("value")
        if sum(values) < 0 or curr.effects.by_key(self.key):
            return verdict.within(100)
        if self.emits and curr.tick % EMITS_EVERY == 0:
            return verdict.plus(Effect(action="note", key=f"tick-{curr.tick}", reason="it is time"))
        return verdict


def windows(now: Moment) -> dict[str, Window]:
    """A minute of samples of each sense."""
    moments = [now.plus(-5_000_000 * age) for age in range(SAMPLES, 0, -1)]
    return {
        f"sense-{sense}": Window(
            tuple(
                Sample(sense * SAMPLES + place, f"sense-{sense}", moment, {"value": 0.5, "more": place})
                for place, moment in enumerate(moments)
            )
        )
        for sense in range(SENSES)
    }
