"""Snapshots for a person: as a rule would see it now, or as it was at a moment in the past."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.state import current_state, settings_for, state_at
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Checkpoint, Head
from pulse_core.model.moment import Moment, iso
from pulse_core.model.vitals import WINDOW_US, windows_after
from pulse_core.projections.state import Snapshot


class CaveatedSnapshot(NamedTuple):
    """A snapshot, and the words that must go with it: what is not known of that moment any more."""

    snapshot: Snapshot
    caveats: Sequence[str] = ()


def snapshot(home: HomeContext, at: int | None) -> CaveatedSnapshot:
    """What a rule would see now, or saw at a moment (UTC microseconds)."""
    return current_snapshot(home) if at is None else past_snapshot(home, at)


def current_snapshot(home: HomeContext) -> CaveatedSnapshot:
    """The snapshot that the next tick would see."""
    state = current_state(home)
    settings, faults = settings_for(home, state)
    now = home.clock.now()
    with home.vitals() as vitals:
        windows = windows_after({}, vitals.between(now.at - WINDOW_US, now.at))
        number = vitals.tick_count() + 1
    caveats = (
        [f"the settings are faulty, so only the names of processes are known: {faults[0]}"] if faults else []
    )
    if state.control.damage:
        caveats.append(f"the log is damaged: {state.control.damage}")
    if not windows:
        caveats.append("no sense has spoken in the last minute: is the daemon running?")
    return CaveatedSnapshot(Snapshot(number, now, settings, windows, state), caveats)


def past_snapshot(home: HomeContext, at: int) -> CaveatedSnapshot:
    """The state after the last event before that moment, with the samples of the minute before it.

    The settings are today's: of earlier ones the log keeps only the digest, and says if it differs.
    """
    if at > home.clock.now().at:
        raise PulseError(f"{iso(at)} has not come yet; the newest state is told without --at")
    with home.events() as log, home.vitals() as vitals:
        last = log.last_before(at)
        if last is None:
            raise PulseError(f"the log begins after {iso(at)}; nothing is known of that moment")
        state = state_at(home, log, last.seq, _kept(home, vitals.snapshot_before(at)))
        tick = vitals.tick_before(at)
        windows = windows_after({}, vitals.between(at - WINDOW_US, at))
    settings, faults = settings_for(home, state)
    caveats = [f"the settings are faulty: {faults[0]}"] if faults else []
    if state.control.digest not in ("", settings.digest):
        caveats.append("other settings were in force then; these rules are folded with the present ones")
    if not windows:
        caveats.append("the samples of that minute are gone (vitals are kept for [watch] keep)")
    moment = Moment(at, last.boot, last.mono + max(0, at - last.at))
    return CaveatedSnapshot(Snapshot(tick.tick if tick else 0, moment, settings, windows, state), caveats)


def _kept(home: HomeContext, name: str | None) -> Mapping[str, Checkpoint]:
    """The projections in a kept snapshot; none if it can't be read.

    One with events that no disk had taken yet is of no use: they are in the log now, and would be folded twice.
    """
    try:
        blob = home.objects().read(name) if name else None
        whole: Mapping[str, Any] = json.loads(blob) if blob else {"supposed": True}
        if whole["supposed"]:
            return {}
        head = Head(whole["seq"])
        return {
            name: Checkpoint(whole["folds"][name], head, json.dumps(part))
            for name, part in whole["projected"].items()
            if name in whole["folds"]
        }
    except (Damaged, ValueError, KeyError):
        return {}
