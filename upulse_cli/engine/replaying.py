"""What rules would have done: recorded ticks folded again, nothing executed, nothing recorded."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.rule_host.insight import Replayed
from pulse_core.engine.apart import apart
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import iso
from pulse_core.model.verdict import Verdict
from pulse_core.ports import Insight, Revision
from pulse_core.projections import Snapshot
from pulse_core.rules import compose
from pulse_core.rules.survival import SURVIVAL
from pulse_core.tick.folding import tamed
from upulse_cli.engine.past import Past, Then
from upulse_cli.explaining import run

BATCH = 100
NOTHING = Insight()
Progress = Callable[[int, int], None]


class Wished(NamedTuple):
    """The beginning of a wish: it may have been repeated tick after tick, and counts as one."""

    key: str
    tick: int
    at: str
    rule: str
    action: str
    reason: str


@dataclass
class Replay:
    """What one revision wished. rules: by rule, how often it did what; faults: what it did wrong, and how often."""

    revision: Revision
    ticks: int = 0
    wishes: list[Wished] = field(default_factory=list)
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    _going_on: frozenset[str] = frozenset()

    def take(self, thens: Sequence[Then], found: Replayed) -> None:
        """Some more ticks."""
        self.ticks += len(thens) - 1
        for (rule, outcome), times in found.outcomes.items():
            self.rules.setdefault(rule, Counter())[outcome] += times
        if found.end:
            self.faults[f"{found.end.whose}: {found.end.message}"] += 1
        for prev, then in pairwise(thens):
            self._tick(prev.snapshot, then, found.insights.get(then.snapshot.tick, NOTHING))

    def _tick(self, prev: Snapshot, then: Then, insight: Insight) -> None:
        insight = apart(insight, then.snapshot)
        self.faults.update(f"{fault.whose}: {fault.message}" for fault in insight.faults)
        passed = through_survival(prev, then.snapshot, insight.verdict) if insight.verdict.effects else ()
        self.wishes += [wished(effect, then) for effect in passed if effect.key not in self._going_on]
        self._going_on = frozenset(effect.key for effect in passed)

    def told(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "revision": self.revision.commit,
            "ticks": self.ticks,
            "wishes": [wish._asdict() for wish in self.wishes],
            "rules": {rule: dict(counts) for rule, counts in self.rules.items()},
            "faults": dict(self.faults),
        }


def wished(effect: Effect, then: Then) -> Wished:
    """The wish as it is shown."""
    snapshot = then.snapshot
    return Wished(effect.key, snapshot.tick, iso(snapshot.now.at), effect.rule, effect.action, effect.reason)


def through_survival(prev: Snapshot, curr: Snapshot, verdict: Verdict) -> Sequence[Effect]:
    """Those of the engine's effects that the survival rules let pass."""
    inner = tamed(verdict)
    theirs = {id(effect) for effect in inner.effects}

    async def heart(prev: Snapshot, curr: Snapshot) -> Verdict:
        return inner

    whole = run(compose(SURVIVAL, heart)(prev, curr))
    return tuple(effect for effect in whole.effects if id(effect) in theirs)


async def replayed(
    home: Home,
    hosts: ChildHosts,
    since: int,
    revisions: Sequence[Revision],
    progress: Progress = lambda n, of: None,
) -> tuple[Sequence[Replay], Sequence[str]]:
    """Fold the ticks since a moment (UTC microseconds) through each revision; what each wished, and the caveats."""
    with Past(home, since) as past:
        replays = [Replay(revision) for revision in revisions]
        runs = [await hosts.start(one, past.first, past.history, {}) for one in revisions]
        try:
            before, count = Then(past.first, (), ()), 0
            ticks = past.ticks()
            thens = list(islice(ticks, BATCH))
            while thens:
                folding = asyncio.ensure_future(folded(runs, thens))
                await asyncio.sleep(0)  # they begin; meanwhile the next ticks are read
                later = list(islice(ticks, BATCH))
                for replay, found in zip(replays, await folding, strict=True):
                    replay.take((before, *thens), found)
                before, count, thens = thens[-1], count + len(thens), later
                progress(count, len(past.rows))
            return replays, past.caveats
        finally:
            for host in runs:
                await host.close()


async def folded(hosts: Sequence[ChildRuleHost], thens: Sequence[Then]) -> Sequence[Replayed]:
    """What each host says of these ticks; they work side by side."""
    ticks = [(then.news, then.snapshot) for then in thens]
    return await asyncio.gather(*(host.replay(ticks) for host in hosts))


class Difference(NamedTuple):
    """A wish that only one of two revisions had."""

    only: str
    wish: Wished


def differences(old: Replay, new: Replay) -> Sequence[Difference]:
    """What the new revision wishes that the old one did not, and the other way round, by time."""
    before, after = {(one.key, one.tick) for one in old.wishes}, {(one.key, one.tick) for one in new.wishes}
    gone = [Difference("old", one) for one in old.wishes if (one.key, one.tick) not in after]
    come = [Difference("new", one) for one in new.wishes if (one.key, one.tick) not in before]
    return sorted((*gone, *come), key=lambda one: one.wish.tick)


def in_words(found: Sequence[Difference]) -> str:
    """The difference in one line."""
    if not found:
        return "nothing changes"
    count = Counter((one.only, one.wish.key.split(":")[0] + ":" + one.wish.rule) for one in found)
    words = (f"{'+' if only == 'new' else '-'}{number} {what}" for (only, what), number in count.items())
    return ", ".join(words)
