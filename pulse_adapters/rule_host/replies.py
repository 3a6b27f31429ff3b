"""What a rule host's child answers. Text is cut, and lists are bounded; the daemon makes its own values of it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from pulse_adapters.workers.framing import LARGEST_FOLD
from pulse_adapters.workers.messages import CutTo, Seq
from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import describe
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.ports.engine import EngineFault, FoldResult, LoadedRevision, ReplayBatch, UserProjectionState

MOST_EFFECTS = 100
_WORDS = 2_000
_MOST = Field(max_length=2_000)
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Text = Annotated[str, CutTo(_WORDS)]
Texts = Annotated[tuple[Text, ...], _MOST]


class FoldReply(NamedTuple):
    """The verdict of a tick, what each layer did, and the faults."""

    effects: Annotated[tuple[dict[str, Any], ...], Field(max_length=MOST_EFFECTS)]
    tick_ms: int
    notes: Texts
    layers: Annotated[tuple[tuple[Text, Text, Texts, Whole], ...], _MOST]
    faults: Annotated[tuple[tuple[Text, Text], ...], _MOST]

    def result(self, tick: int, defined: Mapping[str, str]) -> FoldResult:
        """The result of folding this tick; an invalid effect is a fault of its rule. defined: the place of each rule."""
        effects, faults = [], [EngineFault(*fault) for fault in self.faults]
        for one in self.effects:
            try:
                effects.append(Effect.model_validate({**one, "survival": False, "tick": tick}))
            except ValidationError as error:
                rule = str(one.get("rule", ""))[:_WORDS]
                words = f"ValidationError: {describe(error)}"[:_WORDS]
                faults.append(EngineFault(f"rule:{rule}", with_place(words, defined.get(rule, ""))))
        verdict = Verdict(tuple(effects), max(1, min(self.tick_ms, NEVER_MS)), self.notes)
        return FoldResult(verdict, tuple(LayerOutcome(*layer) for layer in self.layers), tuple(faults))


class ReplayReply(NamedTuple):
    """Of recorded ticks: those with a result, how often each rule had each outcome, and how many ticks were folded."""

    told: Annotated[tuple[tuple[Whole, FoldReply], ...], _MOST]
    outcomes: Annotated[tuple[tuple[Text, Text, Whole], ...], _MOST]
    done: Annotated[int, Field(ge=1)]

    def batch(self, defined: Mapping[str, str], most: int) -> ReplayBatch:
        """As the replay takes it. most: how many ticks it was asked for."""
        results = {tick: reply.result(tick, defined) for tick, reply in self.told}
        outcomes = {(rule, outcome): times for rule, outcome, times in self.outcomes}
        return ReplayBatch(results, outcomes, done=min(self.done, most))


class LoadReply(NamedTuple):
    """What was loaded, or why nothing was. projections: version and kinds (None for all) of each; defined: units' places."""

    error: Text | None = None
    rules: Texts = ()
    projections: Annotated[Mapping[Text, tuple[Text, frozenset[Text] | None]], _MOST] = {}
    watchers: Texts = ()
    executors: Texts = ()
    plugins: Texts = ()
    sandbox: Mapping[str, Any] = {}
    defined: Texts = ()
    roots: Mapping[str, Text] = {}

    def loaded(self) -> LoadedRevision:
        """What was loaded, as the engine's side has it."""
        versions = {name: version for name, (version, _) in self.projections.items()}
        return LoadedRevision(self.rules, versions, self.watchers, self.executors, self.plugins, self.sandbox)

    def units(self) -> Iterator[EngineFault]:
        """Whose each unit is, and where it is defined."""
        whose = [f"rule:{name}" for name in self.rules] + [f"projection:{name}" for name in self.projections]
        return map(EngineFault, whose, self.defined)


class HistoryReply(NamedTuple):
    """An author's projection as it stands, if that was asked for and can be kept."""

    kept: tuple[Text, Seq, str] | None = None

    @property
    def state(self) -> UserProjectionState | None:
        """The state."""
        return UserProjectionState(*self.kept) if self.kept else None


LARGEST: Mapping[type, int] = {FoldReply: LARGEST_FOLD, LoadReply: 256 * 1024, HistoryReply: 512 * 1024}
"""Bytes of the answers that the daemon's loop decodes; those of a replay have a process of their own."""
