"""Replays recorded ticks through other rules; nothing is executed or recorded.

Each revision that is asked has a host of its own, and all of them are shown the same ticks, many at a time. What a rule
wishes tick after tick is one wish, as it would be for the daemon: only its beginning counts, until its key was settled
in the log meanwhile. What survival would have held back, or the engine may not wish, is taken out as it is in force.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import WorkflowContext, revision_named
from pulse_core.app.engine.effect_diff import (
    EffectDifference,
    WishedEffect,
    WishTracker,
    differences,
    recorded_effects,
)
from pulse_core.app.engine.recorded_ticks import RecordedTick, RecordedTicks
from pulse_core.app.state import history_of
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.text import count
from pulse_core.model.tick import NOBODY
from pulse_core.ports.engine import (
    EngineFault,
    FoldResult,
    RecordedInput,
    ReplayBatch,
    Revision,
    RuleHost,
)
from pulse_core.projections.state import Snapshot

BATCH = 100
NOTHING = FoldResult()
RECORDED = Revision("recorded", "")
"""Stands for what was really emitted."""
IN_FORCE = Revision("in-force", "")
"""Stands for whichever revision was asked at each tick."""
Progress = Callable[[int, int], None]


@dataclass
class Replay:
    """What one revision wished. rules: by rule, how often it did what; faults: what it did wrong, and how often;
    defined: where each of its rules is, as `rules/night.py:12`."""

    revision: Revision
    ticks: int = 0
    wishes: list[WishedEffect] = field(default_factory=list)
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    defined: Mapping[str, str] = field(default_factory=dict)
    _tracker: WishTracker = field(default_factory=WishTracker)

    def take(self, prev: Snapshot, ticks: Sequence[RecordedTick], found: Sequence[ReplayBatch]) -> None:
        """Some more ticks; prev: what was seen before them."""
        self.ticks += len(ticks)
        fold_results: dict[int, FoldResult] = {}
        for part in found:
            fold_results.update(part.fold_results)
            for (rule, outcome), times in part.outcomes.items():
                self.rules.setdefault(rule, Counter())[outcome] += times
            if part.end:
                self.faults[f"{part.end.whose}: {part.end.message}"] += 1
        for tick in ticks:
            self._take(prev, tick, fold_results.get(tick.snapshot.tick, NOTHING))
            prev = tick.snapshot

    def _take(self, prev: Snapshot, tick: RecordedTick, fold_result: FoldResult) -> None:
        fold_result = filter_effects(fold_result, tick.snapshot)
        self.faults.update(f"{fault.whose}: {fault.message}" for fault in fold_result.faults)
        self.wishes += self._tracker.begun(prev, tick.snapshot, fold_result.verdict)

    def told(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "revision": self.revision.commit,
            "ticks": self.ticks,
            "wishes": [wish._asdict() for wish in self.wishes],
            "rules": {rule: dict(counts) for rule, counts in self.rules.items()},
            "faults": dict(self.faults),
        }


async def replay_ticks(
    engine: WorkflowContext,
    since: int,
    revisions: Sequence[Revision],
    progress: Progress = lambda n, of: None,
) -> tuple[Sequence[Replay], Sequence[str]]:
    """Fold the ticks since a moment (UTC microseconds) through each revision; what each wished, and the caveats.

    A revision may be RECORDED, which is read from the log, or IN_FORCE. Raises CannotLoad.
    """
    with RecordedTicks(engine.home, since) as past:
        replays = [Replay(revision) for revision in revisions]
        asked = [one for one in replays if one.revision != RECORDED]
        async with AsyncExitStack() as open_:
            courses = []
            for replay in asked:
                fixed = None if replay.revision == IN_FORCE else replay.revision
                courses.append(course := TickReplayer(engine, fixed))
                open_.push_async_callback(course.close)
                if fixed:
                    await course.start(fixed, past.first)
                    replay.defined = course.host.defined if course.host else {}
            ticks = await _folded(past, asked, courses, progress)
        if IN_FORCE in revisions:
            past.caveats += past.unnamed_revisions()
        for replay in replays:
            if replay.revision == RECORDED:
                replay.ticks = ticks
                past.caveats += _remember(engine.home, past, replay)
        return replays, past.caveats


async def _folded(
    past: RecordedTicks, replays: Sequence[Replay], courses: "Sequence[TickReplayer]", progress: Progress
) -> int:
    """Fold all ticks at which rules could have been asked; how many there were."""
    prev, folded, ticks = past.first, 0, WholeTicks(past)
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


class WholeTicks:
    """The ticks at which rules could have been asked. What was new at others is new at the next one."""

    def __init__(self, past: RecordedTicks) -> None:
        self._ticks, self.read = past.ticks(), 0
        self._held: list[Event] = []

    def next(self) -> Sequence[RecordedTick]:
        """Some more; none when there are no more."""
        found: list[RecordedTick] = []
        while len(found) < BATCH and (then := next(self._ticks, None)):
            self.read += 1
            self._held += then.news
            if then.is_whole:
                found.append(then._replace(news=self._held))
                self._held = []
        return found


def _remember(home: HomeContext, past: RecordedTicks, replay: Replay) -> Sequence[str]:
    """What was really emitted, as the log tells it; and what is to be said of it."""
    known = past.numbers
    told = list(recorded_effects(home, past.since, past.rows[0].tick, past.rows[-1].tick))
    replay.wishes = [wish for wish in told if wish.tick in known]
    lost = len(told) - len(replay.wishes)
    if not lost:
        return ()
    return [
        f"{count(lost, 'effect')} left out, of ticks that were not written down to the end: a daemon ended then"
    ]


class TickReplayer:
    """Folds recorded ticks in their order through one revision, or through whichever ran at each; none where none ran."""

    def __init__(self, engine: WorkflowContext, fixed: Revision | None) -> None:
        self._engine, self._fixed = engine, fixed
        self._commit = ""
        self.host: RuleHost | None = None

    async def start(self, revision: Revision, prev: Snapshot) -> None:
        """Ask this revision from here on; prev: what was seen before. Raises PulseError if it can't be loaded."""
        self._commit, history = revision.commit, history_of(self._engine.home)
        self.host = await self._engine.rule_hosts.start(revision, prev, history, {})

    async def fold(self, prev: Snapshot, ticks: Sequence[RecordedTick]) -> Sequence[ReplayBatch]:
        """What is said of these ticks; a revision that can't be loaded any more is a fault, and says nothing."""
        found: list[ReplayBatch] = []
        for commit, group in groupby(ticks, self._asked):
            batch = list(group)
            # Where nobody was asked, the one before goes on and says nothing.
            if commit and commit != self._commit:
                found += await self._turn(commit, prev, len(batch))
            if self.host:
                inputs = [RecordedInput(tick.news, tick.snapshot, self._skipped(tick)) for tick in batch]
                found += await self.host.replay(inputs)
            prev = batch[-1].snapshot
        return found

    def _asked(self, tick: RecordedTick) -> str:
        return "" if self._fixed or tick.engine == NOBODY else tick.engine

    async def _turn(self, commit: str, prev: Snapshot, ticks: int) -> Sequence[ReplayBatch]:
        """Ask another revision from here on."""
        await self.close()
        self._commit = commit
        try:
            await self.start(self._engine.repository.ensure(commit), prev)
        except PulseError as error:
            return [ReplayBatch({}, {}, EngineFault(f"engine {commit[:12]}", str(error)), ticks)]
        return ()

    def _skipped(self, tick: RecordedTick) -> frozenset[str]:
        """The rules that did not run then; of one revision for all ticks its own that were quarantined then."""
        if self._fixed is None:
            return frozenset(self.host.loaded.rules if self.host else ()) - tick.layers
        engine = tick.snapshot.engine
        return frozenset(engine.quarantined if engine.commit == self._fixed.commit else ())

    async def close(self) -> None:
        """End the host at work."""
        host, self.host = self.host, None
        if host:
            await host.close()


