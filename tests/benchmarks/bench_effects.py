"""Effects that do nothing, from pending to acked, each step on disk: a thousand waiting, 32 at a time."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.daemon import Daemon
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, EffectAcked
from tests.benchmarks.harness import ROW, directory, made_home, raw_log
from tests.benchmarks.inside import living
from tests.benchmarks.table import Row, percentile, share

WAITING, AT_A_TIME, ROUNDS = 1_000, 32, 10


class Acks:
    """Counts acknowledged effects, as they are on disk."""

    def __init__(self) -> None:
        self.left = 0
        self.done = asyncio.Event()

    def hear(self, events: Sequence[Event]) -> None:
        """A listener of the log."""
        self.left -= sum(event.kind == EffectAcked.kind for event in events)
        if self.left <= 0:
            self.done.set()


async def settle(daemon: Daemon, acks: Acks, turn: int) -> float:
    """Effects per second from the append of a thousand to the last ack on disk."""
    keys = [f"note-{turn}-{number}" for number in range(WAITING)]
    drafts = [Draft(Effect(action="note", key=key, reason="bench"), subject=key) for key in keys]
    acks.left = WAITING
    acks.done.clear()
    began = time.perf_counter()
    await daemon.parts.log.append(*drafts)
    await acks.done.wait()
    return WAITING / (time.perf_counter() - began)


def raw(place: Path) -> float:
    """The same rows and commits on a bare table, effects per second."""
    rows = [(ROW,)] * AT_A_TIME
    sql = "INSERT INTO event (data) VALUES (?)"
    with closing(raw_log(place)) as log:
        began = time.perf_counter()
        for size in (WAITING, *[AT_A_TIME] * (2 * WAITING // AT_A_TIME)):
            log.execute("BEGIN")
            log.executemany(sql, rows if size == AT_A_TIME else [(ROW,)] * size)
            log.execute("COMMIT")
        return WAITING / (time.perf_counter() - began)


async def measure(place: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Rates of ours and of the raw limit, in turn."""
    home = made_home(place / "home", f"[daemon]\nconcurrency = {AT_A_TIME}\n")
    ours, bare, acks = [], [], Acks()
    async with living(home, executors={"note": MemoryExecutor()}) as daemon:
        daemon.parts.log.listen(acks.hear)
        await settle(daemon, acks, -1)
        for turn in range(rounds):
            bare.append(raw(place / f"raw-{turn}.db"))
            ours.append(await settle(daemon, acks, turn))
    return ours, bare


def run(rounds: int = ROUNDS) -> list[Row]:
    """The rate, as the median of the rounds; the best one beside it."""
    with directory() as place:
        ours, bare = asyncio.run(measure(place, rounds))
    middle, limit = percentile(ours, 50), percentile(bare, 50)
    return [
        Row(
            f"no-op effects pending -> executing -> acked, {WAITING:,} waiting, {AT_A_TIME} at a time",
            ">= 6,000/s",
            f"{middle:,.0f}/s (best {max(ours):,.0f})",
            f"{limit:,.0f}/s (same rows and commits)",
            share(middle, limit),
        )
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
