"""What a rule host's child answers. Text is cut, and lists are bounded; the daemon makes its own values of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError
from pydantic_core import from_json

from pulse_adapters.workers.framing import COMMAS_OF_FOLD, LARGEST_FOLD, MOST_COMMAS, WorkerFault
from pulse_adapters.workers.host_process import ENGINE
from pulse_adapters.workers.message_types import CutTo, Seq
from pulse_adapters.workers.source_locations import with_place
from pulse_core.composition import OWN_NAMES
from pulse_core.model.kinds import ONE_LINE, Effect
from pulse_core.model.payload import describe
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.ports.engine import (
    ADVICE,
    EngineFault,
    FoldResult,
    LoadedRevision,
    ReplayBatch,
    UserProjectionState,
)

MOST_EFFECTS = 100
MOST_STATE = 256 * 1024
"""Bytes of a projection's value as JSON."""
_WORDS = 2_000
_MOST = Field(max_length=2_000)
Name = Annotated[str, Field(pattern=ONE_LINE, min_length=1, max_length=200)]
Names = Annotated[tuple[Name, ...], _MOST]
Text = Annotated[str, CutTo(_WORDS)]
Texts = Annotated[tuple[Text, ...], _MOST]
Outcome = Literal["passed", "added", "dropped", "bypassed", "error"]
Micros = Annotated[int, Field(ge=0, lt=2**40)]


class LoadedNames(NamedTuple):
    """What a host has loaded: of nothing else may it speak. places: of its rules; owners: whose its faults may be."""

    places: Mapping[str, str]
    owners: Collection[str]

    def check(self, rules: Collection[str], owners: Collection[str] = ()) -> None:
        """Raises WorkerFault for rules, or owners of faults, that it has not loaded."""
        if strange := sorted({*rules} - self.places.keys()) or sorted({*owners} - {*self.owners}):
            raise WorkerFault(f"something of {strange[0][:100]!r}, which it has not loaded")


class FoldReply(NamedTuple):
    """The verdict of a tick, what each layer did, and the faults."""

    effects: Annotated[tuple[dict[str, Any], ...], Field(max_length=MOST_EFFECTS)]
    tick_ms: int
    notes: Texts
    layers: Annotated[tuple[tuple[Name, Outcome, Texts, Micros], ...], _MOST]
    faults: Annotated[tuple[tuple[Text, Text], ...], Field(max_length=100)]

    def result(self, tick: int, names: LoadedNames) -> FoldResult:
        """The result of folding this tick; an invalid effect is a fault of its rule. Raises WorkerFault."""
        owners = [str(one.get("rule"))[:_WORDS] for one in self.effects]
        names.check([*owners, *(rule for rule, *_ in self.layers)], [whose for whose, _ in self.faults])
        effects, faults = [], [EngineFault(*fault) for fault in self.faults]
        for one, rule in zip(self.effects, owners, strict=True):
            try:
                effects.append(
                    Effect.model_validate({**one, "survival": False, "capability": False, "tick": tick})
                )
            except ValidationError as error:
                words = f"ValidationError: {describe(error)}"[:_WORDS]
                faults.append(EngineFault(f"rule:{rule}", with_place(words, names.places[rule])))
        verdict = Verdict(tuple(effects), max(1, min(self.tick_ms, NEVER_MS)), self.notes)
        return FoldResult(verdict, tuple(LayerOutcome(*layer) for layer in self.layers), tuple(faults))


