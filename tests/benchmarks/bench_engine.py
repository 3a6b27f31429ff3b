"""What the engine's rules cost a tick when they run in a process of their own, and what that process weighs."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EffectCancelled
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload, encode
from pulse_core.model.vitals import Sample
from pulse_core.ports.engine import Revision
from pulse_core.projections.state import Snapshot, State
from tests.benchmarks.bench_idle import memory
from tests.benchmarks.crowd import SENSES, windows
from tests.benchmarks.harness import compiled, directory
from tests.benchmarks.table import Row, percentile, spread

RULES, OPEN, TICKS, WARM = 20, 1_000, 2_000, 200
EVERY = 20
"""Ticks between two that wish something; each tick one effect is settled and another one wished."""
STARTS = 7
_RULE = """
from pulse_core import Effect, Inner, Snapshot, Verdict


async def looks_{n}(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    verdict = await inner(prev, curr)
    values = curr.window("sense-{n}").values("value")
    if sum(values) < 0 or curr.effects.by_key("sense-{n}"):
        return verdict.within(100)
    if {n} == 0 and curr.tick % {every} == 0:
        return verdict.plus(Effect(action="note", key=f"tick-{{curr.tick}}", reason="it is time"))
    return verdict
"""


def engine(root: Path) -> Revision:
    """An engine of rules that each look at a sense and at the open effects."""
    (root / "rules").mkdir(parents=True)
    for number in range(RULES):
        (root / "rules" / f"looks_{number}.py").write_text(_RULE.format(n=number, every=EVERY))
    imports = "".join(f"from rules.looks_{number} import looks_{number}\n" for number in range(RULES))
    (root / "engine.py").write_text(
        f"{imports}RULES = [{', '.join(f'looks_{number}' for number in range(RULES))}]\n"
    )
    return Revision("0" * 40, str(root))


def row(seq: int, payload: Payload, subject: str) -> Event:
    """A recorded event."""
    moment = Moment(10**15 + seq * 1_000, "boot", seq * 1_000)
    return Event(seq, f"id-{seq}", *moment, payload.kind, subject, "pulse", "host", None, encode(payload))


def wish(seq: int) -> Event:
    """An effect of an ordinary size."""
    effect = Effect(action="note", key=f"open-{seq}", params={"n": seq}, reason="waits for its turn", tick=1)
    return row(seq, effect, effect.key)


class House:
    """The daemon's side of a tick: a log that grows, senses that speak, and a host that is asked."""

    def __init__(self) -> None:
        self.state: State = FOLD(FOLD.start, [wish(seq) for seq in range(1, OPEN + 1)])
        now = Moment(10**15 + 10**9, "boot", 10**9)
        self.curr = Snapshot(1, now, windows=windows(now), state=self.state)

    def news(self) -> Sequence[Event]:
        """One effect is done, and another one wished."""
        seq = self.state.seq
        oldest = next(iter(self.state.effects.open))
        return [row(seq + 1, EffectCancelled(why="another one comes"), oldest), wish(seq + 2)]

    async def tick(self, host: ChildRuleHost) -> float:
        """Milliseconds of the call alone."""
        events = self.news()
        self.state = FOLD(self.state, events)
        host.feed(events)
        prev, now = self.curr, self.curr.now.plus(5_000_000)
        fresh = (
            Sample(10**6 + prev.tick * SENSES + place, key, now, {"value": 0.5, "more": place})
            for place, key in enumerate(prev.windows)
        )
        senses = {sample.key: prev.windows[sample.key].plus(sample) for sample in fresh}
        self.curr = Snapshot(prev.tick + 1, now, prev.settings, senses, self.state)
        began = time.perf_counter()
        fold_result = await host.fold(prev, self.curr)
        took = (time.perf_counter() - began) * 1000
        expected = self.curr.tick % EVERY == 0
        if (
            fold_result.faults
            or bool(fold_result.verdict.effects) != expected
            or len(fold_result.layers) != RULES
        ):
            raise RuntimeError(f"the host answered {fold_result}")
        return took


async def nothing(after: int):  # type: ignore[no-untyped-def]  # an empty history
    """No history: the engine has no projections."""
    return
    yield


async def measure(revision: Revision) -> tuple[list[float], list[float], dict[str, float]]:
    """Milliseconds of each call, of each start, and what the child weighs after all of it."""
    starts = []
    for _ in range(STARTS):
        began = time.perf_counter()
        host = await ChildHosts().start(revision, House().curr, nothing, {})
        starts.append((time.perf_counter() - began) * 1000)
        await host.close()
    house = House()
    host = await ChildHosts().start(revision, house.curr, nothing, {})
    try:
        calls = [await house.tick(host) for _ in range(WARM + TICKS)]
        return calls[WARM:], starts, memory(host.pid)
    finally:
        await host.close()


def run() -> list[Row]:
    """The call in a tick, a start, and memory."""
    compiled()
    with directory() as place:
        calls, starts, size = asyncio.run(measure(engine(place / "engine")))
    what = f"rule host: call in a tick, {RULES} rules, {OPEN:,} open effects, {SENSES} senses"
    sizes = f"Rss {size['Rss']:.1f}, private {size['Private']:.1f} MiB"
    return [
        Row(what, "p50 <= 1, p99 <= 5 ms", spread(calls)),
        Row("- start until it is ready", "<= 500 ms", f"p50 {percentile(starts, 50):.0f} ms"),
        Row("- memory", "Pss <= 26 MiB", f"Pss {size['Pss']:.1f} MiB", sizes),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
