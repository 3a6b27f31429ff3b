"""One tick with a full house: 50 rules, 1,000 open effects, 20 senses; and whether an old log makes it slower."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulse_adapters.config.home import Home
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.stores import MemoryVitals
from pulse_core.daemon import Daemon
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, ErrorReported
from pulse_core.model.tick import TickRecord
from tests.benchmarks.crowd import RULES, SENSES, Looks, windows
from tests.benchmarks.filled import MILLION, filled_home
from tests.benchmarks.harness import directory, made_home
from tests.benchmarks.inside import living
from tests.benchmarks.table import Row, percentile, spread, times

OPEN = 1_000
TICKS, TURNS = 100, 10
CONFIG = "[daemon]\nstop_grace = '0s'\n[budget]\nactions_per_minute = 0\ncapability_actions_per_minute = 0\n"


class Records(MemoryVitals):
    """Vitals that tell when the whole onion of a tick was folded."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: asyncio.Queue[TickRecord] = asyncio.Queue()

    def record(self, tick: TickRecord) -> None:
        """Keep it, and tell it if every rule was asked."""
        super().record(tick)
        if len(tick.layers) > RULES:
            self.whole.put_nowait(tick)


async def never(event: Event) -> None:
    """An action that never ends, so that its effect stays open."""
    await asyncio.Event().wait()


class House:
    """A running daemon with everything that a tick has to look at, and what its ticks took."""

    def __init__(self, daemon: Daemon, records: Records) -> None:
        self.daemon, self.records = daemon, records
        self.quiet: list[float] = []
        self.emitting: list[float] = []

    async def furnish(self) -> None:
        """Open effects, and a minute of samples of each sense."""
        log = self.daemon.parts.log
        wishes = [
            Effect(action="note", key=f"open-{n}", params={"n": n}, reason="waits") for n in range(OPEN)
        ]
        await log.append(*(Draft(wish, subject=wish.key) for wish in wishes))
        for window in windows(self.daemon.parts.clock.now()).values():
            self.daemon.watch.remember(window.samples)

    async def tick(self, number: int) -> None:
        """So many ticks, each with one event of news; what they took in milliseconds is kept."""
        for _ in range(number):
            await self.daemon.parts.log.append(Draft(ErrorReported(message="news"), subject="bench"))
            while not self.records.whole.empty():
                self.records.whole.get_nowait()
            self.daemon.ticker.waker("bench")
            record = await self.records.whole.get()
            (self.emitting if record.effects else self.quiet).append(record.took_us / 1000)


@asynccontextmanager
async def furnished(home: Home) -> AsyncIterator[House]:
    """A house over this log."""
    rules, records = [Looks(number) for number in range(RULES)], Records()
    executors = {"note": MemoryExecutor(deed=never)}
    async with living(home, rules=rules, executors=executors, vitals=records) as daemon:
        house = House(daemon, records)
        await house.furnish()
        yield house


async def measure(small: Home, large: Home) -> tuple[House, House]:
    """Ticks over a young log and an old one, in turn and in one process."""
    async with furnished(small) as young, furnished(large) as old:
        for turn in range(TURNS + 1):
            for house in (young, old):
                await house.tick(TICKS)
                if not turn:  # the first turn warms up
                    house.quiet.clear()
                    house.emitting.clear()
    return young, old


def run(rows: int = MILLION) -> list[Row]:
    """The tick's own time until its effects are on disk, and the old log's beside the young one's."""
    with directory() as place:
        large = filled_home(rows)
        large.config.write_text(CONFIG)
        young, old = asyncio.run(measure(made_home(place / "home", CONFIG), large))
        large.config.write_text("# the defaults\n")
    every = young.quiet + young.emitting + old.quiet + old.emitting
    late, early = percentile(old.quiet, 50), percentile(young.quiet, 50)
    what = f"tick: {RULES} rules, {OPEN:,} open effects, {SENSES} senses"
    return [
        Row(what, "p99 <= 4 ms", f"{spread(every)}; emitting: {spread(young.emitting + old.emitting)}"),
        Row(
            f"- p50 with {rows:,} events",
            "<= 1.2 x of 1,000",
            f"{late:.3f} ms",
            f"{early:.3f} ms (1,000)",
            times(late, early),
        ),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
