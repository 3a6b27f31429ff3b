"""What the engine's wishes must not touch, and how often they may come back."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pulse_core.composition import is_reserved
from pulse_core.model.kinds import Effect
from pulse_core.ports import EngineFault, FoldResult
from pulse_core.projections import Snapshot
from pulse_core.projections.effects import MINUTE
from pulse_core.projections.engine import ROLLBACK
from pulse_core.projections.notices import ACTION as NOTIFY
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.processes import RESTART, STOP
from pulse_core.rules.survival.notices import is_known
from pulse_core.settings.processes import ProcessSettings


def apart(insight: FoldResult, curr: Snapshot) -> FoldResult:
    """The insight without effects that are survival's alone, which are faults, and without those that are too soon.

    A rule that wishes the same in every tick would otherwise be answered, and woken by the answer, for ever.
    """
    effects = insight.verdict.effects
    refused = {id(effect): why for effect in effects if (why := refusal(effect, curr))}
    kept = tuple(_once(one for one in effects if id(one) not in refused and not is_too_soon(one, curr)))
    if len(kept) == len(effects):
        return insight
    faults = tuple(EngineFault(f"rule:{one.rule}", refused[id(one)]) for one in effects if id(one) in refused)
    return insight._replace(verdict=replace(insight.verdict, effects=kept), faults=(*insight.faults, *faults))


def _once(effects: Iterable[Effect]) -> Iterator[Effect]:
    """The effects with one restart of each process: several at a time would chase each other."""
    restarted = set[object]()
    for effect in effects:
        if effect.action == RESTART:
            if (name := effect.params.get("process")) in restarted:
                continue
            restarted.add(name)
        yield effect


def refusal(effect: Effect, curr: Snapshot) -> str:
    """Why nobody but survival and people may wish this, with what would work instead; or nothing."""
    if is_reserved(effect.key):
        return f"the key {effect.key!r} is survival's own; take another one, as {'my:' + effect.key!r}"
    if effect.action == ROLLBACK:
        return "a rule may not take the engine back; wish for a notice, and let a person do it"
    if effect.action == STOP and (guarded := _guarded(effect, curr)):
        return f"{guarded.name} is guarded: survival would start again what a rule stops; wish for {RESTART}"
    return ""


def is_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether it may not be wished again yet: its key was settled lately, people know, or the process is barely up."""
    settled = curr.effects.settled_at.get(effect.key)
    if settled is not None and curr.now.since(settled) < curr.settings.engine.repeat:
        return True
    if effect.action == RESTART:
        return not _is_well(_guarded(effect, curr), curr)
    is_over = bool(effect.params.get("over", False))
    return effect.action == NOTIFY and is_known(effect.key.removeprefix(PREFIX), curr, is_over)


def _guarded(effect: Effect, curr: Snapshot) -> ProcessSettings | None:
    """The guarded process that this is about, if there is one."""
    name = effect.params.get("process")
    return next((one for one in curr.settings.process if one.name == name), None)


def _is_well(process: ProcessSettings | None, curr: Snapshot) -> bool:
    """Whether it has been up for its `healthy_after`; before that it is survival's business, whatever rules wish.

    Else a rule could keep it down by starting it anew again and again.
    """
    if process is None:
        return True  # the append is refused, and says why
    if process.name in curr.state.processes.restarting.values():
        return False
    up = curr.process(process.name).up
    return up is not None and curr.now.since(up) >= max(process.restart.healthy_after, MINUTE)
