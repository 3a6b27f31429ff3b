"""What rules would have done: recorded ticks folded again, nothing executed, nothing recorded."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_core.engine.apart import apart
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import iso
from pulse_core.model.verdict import Verdict
from pulse_core.ports import Hosts, Insight, Revision, RuleHost
from pulse_core.projections import Snapshot
from pulse_core.rules import compose
from pulse_core.rules.survival import SURVIVAL
from pulse_core.tick.folding import tamed
from upulse_cli.engine.past import Past, Then
from upulse_cli.explaining import run

BATCH = 200
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
    missed: int = 0
    surplus: int = 0
    _going_on: frozenset[str] = frozenset()

    def take(self, then: Then, prev: Snapshot, insight: Insight) -> None:
        """One more tick."""
        self.ticks += 1
        for layer in insight.layers:
            self.rules.setdefault(layer.rule, Counter())[layer.outcome] += 1
        self.faults.update(f"{fault.whose}: {fault.message}" for fault in insight.faults)
        passed = through_survival(prev, then.snapshot, insight.verdict) if insight.verdict.effects else ()
        self.wishes += [wished(effect, then) for effect in passed if effect.key not in self._going_on]
        self._going_on = frozenset(effect.key for effect in passed)
        keys = {effect.key for effect in passed} - then.snapshot.effects.keys.keys()
        self.missed += len(set(then.emitted) - keys)
        self.surplus += len(keys - set(then.emitted))

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
    hosts: Hosts,
    since: int,
    revisions: Sequence[Revision],
    progress: Progress = lambda n, of: None,
) -> tuple[Sequence[Replay], Sequence[str]]:
    """Fold the ticks since a moment (UTC microseconds) through each revision; what each wished, and the caveats."""
    with Past(home, since) as past:
        first = past.first
        replays = [Replay(revision) for revision in revisions]
        runs = [await hosts.start(one, first, past.history, {}) for one in revisions]
        try:
            prev = first
            for count, then in enumerate(past.ticks(), 1):
                for replay, host in zip(replays, runs, strict=True):
                    replay.take(then, prev, await folded(host, prev, then))
                prev = then.snapshot
                if count % BATCH == 0:
                    progress(count, len(past.rows))
            return replays, past.caveats
        finally:
            for host in runs:
                await host.close()


async def folded(host: RuleHost, prev: Snapshot, then: Then) -> Insight:
    """What a host says of a recorded tick."""
    host.feed(then.news)
    return apart(await host.fold(prev, then.snapshot), then.snapshot)


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
