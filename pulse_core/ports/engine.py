"""The hosts and the repository of the engine, whose code runs in other processes and is not trusted."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.ports.executor import Executor
from pulse_core.ports.watcher import Watcher

if TYPE_CHECKING:
    from asyncio import Future

    from pulse_core.projections.state import Snapshot

History = Callable[[int], AsyncIterator[Sequence[Event]]]
"""All recorded events after a row, in order, in batches."""


class CannotLoad(PulseError):
    """A revision that no host could load; the message names file and line."""


class EngineCodeBroken(PulseError):
    """The engine's code is at fault, whatever the input was; the message names file and line."""


class Revision(NamedTuple):
    """A commit of the engine, and the folder that holds its immutable export.

    altered: where the changed files were moved, if the export had been changed.
    """

    commit: str
    path: str
    altered: str = ""


ADVICE = "advice"
"""Whose a fault is that is no error of a rule: it makes a replay differ, or reads what nothing has sensed."""


class EngineFault(NamedTuple):
    """A fault of the engine's code. whose: `rule:NAME`, `projection:NAME`, `engine` or ADVICE; message: with its place."""

    whose: str
    message: str


class FoldResult(NamedTuple):
    """The result of a fold: the verdict, what each layer did (innermost first), the faults, and what rules wished in vain.

    Each effect of the verdict names its rule and the tick, and none is survival's.

    commit: whose rules were folded; empty if none were, or it is unknown.
    """

    verdict: Verdict = Verdict()
    layers: tuple[LayerOutcome, ...] = ()
    faults: tuple[EngineFault, ...] = ()
    commit: str = ""
    withheld: tuple[WithheldEffect, ...] = ()


CONTROL_GROUP, GROUP_LIMITS = "control group", "control group limits"
"""The parts of a host's sandbox that end with it whatever it has started, and limit what all of that has together."""


class UserProjectionState(NamedTuple):
    """An author's projection as it stands: the version of its fold, the row, and its value as JSON text."""

    version: str
    seq: int
    state: str


class RecordedInput(NamedTuple):
    """A recorded tick: the new events, the snapshot, and the rules that were skipped."""

    news: Sequence[Event]
    snapshot: "Snapshot"
    skip: frozenset[str] = frozenset()


class ReplayBatch(NamedTuple):
    """The replay of recorded ticks: the results with effects or faults, by tick; counts of each rule's outcomes; the
    fault that ended the host, if any; and how many ticks were folded."""

    fold_results: Mapping[int, FoldResult]
    outcomes: Mapping[tuple[str, str], int]
    end: EngineFault | None = None
    done: int = 0


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    """What a host found in a revision. sandbox: each part of the sandbox by name, and whether it is active (or how).

    missing: why parts of it are not, where that is known.
    """

    rules: tuple[str, ...] = ()
    projections: Mapping[str, str] = field(default_factory=dict)
    watchers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    sandbox: Mapping[str, Json] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


class RuleHost(Protocol):
    """Folds snapshots through the engine's rules. A fold takes one deadline at most, whatever they do."""

    @property
    def loaded(self) -> LoadedRevision:
        """What it has loaded."""

    @property
    def alive(self) -> bool:
        """Whether it can fold; one that was killed, or has ended, can't."""

    @property
    def defined(self) -> Mapping[str, str]:
        """Where each rule is defined, as `rules/night.py:12`; missing for one of a plugin, or if unknown."""

    def feed(self, events: Sequence[Event]) -> None:
        """Take recorded events, in order; those that it has already are left out. Never blocks."""

    async def fold(self, prev: "Snapshot", curr: "Snapshot") -> FoldResult:
        """Fold the newest snapshot. Never raises; without an answer in time the verdict is empty."""

    async def replay(self, ticks: Sequence[RecordedInput]) -> Sequence[ReplayBatch]:
        """Fold recorded ticks, in their order, as fast as can be. Never raises.

        A host that dies of one returns no results for the ticks of the same call.
        """

    def quarantine(self, rules: Sequence[str]) -> None:
        """Skip these rules from now on, and no others."""

    async def keep(self) -> Mapping[str, UserProjectionState]:
        """The authors' projections as they stand, by name; none if it does not answer."""

    async def close(self) -> None:
        """End it, by force if it must be."""


class RuleHosts(Protocol):
    """Starts rule hosts."""

    async def start(
        self, revision: Revision, prev: "Snapshot", history: History, kept: Mapping[str, UserProjectionState]
    ) -> RuleHost:
        """A host that has loaded the revision and stands at `prev`; raises CannotLoad if it can't be loaded.

        `feed` it every event after `prev` (its row, provisional events included). history and kept rebuild the
        authors' projections up to there.
        """


class ReservedNames(NamedTuple):
    """Names that the daemon uses already: names and keys of watchers, actions of executors."""

    names: Collection[str] = ()
    keys: Collection[str] = ()
    actions: Collection[str] = ()


class ActionHost(Protocol):
    """An engine's watchers and executors.

    faults: what was left out, and why.
    """

    @property
    def watchers(self) -> Sequence[Watcher]: ...

    @property
    def executors(self) -> Mapping[str, Executor]: ...

    @property
    def faults(self) -> Sequence[EngineFault]: ...

    def frozen(self) -> AbstractAsyncContextManager[None]:
        """Inside, nothing of it acts, where the machine can hold it; calls under way go on afterwards."""

    def retire(self, seconds: float) -> "Future[None]":
        """Let the calls under way end, within these seconds, and close; returns at once. Done when it has closed.

        A call that is broken off by that is not to be tried again.
        """

    async def close(self) -> None:
        """End it now."""


class ActionHosts(Protocol):
    """Starts action hosts."""

    async def start(
        self, revision: Revision, memory: int, taken: ReservedNames, failed: Callable[[EngineFault], None]
    ) -> ActionHost:
        """Start a host for the revision; memory: MiB beyond what the host starts with. Raises CannotLoad.

        failed is called with faults that no caller gets; a watcher whose code is at fault raises EngineCodeBroken.
        """


class Revisions(Protocol):
    """The engine's repository, as far as the daemon needs it. Every verb may be repeated; raises PulseError."""

    async def head(self) -> str:
        """The commit of `main`."""

    async def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, made if it is not there, or not any more what was committed."""

    async def point_main(self, commit: str, expected: str) -> str:
        """Point `main` at this commit; refused if it is at neither this one nor `expected`.

        The branch that keeps what somebody had changed in `engine/`; empty if nothing was.
        """

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        """A new commit after `main` with the files of an earlier one, laid out; and the branch that keeps `rejected`.

        `main` does not move yet.
        """
