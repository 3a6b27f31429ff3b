"""Restarts guarded processes that died, with backoff, and notifies a person only if that does not help."""

from pulse_core.model.actions import RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.projections import ProcessHistory, Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.process_notices import still_down_notices, still_up_notices
from pulse_core.rules.survival.process_state import ProcessState, ProcessStatus
from pulse_core.rules.survival.process_status import evaluate_status, restart_key
from pulse_core.settings import ProcessSettings

FRESH_US = 1_000_000
QUIET = frozenset({ProcessState.UP, ProcessState.UNKNOWN})


async def process_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart a guarded process that has died; stop one that a person wants down."""
    verdict = await inner(prev, curr)
    for process in curr.settings.process:
        condition = evaluate_status(process, curr)
        news = (still_down_notices(process, condition, curr), still_up_notices(process, condition, curr))
        verdict = verdict.plus(
            *process_effects(process, condition, curr), *(n for new in news for n in new.notices)
        )
        for wait in (condition.wait_us, *(new.wait_us for new in news)):
            if wait is not None:
                verdict = verdict.within(wait // 1000 + 1)
        if condition.state not in QUIET:
            verdict = verdict.noting(f"{process.name}: {condition.state.value}: {condition.why}")
    return verdict


def process_effects(process: ProcessSettings, condition: ProcessStatus, curr: Snapshot) -> list[Effect]:
    """The effects for this status."""
    effects = []
    if condition.state is ProcessState.DUE:
        effects.append(restart_effect(process, condition.why, curr))
    if condition.stop:
        effects.append(stop_effect(process, curr))
    return effects


def restart_effect(process: ProcessSettings, why: str, curr: Snapshot) -> Effect:
    """The effect that restarts it; it names the dead process so that no live one is replaced."""
    history = curr.process(process.name)
    dead = {"pid": history.pid, "started": history.started} if history.pid is not None else None
    return Effect(
        action=RESTART_PROCESS,
        key=restart_key(process.name),
        params={
            "process": process.name,
            "instead_of": dead,
            "if_dead": True,
            "fresh": is_fresh(curr, history),
        },
        reason=f"{process.name} is {why}",
        survival=True,
        samples=curr.samples("process-alive"),
    )


def is_fresh(curr: Snapshot, history: ProcessHistory) -> bool:
    """Whether its death was seen a moment ago, so that another probe before the restart would only cost time."""
    return history.down is not None and curr.now.since(history.down) < FRESH_US


def stop_effect(process: ProcessSettings, curr: Snapshot) -> Effect:
    """The effect that stops it because a person requested that."""
    intent = curr.process(process.name).stop
    return Effect(
        action=STOP_PROCESS,
        key=f"{STOP_PROCESS}:{process.name}",
        params={"process": process.name},
        reason=f"{intent.by if intent else 'somebody'} wants {process.name} down",
        survival=True,
        samples=curr.samples("process-alive"),
    )