class ReplayComparison(NamedTuple):
    """What the one wished, what the other did, where they differ, and what is not as it was then."""

    new: Replay
    old: Replay
    differences: Sequence[EffectDifference]
    caveats: Sequence[str]

    @property
    def is_alike(self) -> bool:
        """Whether they wish the same, and the one does nothing wrong that the other does not."""
        failing = self.new.faults.keys() - self.old.faults.keys() if self.old.revision != RECORDED else ()
        return not self.differences and not failing

    def told(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "engine": self.new.told(),
            "against": self.old.told(),
            "differences": [{"only": one.only, **one.wish._asdict()} for one in self.differences],
            "caveats": list(self.caveats),
        }


def compare_revisions(
    engine: WorkflowContext, since: int, new: str, old: str, progress: Progress = lambda n, of: None
) -> ReplayComparison:
    """Replay both since a moment (UTC microseconds)."""
    if new == RECORDED.commit:
        raise PulseError("what is recorded is no engine; name it with --against recorded")
    revisions = [_replayable(engine, new), _replayable(engine, old)]
    (ours, theirs), caveats = asyncio.run(replay_ticks(engine, since, revisions, progress))
    return ReplayComparison(ours, theirs, differences(theirs.wishes, ours.wishes), caveats)


def _replayable(engine: WorkflowContext, word: str) -> Revision:
    """The revision that a word means, or whichever was in force, or what was really emitted."""
    found = next((one for one in (RECORDED, IN_FORCE) if word == one.commit), None)
    return found or revision_named(engine.repository, word)
