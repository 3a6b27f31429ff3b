"""What rules would have done: recorded ticks folded again, nothing executed, nothing recorded."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.git.revisions import RevisionStore
from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_adapters.rule_host.replies import Replayed
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.text import count
from pulse_core.ports import FoldResult, Hosts, Revision
from pulse_core.projections import Snapshot
from upulse_cli.engine.courses import IN_FORCE, Course, InForce, Throughout
from upulse_cli.engine.past import Past, Then
from upulse_cli.engine.wishes import Wished, emitted, through_survival, wished

BATCH = 100
NOTHING = FoldResult()
RECORDED = Revision("recorded", "")
"""Stands for what was really emitted."""
Progress = Callable[[int, int], None]


@dataclass
class Replay:
    """What one revision wished. rules: by rule, how often it did what; faults: what it did wrong, and how often;
    defined: where each of its rules is, as `rules/night.py:12`."""

    revision: Revision
    ticks: int = 0
    wishes: list[Wished] = field(default_factory=list)
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    defined: Mapping[str, str] = field(default_factory=dict)
    _going_on: Mapping[str, Moment | None] = field(default_factory=dict)

    def take(self, prev: Snapshot, thens: Sequence[Then], found: Sequence[Replayed]) -> None:
        """Some more ticks; prev: what was seen before them."""
        self.ticks += len(thens)
        insights: dict[int, FoldResult] = {}
        for part in found:
            insights.update(part.insights)
            for (rule, outcome), times in part.outcomes.items():
                self.rules.setdefault(rule, Counter())[outcome] += times
            if part.end:
                self.faults[f"{part.end.whose}: {part.end.message}"] += 1
        for then in thens:
            self._tick(prev, then, insights.get(then.snapshot.tick, NOTHING))
            prev = then.snapshot

    def _tick(self, prev: Snapshot, then: Then, insight: FoldResult) -> None:
        curr = then.snapshot
        insight = filter_effects(insight, curr)
        self.faults.update(f"{fault.whose}: {fault.message}" for fault in insight.faults)
        passed = through_survival(prev, curr, insight.verdict) if insight.verdict.effects else ()
        fresh = {effect.key: effect for effect in reversed(passed) if effect.key not in curr.effects.keys}
        # What was settled meanwhile and is wished all the same is another wish.
        settled = {key: curr.effects.settled_at.get(key) for key in fresh}
        before = self._going_on
        new = [key for key in reversed(fresh) if key not in before or before[key] != settled[key]]
        self.wishes += [wished(fresh[key], then) for key in new]
        self._going_on = settled

    def told(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "revision": self.revision.commit,
            "ticks": self.ticks,
            "wishes": [wish._asdict() for wish in self.wishes],
            "rules": {rule: dict(counts) for rule, counts in self.rules.items()},
            "faults": dict(self.faults),
        }


async def replayed(
    home: Home,
    hosts: Hosts,
    since: int,
    revisions: Sequence[Revision],
    progress: Progress = lambda n, of: None,
) -> tuple[Sequence[Replay], Sequence[str]]:
    """Fold the ticks since a moment (UTC microseconds) through each revision; what each wished, and the caveats.

    A revision may be RECORDED, which is read from the log, or IN_FORCE.
    """
    with Past(home, since) as past:
        replays = [Replay(revision) for revision in revisions]
        asked = [one for one in replays if one.revision != RECORDED]
        async with AsyncExitStack() as open_:
            courses = []
            for replay in asked:
                courses.append(course := await begun(home, hosts, past, replay.revision))
                open_.push_async_callback(course.close)
                replay.defined = course.defined
            ticks = await _folded(past, asked, courses, progress)
        if IN_FORCE in revisions:
            past.caveats += past.of_what_is_not_said()
        for replay in replays:
            if replay.revision == RECORDED:
                replay.ticks = ticks
                past.caveats += _remember(home, past, replay)
        return replays, past.caveats


async def begun(home: Home, hosts: Hosts, past: Past, revision: Revision) -> Course:
    """Whoever is asked for a revision. Raises CannotLoad."""
    if revision == IN_FORCE:
        folder = RevisionStore(home.path)
        return InForce(hosts, past.history, lambda commit: Revision(commit, str(folder.ensure(commit))))
    host = await hosts.start(revision, past.first, past.history, {})
    assert isinstance(host, ChildRuleHost)
    return Throughout(revision, host)


async def _folded(
    past: Past, replays: Sequence[Replay], courses: Sequence[Course], progress: Progress
) -> int:
    """Fold all ticks at which rules could have been asked; how many there were."""
    prev, folded, ticks = past.first, 0, Whole(past)
    thens = ticks.next()
    while thens:
        folding = asyncio.gather(*(course.fold(prev, thens) for course in courses))
        await asyncio.sleep(0)  # they begin; meanwhile the next ticks are read
        later = ticks.next()
        for replay, found in zip(replays, await folding, strict=True):
            replay.take(prev, thens, found)
        prev, folded, thens = thens[-1].snapshot, folded + len(thens), later
        progress(ticks.read, len(past.rows))
    return folded


class Whole:
    """The ticks at which rules could have been asked. What was new at others is new at the next one."""

    def __init__(self, past: Past) -> None:
        self._ticks, self.read = past.ticks(), 0
        self._held: list[Event] = []

    def next(self) -> Sequence[Then]:
        """Some more; none when there are no more."""
        found: list[Then] = []
        while len(found) < BATCH and (then := next(self._ticks, None)):
            self.read += 1
            self._held += then.news
            if then.is_whole:
                found.append(then._replace(news=self._held))
                self._held = []
        return found


def _remember(home: Home, past: Past, replay: Replay) -> Sequence[str]:
    """What was really emitted, as the log tells it; and what is to be said of it."""
    known = past.numbers
    told = list(emitted(home, past.since, past.rows[0].tick, past.rows[-1].tick))
    replay.wishes = [wish for wish in told if wish.tick in known]
    lost = len(told) - len(replay.wishes)
    if not lost:
        return ()
    return [
        f"{count(lost, 'effect')} left out, of ticks that were not written down to the end: a daemon ended then"
    ]
