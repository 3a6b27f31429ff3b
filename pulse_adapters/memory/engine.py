"""An engine in memory: commits are names, and each has its rules."""

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import cast

from pulse_adapters.memory.action_host import Actions
from pulse_core.composition import FOLD
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import (
    CannotLoad,
    EngineFault,
    FoldResult,
    History,
    LoadedRevision,
    RecordedInput,
    ReplayBatch,
    Revision,
    UserProjectionState,
)
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules import Rule, compose
from pulse_core.rules.onion import Answer, Inner, Trace, rule_name, run_synchronously, without_survival_marks


@dataclass
class MemoryRevisions:
    """Implements `Revisions`. engines: the rules of each commit, None for one that can't be loaded.

    actions: the watchers and executors of those commits that have any; stray: what `point_main` returns.
    """

    engines: dict[str, Sequence[Rule] | None]
    main: str
    branches: dict[str, str] = field(default_factory=dict)
    actions: dict[str, Actions] = field(default_factory=dict)
    stray: str = ""

    async def head(self) -> str:
        return self.main

    async def ensure(self, commit: str) -> Revision:
        if commit not in self.engines:
            raise PulseError(f"no commit {commit!r}")
        return Revision(commit, f"/revisions/{commit}")

    async def point_main(self, commit: str, expected: str) -> str:
        if self.main not in (commit, expected):
            raise PulseError(f"main is {self.main}, neither {commit} nor {expected}")
        self.main = commit
        return self.stray

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        if to not in self.engines:
            raise PulseError(f"no commit {to!r}")
        commit, branch = f"{to}-again-after-{self.main}", f"rejected/{rejected}"
        self.engines[commit] = self.engines[to]
        self.actions[commit] = self.actions.get(to, ((), ()))
        self.branches[branch] = rejected
        return await self.ensure(commit), branch


@dataclass
class MemoryHosts:
    """Implements `Hosts`; started: every host that was begun, the newest last."""

    revisions: MemoryRevisions
    started: list["MemoryRuleHost"] = field(default_factory=list)

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, UserProjectionState]
    ) -> "MemoryRuleHost":
        rules = self.revisions.engines[revision.commit]
        if rules is None:
            raise CannotLoad(f"{revision.commit} can't be loaded (rules/broken.py:1)")
        host = MemoryRuleHost(tuple(rules), prev.state)
        watchers, executors = self.revisions.actions.get(revision.commit, ((), ()))
        host.loaded = replace(
            host.loaded,
            watchers=tuple(one.name for one in watchers),
            executors=tuple(one.action for one in executors),
        )
        self.started.append(host)
        return host


class MemoryRuleHost:
    """Implements `RuleHost` without a process, for engines without projections: the rules are folded right here."""

    def __init__(self, rules: Sequence[Rule], state: State) -> None:
        self.rules, self.state = rules, state
        self.alive, self.closed = True, False
        self.passed_over: frozenset[str] = frozenset()
        self.loaded = LoadedRevision(rules=tuple(map(rule_name, rules)), sandbox={"process": False})
        self.defined = {name: f"rules/{name}.py:1" for name in self.loaded.rules}
        self._events: list[Event] = []

    def feed(self, events: Sequence[Event]) -> None:
        newest = self._events[-1].seq if self._events else self.state.seq
        self._events.extend(event for event in events if event.seq > newest)

    async def fold(self, prev: Snapshot, curr: Snapshot) -> FoldResult:
        if not self.alive:
            return FoldResult(faults=(EngineFault("engine", "its host has died"),))
        upto = curr.state.seq + curr.state.provisional
        due = [one for one in self._events if one.seq <= upto]
        self._events = [one for one in self._events if one.seq > upto]
        self.state = FOLD(self.state, due)
        trace: Trace = []
        rules = [_alone(rule) for rule in self.rules if rule_name(rule) not in self.passed_over]
        verdict = await compose(rules, trace=trace)(prev, replace(curr, state=self.state, own={}))
        faults = [
            EngineFault(f"rule:{one.rule}", f"{one.notes[0]} ({self.defined[one.rule]})")
            for one in trace
            if one.outcome == "error"
        ]
        return FoldResult(without_survival_marks(verdict, curr), tuple(trace), tuple(faults))

    async def replay(self, ticks: Sequence[RecordedInput]) -> Sequence[ReplayBatch]:
        fold_results: dict[int, FoldResult] = {}
        outcomes: Counter[tuple[str, str]] = Counter()
        for tick in ticks:
            if not self.alive:
                return [ReplayBatch({}, {}, EngineFault("engine", "its host has died"))]
            self.feed(tick.news)
            self.quarantine(sorted(tick.skip))
            result = await self.fold(tick.snapshot, tick.snapshot)
            outcomes.update((layer.rule, layer.outcome) for layer in result.layers)
            if result.verdict.effects or result.faults:
                fold_results[tick.snapshot.tick] = result
        return [ReplayBatch(fold_results, outcomes, done=len(ticks))]

    def quarantine(self, rules: Sequence[str]) -> None:
        self.passed_over = frozenset(rules)

    async def keep(self) -> Mapping[str, UserProjectionState]:
        return {}

    async def close(self) -> None:
        self.alive, self.closed = False, True


def _alone(rule: Rule) -> Rule:
    """A rule that is not waited for, and ends nothing but itself."""

    @wraps(rule)
    async def alone(prev: Snapshot, curr: Snapshot, inner: Inner) -> Answer:
        try:
            answer = run_synchronously(cast(Awaitable[Verdict], rule(prev, curr, inner)))
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - likewise
            raise RuntimeError(f"raised {type(error).__name__}: {error}") from None
        if answer is None:
            raise TypeError("a rule may await nothing but inner(prev, curr)")
        return answer

    return alone
