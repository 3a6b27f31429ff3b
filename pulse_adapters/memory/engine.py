"""An engine in memory: commits are names, and each has its rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports import CannotLoad, Fault, History, Insight, Kept, Loaded, Revision
from pulse_core.projections import Projected, Snapshot, fold
from pulse_core.rules import Rule, compose
from pulse_core.rules.onion import Trace, name_of


@dataclass
class MemoryRevisions:
    """Implements `Revisions`. engines: the rules of each commit; None for one that can't be loaded."""

    engines: dict[str, Sequence[Rule] | None]
    main: str
    branches: dict[str, str] = field(default_factory=dict)

    async def head(self) -> str:
        return self.main

    async def ensure(self, commit: str) -> Revision:
        if commit not in self.engines:
            raise PulseError(f"no commit {commit!r}")
        return Revision(commit, f"/revisions/{commit}")

    async def point_main(self, commit: str, expected: str) -> None:
        if self.main not in (commit, expected):
            raise PulseError(f"main is {self.main}, neither {commit} nor {expected}")
        self.main = commit

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        if to not in self.engines:
            raise PulseError(f"no commit {to!r}")
        commit, branch = f"{to}-again-after-{self.main}", f"rejected/{rejected}"
        self.engines[commit] = self.engines[to]
        self.branches[branch] = rejected
        return await self.ensure(commit), branch


@dataclass
class MemoryHosts:
    """Implements `Hosts`; started: every host that was begun, the newest last."""

    revisions: MemoryRevisions
    started: list["MemoryRuleHost"] = field(default_factory=list)

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, Kept]
    ) -> "MemoryRuleHost":
        rules = self.revisions.engines[revision.commit]
        if rules is None:
            raise CannotLoad(f"{revision.commit} can't be loaded (rules/broken.py:1)")
        host = MemoryRuleHost(tuple(rules), prev.projected)
        self.started.append(host)
        return host


class MemoryRuleHost:
    """Implements `RuleHost` without a process: the rules are folded right here. `die` is what a kill would be."""

    def __init__(self, rules: Sequence[Rule], state: Projected) -> None:
        self.rules, self.state = rules, state
        self.alive, self.closed = True, False
        self.passed_over: frozenset[str] = frozenset()
        self.loaded = Loaded(rules=tuple(map(name_of, rules)), sandbox={"process": False})
        self._events: list[Event] = []

    def feed(self, events: Sequence[Event]) -> None:
        self._events.extend(events)

    async def fold(self, prev: Snapshot, curr: Snapshot) -> Insight:
        if not self.alive:
            return Insight(faults=(Fault("engine", "its host has died"),))
        upto = curr.projected.seq + curr.projected.supposed
        self.state = fold(self.state, [one for one in self._events if self.state.seq < one.seq <= upto])
        self._events = [one for one in self._events if one.seq > upto]
        trace: Trace = []
        rules = [rule for rule in self.rules if name_of(rule) not in self.passed_over]
        seen = replace(curr, projected=self.state)
        verdict = await compose(rules, trace=trace)(prev, seen)
        faults = tuple(Fault(f"rule:{one.rule}", one.notes[0]) for one in trace if one.outcome == "error")
        return Insight(verdict, tuple(trace), faults)

    def quarantine(self, rules: Sequence[str]) -> None:
        self.passed_over = frozenset(rules)

    async def keep(self) -> Mapping[str, Kept]:
        return {}

    async def close(self) -> None:
        self.alive, self.closed = False, True

    def die(self) -> None:
        """End without a word."""
        self.alive = False
