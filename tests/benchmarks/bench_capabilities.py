"""What ten more capabilities cost the reflex: their projections are carried along, their rules are not folded."""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pulse_core.composition import FOLD, SURVIVAL
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EffectAcked, EffectExecuting, ErrorReported
from pulse_core.model.moment import Moment
from pulse_core.model.payload import encode
from pulse_core.projections.fold import Fold
from pulse_core.projections.state import CORE, Snapshot, State, StateProjection
from pulse_core.tick import RuleFolds
from tests.benchmarks.crowd import Looks, windows
from tests.benchmarks.table import Row, percentile, spread, times

TOYS, OPEN, TICKS = 10, 1_000, 2_000


@dataclass(frozen=True, slots=True)
class Toy:
    """The value of a toy capability's projection."""

    seen: int = 0


def toy(number: int) -> StateProjection[Toy]:
    """A projection of one kind that hardly ever comes."""

    def after(value: Toy, events: Iterable[Event]) -> Toy:
        return Toy(value.seen + sum(event.kind == kind for event in events))

    kind = f"toy-{number}"
    return StateProjection(kind, 1, Toy, frozenset({kind}), after)


def row(seq: int, payload: Effect | EffectExecuting | EffectAcked | ErrorReported, subject: str) -> Event:
    """An event of the benchmark's log."""
    return Event(
        seq, f"e{seq}", 10**15 + seq, "boot", seq, payload.kind, subject, "pulse", "", None, encode(payload)
    )


async def recorded(effects: Sequence[Effect]) -> Collection[str]:
    """Every effect is on disk at once."""
    return [effect.key for effect in effects]


class Machine:
    """Folds what one tick brings, and then the reflex; extra: projections of more capabilities."""

    def __init__(self, extra: Sequence[StateProjection[Toy]]) -> None:
        own = [one for name, one in FOLD.projections.items() if name not in {core.name for core in CORE}]
        self.fold = Fold((*CORE, *own, *extra))
        self.rules = RuleFolds(SURVIVAL, None, recorded, [Looks(number) for number in range(len(extra))])
        wishes = [row(seq, Effect(action="note", key=f"k{seq}"), f"k{seq}") for seq in range(1, OPEN + 1)]
        self.state: State = self.fold(self.fold.start, wishes)
        self.prev = Snapshot(1, Moment(10**15, "boot", 0), state=self.state)
        self.took: list[float] = []

    async def tick(self) -> None:
        """Milliseconds from the news to the verdict."""
        seq = self.state.seq
        news = [
            row(seq + 1, Effect(action="note", key=f"k{seq + 1}"), f"k{seq + 1}"),
            row(seq + 2, EffectExecuting(), f"e{seq + 1}"),
            row(seq + 3, EffectAcked(took_us=5), f"e{seq + 1}"),
            row(seq + 4, ErrorReported(message="no"), "watcher:x"),
        ]
        now = Moment(10**15 + seq, "boot", seq)
        senses = windows(now)
        began = time.perf_counter()
        self.state = self.fold(self.state, news)
        curr = Snapshot(self.prev.tick + 1, now, self.prev.settings, senses, self.state)
        await self.rules.reflex(self.prev, curr)
        self.took.append((time.perf_counter() - began) * 1000)
        self.prev = curr


async def measured(ticks: int) -> tuple[Sequence[float], Sequence[float]]:
    """Milliseconds of each tick without and with the toys, in turn: noise is shared."""
    plain, crowded = Machine(()), Machine([toy(number) for number in range(TOYS)])
    for _ in range(ticks):
        await plain.tick()
        await crowded.tick()
    return plain.took, crowded.took


def run(ticks: int = TICKS) -> list[Row]:
    """The reflex with the capabilities that there are, and with ten more."""
    plain, crowded = asyncio.run(measured(ticks))
    return [
        Row(
            f"fold and reflex with {TOYS} more capabilities, {OPEN:,} effects open",
            "as without them",
            spread(crowded),
            f"{spread(plain)} (without)",
            times(percentile(crowded, 50), percentile(plain, 50)),
        )
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