class ReplayReply(NamedTuple):
    """Of recorded ticks: those with a result, how often each rule had each outcome, and how many ticks were folded."""

    told: Annotated[tuple[tuple[Seq, FoldReply], ...], _MOST]
    outcomes: Annotated[tuple[tuple[Name, Outcome, Seq], ...], Field(max_length=10_000)]
    done: Annotated[int, Field(ge=1)]

    def batch(self, names: LoadedNames, ticks: Sequence[int]) -> ReplayBatch:
        """As the replay takes it. ticks: those that it was asked for. Raises WorkerFault."""
        if self.done > len(ticks) or not {tick for tick, _ in self.told} <= {*ticks[: self.done]}:
            raise WorkerFault("something of a tick that it was not asked for")
        names.check({rule for rule, *_ in self.outcomes})
        results = {tick: reply.result(tick, names) for tick, reply in self.told}
        outcomes: dict[tuple[str, str], int] = {
            (rule, outcome): times for rule, outcome, times in self.outcomes
        }
        return ReplayBatch(results, outcomes, done=self.done)


class ConfinedReply(NamedTuple):
    """Which parts of the sandbox hold, told before any of the authors' code runs."""

    landlock: Annotated[int, Field(ge=0, le=100)] | None
    seccomp: bool
    rlimits: bool
    user: bool
    scratch: bool | None = None


class LoadReply(NamedTuple):
    """What was loaded, or why nothing was. projections: version and kinds (None for all) of each; defined: units' places."""

    error: Text | None = None
    rules: Names = ()
    projections: Annotated[Mapping[Name, tuple[Name, frozenset[Text] | None]], _MOST] = {}
    watchers: Names = ()
    executors: Names = ()
    plugins: Names = ()
    defined: Texts = ()

    def loaded(self, sandbox: ConfinedReply, group: Mapping[str, str]) -> LoadedRevision:
        """What was loaded, as the engine's side has it. group: what `HostGroup.parts` says."""
        versions = {name: version for name, (version, _) in self.projections.items()}
        held = {
            part: holds for part, holds in sandbox._asdict().items() if part != "scratch" or holds is not None
        }
        held |= {part: not why for part, why in group.items()}
        missing = {part: why for part, why in group.items() if why}
        return LoadedRevision(
            self.rules, versions, self.watchers, self.executors, self.plugins, held, missing
        )

    def names(self, plugins: Collection[str]) -> LoadedNames:
        """What it may speak of. plugins: those that it was told to load. Raises WorkerFault."""
        if taken := sorted(OWN_NAMES.intersection(self.rules) or {*self.plugins} - {*plugins}):
            raise WorkerFault(f"that it has loaded {taken[0]!r}, which is not its own")
        places = dict.fromkeys(self.rules, "") | dict(zip(self.rules, self.defined, strict=False))
        units = {unit.whose for unit in self.units()} | {f"plugin:{name}" for name in plugins}
        return LoadedNames(places, frozenset({ENGINE, ADVICE, *units}))

    def units(self) -> Iterator[EngineFault]:
        """Whose each unit is, and where it is defined."""
        whose = [f"rule:{name}" for name in self.rules] + [f"projection:{name}" for name in self.projections]
        return map(EngineFault, whose, (*self.defined, *[""] * len(whose)))


class HistoryReply(NamedTuple):
    """An author's projection as it stands, if that was asked for and can be kept."""

    kept: tuple[Name, Seq, Annotated[str, Field(max_length=MOST_STATE)]] | None = None

    def state(self, upto: int) -> UserProjectionState | None:
        """The state; upto: the last row that it was sent. Raises WorkerFault."""
        if self.kept is None:
            return None
        try:
            from_json(self.kept[2])
        except ValueError as error:
            raise WorkerFault(f"a projection's value that is no JSON: {error}") from None
        if self.kept[1] > upto:
            raise WorkerFault("a projection's value of a row that it was not sent")
        return UserProjectionState(*self.kept)


LARGEST: Mapping[type, int] = {FoldReply: LARGEST_FOLD, LoadReply: 256 * 1024, HistoryReply: 512 * 1024}
"""Bytes of the answers that the daemon's loop decodes; those of a replay have a process of their own."""
COMMAS: Mapping[type, int] = {FoldReply: COMMAS_OF_FOLD, LoadReply: MOST_COMMAS}
"""In such an answer. The value of a projection is one text, in which there may be any number."""
