"""How everything stands, as one JSON value: for `upulse status` and whoever else asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulse_core.model.moment import Moment, iso
from pulse_core.model.payload import Json
from pulse_core.projections import Phase, Projected, Snapshot
from pulse_core.rules.survival.condition import judge
from pulse_core.settings import ProcessSettings, Settings


@dataclass(frozen=True, slots=True)
class Beat:
    """The ticks so far: how many, and what the last ones took in microseconds, oldest first."""

    count: int = 0
    took_us: Sequence[int] = ()


def status(
    settings: Settings,
    facts: Projected,
    now: Moment,
    beat: Beat,
    daemon: Mapping[str, Json],
    vitals: Mapping[str, Mapping[str, Json]],
) -> dict[str, Json]:
    """Daemon, processes, effects, ticks and the newest samples. Pure."""
    snapshot = Snapshot(0, now, settings, {}, facts)
    control = facts.control
    return {
        "daemon": dict(daemon),
        "paused": {"since": iso(control.paused.at), "by": control.by, "why": control.why}
        if control.paused
        else None,
        "log": {
            "rows": facts.seq,
            "verified": iso(control.verified.at) if control.verified else None,
            "damage": control.damage or None,
            "unwritten": facts.supposed,
        },
        "processes": [process_status(process, snapshot) for process in settings.process],
        "effects": effect_counts(facts),
        "tick": beat_status(beat),
        "vitals": {key: dict(data) for key, data in vitals.items()},
    }


def process_status(process: ProcessSettings, snapshot: Snapshot) -> dict[str, Json]:
    """One guarded process in the words of the rule that guards it."""
    condition, history = judge(process, snapshot), snapshot.process(process.name)
    since = history.up or history.down
    return {
        "name": process.name,
        "state": condition.state.value,
        "pid": history.pid if history.up else None,
        "since": iso(since.at) if since else None,
        "restarts": history.restarts,
        "why": condition.why,
    }


def effect_counts(facts: Projected) -> dict[str, int]:
    """How many effects stand where."""
    effects = facts.effects
    return {
        "pending": effects.count(Phase.PENDING, Phase.RETRYING),
        "executing": effects.count(Phase.EXECUTING),
        "acked": effects.acked,
        "failed": effects.failed,
        "unknown": effects.unknown,
        "cancelled": effects.cancelled,
    }


def beat_status(beat: Beat) -> dict[str, Json]:
    """Count, last and 99th percentile of the ticks, milliseconds."""
    took = sorted(beat.took_us)
    return {
        "count": beat.count,
        "last_ms": beat.took_us[-1] / 1000 if took else None,
        "p99_ms": took[min(len(took) - 1, len(took) * 99 // 100)] / 1000 if took else None,
    }
