"""From a sample over a threshold to the call of the executor that answers it, with all of it on disk."""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, ErrorReported
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Reading, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from tests.benchmarks.harness import boot_us, directory, made_home
from tests.benchmarks.inside import living
from tests.benchmarks.table import Row, percentile, spread, times

ROUNDS = 200
INTERVAL = 0.05


class Gauge:
    """A watcher whose value crosses its threshold at every other sample."""

    name = key = "gauge"
    interval, timeout = INTERVAL, 1.0

    def __init__(self) -> None:
        self.nudge = asyncio.Event()
        self.sampled: dict[int, int] = {}
        self._numbers = count(1)

    async def collect(self) -> Reading:
        """The next number, and whether it is over the threshold; the moment is noted."""
        number = next(self._numbers)
        self.sampled[number] = boot_us()
        return Reading({"number": number, "over": number % 2 == 0})

    def should_wake(self, window: Window) -> bool:
        """Whether the newest is over."""
        return window.last is not None and bool(window.last.data["over"])


async def answer(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """One effect for each sample that is over."""
    verdict = await inner(prev, curr)
    last = curr.window("gauge").last
    if last is None or not last.data["over"]:
        return verdict
    return verdict.plus(Effect(action="note", key=f"over-{last.data['number']}", reason="over the threshold"))


class Deeds:
    """An executor that notes when it was called for each sample: its effect is then executing and on disk."""

    def __init__(self) -> None:
        self.at: dict[int, int] = {}

    async def __call__(self, event: Event) -> None:
        self.at[int(event.subject.removeprefix("over-"))] = boot_us()


async def measure(place: Path, rounds: int) -> tuple[Sequence[float], Sequence[float]]:
    """Milliseconds from sample to the executor's call, and of a bare append of the same log in between."""
    home, gauge, bare = (
        made_home(place / "home", "[budget]\nactions_per_minute = 0\ncapability_actions_per_minute = 0\n"),
        Gauge(),
        [],
    )
    deeds = Deeds()
    executors = {"note": MemoryExecutor(deed=deeds)}
    async with living(home, watchers=(gauge,), rules=(answer,), executors=executors) as daemon:
        while len(gauge.sampled) < 2 * rounds:
            await asyncio.sleep(INTERVAL * 1.5)
            began = boot_us()
            await daemon.parts.log.append(Draft(ErrorReported(message="a bare append"), subject="bench"))
            bare.append((boot_us() - began) / 1000)
    took = [(deeds.at[number] - at) / 1000 for number, at in gauge.sampled.items() if number in deeds.at]
    return took, bare


def run(rounds: int = ROUNDS) -> list[Row]:
    """What comes on top of the sampling interval."""
    with directory() as place:
        took, bare = asyncio.run(measure(place, rounds))
    return [
        Row(
            f"polled threshold: sample -> effect executing, {len(took)} crossings",
            "<= 20 ms after the sample",
            spread(took),
            f"{spread(bare)} (one append)",
            times(percentile(took, 50), percentile(bare, 50)),
        )
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
