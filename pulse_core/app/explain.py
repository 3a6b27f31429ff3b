"""A snapshot folded through the onion, with nothing executed: what each rule would do, and why not more."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.model.moment import iso
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.ports.engine import FoldResult

if TYPE_CHECKING:
    from pulse_core.app.engine.user_rules import UserRules
    from pulse_core.app.state import CaveatedSnapshot
    from pulse_core.model.kinds import Effect
    from pulse_core.projections.state import Snapshot
    from pulse_core.rules import Rule
    from pulse_core.settings.settings import Settings

    Refusal = Callable[[Effect, Settings], str]


class RuleTrace(NamedTuple):
    """What was folded, what each layer did (outermost first), the verdict, and what was wished for in vain."""

    seen: "CaveatedSnapshot"
    layers: Sequence[LayerOutcome]
    verdict: Verdict
    withheld: Sequence[WithheldEffect] = ()

    def without_refused(self, refusal: "Refusal") -> "RuleTrace":
        """The same; what the daemon would leave out is wished for in vain. refusal: why it would, in words, or nothing."""
        whys = [(effect, refusal(effect, self.seen.snapshot.settings)) for effect in self.verdict.effects]
        kept = tuple(effect for effect, why in whys if not why)
        refused = (WithheldEffect(effect, why) for effect, why in whys if why)
        verdict = replace(self.verdict, effects=kept)
        return self._replace(verdict=verdict, withheld=(*self.withheld, *refused))

    def spelled(self) -> dict[str, Any]:
        """The same as JSON values; an effect whose key is open already would not be recorded again."""
        seen = self.seen.snapshot
        return {
            "at": iso(seen.now.at),
            "tick": seen.tick,
            "seq": seen.state.seq,
            "rules": [
                {
                    **asdict(layer),
                    "effects": [effect.key for effect in self.verdict.effects if effect.rule == layer.rule],
                }
                for layer in self.layers
            ],
            "effects": [
                {
                    **{name: getattr(effect, name) for name in ("key", "action", "rule", "reason")},
                    "open": seen.effects.excludes(effect),
                }
                for effect in self.verdict.effects
            ],
            "withheld": [
                {
                    **{name: getattr(one.effect, name) for name in ("key", "action", "rule", "reason")},
                    "why": one.why,
                }
                for one in self.withheld
            ],
            "next_tick_ms": min(self.verdict.tick_ms, seen.settings.daemon.tick_ms),
            "caveats": list(self.seen.caveats),
        }


async def explain(
    home: HomeContext,
    at: int | None,
    rules: "UserRules | None",
    revision: str = "",
    refusal: "Refusal" = lambda effect, settings: "",
) -> RuleTrace:
    """What the survival rules and the user's inside them say now, or of a moment (UTC microseconds).

    revision: of the user's rules, as `UserRules.ask` takes it; refusal: as in `RuleTrace.without_refused`. Raises
    SettingsRefused: no others could stand in for them.
    """
    if rules:
        rules.hosts.warm()
    try:
        # Imported here, and not above, since that takes as long as the process of the rules needs to begin.
        from pulse_core.app.state import CaveatedSnapshot, snapshot
        from pulse_core.composition import ALL_RULES

        home.settings()
        seen, caveats = snapshot(home, at)
        answer = await rules.ask(seen, revision) if rules else None
    finally:
        if rules:
            await rules.hosts.close()
    if answer is None:
        trace = rule_trace(CaveatedSnapshot(seen, caveats), ALL_RULES)
    else:
        trace = rule_trace(CaveatedSnapshot(seen, (*caveats, *answer.caveats)), ALL_RULES, answer.result)
    return trace.without_refused(refusal)


def rule_trace(
    seen: "CaveatedSnapshot", rules: "Sequence[Rule]", inside: FoldResult | None = None
) -> RuleTrace:
    """Fold the snapshot; `prev` is the same one, so that only what stands is answered, not what has changed.

    inside: what those said that are inside these rules, the user's own.
    """
    from pulse_core.rules import compose  # as above
    from pulse_core.rules.onion import run_synchronously

    trace, withheld = list[LayerOutcome](), list[WithheldEffect]()
    fold_result = inside or FoldResult()

    async def innermost(prev: "Snapshot", curr: "Snapshot") -> Verdict:
        return fold_result.verdict

    folding = compose(rules, innermost, trace, time.perf_counter, withheld)
    verdict = run_synchronously(folding(seen.snapshot, seen.snapshot))
    assert verdict is not None, "survival rules await nothing but what is inside them"
    layers = (*_as_in_status(trace[::-1], seen.snapshot), *fold_result.layers[::-1])
    return RuleTrace(seen, layers, verdict, (*withheld, *fold_result.withheld))


def _as_in_status(layers: Sequence[LayerOutcome], curr: "Snapshot") -> Sequence[LayerOutcome]:
    """The layers; what the watchdog notes as due, and a rule around it holds back, is told as the status tells it."""
    from pulse_core.app.compute_status import process_conditions  # as above
    from pulse_core.rules.survival.process_watchdog import evaluate_status, newest_look

    conditions, stands = process_conditions(curr), dict[str, str]()
    for process in curr.settings.process:
        noted, told = (
            evaluate_status(process, curr, newest_look(process.name, curr)),
            conditions[process.name],
        )
        stands[noted.note(process.name)] = told.note(process.name)
    return [replace(layer, notes=tuple(stands.get(note, note) for note in layer.notes)) for layer in layers]
