"""One tick with a full house: 50 rules, 1,000 open effects, 20 senses; and whether an old log makes it slower."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.memory import MemoryExecutor
from pulse_core.daemon import Daemon
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, ErrorReported
from pulse_core.model.moment import Moment
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections import Snapshot
from pulse_core.record.view import advanced
from pulse_core.rules.onion import Inner
from tests.benchmarks.filled import MILLION, filled_home
from tests.benchmarks.ground import directory, made_home
from tests.benchmarks.inside import built
from tests.benchmarks.table import Row, percentile, spread, times

RULES, OPEN, SENSES, SAMPLES = 50, 1_000, 20, 12
TICKS, TURNS = 100, 10
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


@asynccontextmanager
async def prepared(home: Home) -> AsyncIterator[Daemon]:
    """A daemon whose ticks are called by hand, with everything that it has to look at."""
    rules = [Looks(number) for number in range(RULES)]
    async with built(home, inside=rules, executors={"note": MemoryExecutor()}) as daemon:
        p = daemon.parts
        wishes = (
            Effect(action="note", key=f"open-{n}", params={"n": n}, reason="waits") for n in range(OPEN)
        )
        await p.log.append(*(Draft(wish, subject=wish.key) for wish in wishes))
        p.view.stand_at(await advanced(p.log, p.view(), p.log.head.seq))
        p.log.listen(p.view.hear)
        for key, window in windows(p.clock.now()).items():
            daemon.watch.remember([sample._replace(key=key) for sample in window.samples])
        yield daemon


async def ticks(daemon: Daemon, number: int) -> tuple[list[float], list[float]]:
    """Milliseconds of so many ticks, each with one event of news: quiet ones, and those that emitted."""
    quiet, emitting = [], []
    for _ in range(number):
        await daemon.parts.log.append(Draft(ErrorReported(message="news"), subject="bench"))
        began = time.perf_counter()
        await daemon.ticker.tick("bench")
        whole = (time.perf_counter() - began) * 1000
        if daemon.ticker.number % EMITS_EVERY == 0:
            emitting.append(daemon.ticker.took_us[-1] / 1000)
        else:
            quiet.append(whole)
    return quiet, emitting


async def measure(small: Home, large: Home) -> tuple[list[list[float]], list[list[float]]]:
    """Quiet and emitting ticks over a young log and an old one, in turn and in one process."""
    quiet: list[list[float]] = [[], []]
    emitting: list[list[float]] = [[], []]
    async with AsyncExitStack() as stack:
        daemons = [await stack.enter_async_context(prepared(home)) for home in (small, large)]
        for turn in range(TURNS + 1):
            for place, daemon in enumerate(daemons):
                calm, busy = await ticks(daemon, TICKS)
                if turn:  # the first turn warms up
                    quiet[place] += calm
                    emitting[place] += busy
    return quiet, emitting


def run(rows: int = MILLION) -> list[Row]:
    """The tick's own time until its effects are on disk, and the old log's beside the young one's."""
    with directory() as place:
        quiet, emitting = asyncio.run(measure(young(place), filled_home(rows)))
    gc.collect()
    every = [quiet[0] + emitting[0], quiet[1] + emitting[1]]
    old, new = percentile(quiet[1], 50), percentile(quiet[0], 50)
    what = f"tick: {RULES} rules, {OPEN:,} open effects, {SENSES} senses"
    return [
        Row(what, "p99 <= 4 ms", f"{spread(every[1])}; emitting: {spread(emitting[1])}"),
        Row(
            f"- p50 with {rows:,} events",
            "<= 1.2 x of 1,000",
            f"{old:.3f} ms",
            f"{new:.3f} ms",
            times(old, new),
        ),
    ]


def young(place: Path) -> Home:
    """A home with no past but what the benchmark adds."""
    return made_home(place / "home", "")


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
