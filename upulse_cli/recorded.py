"""Snapshots for a person: as a rule would see it now, or as it was at a moment in the past."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.references import object_path
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.composition import FOLD
from pulse_core.model.checkpoint import Checkpoint
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Head
from pulse_core.model.moment import Moment, iso
from pulse_core.model.vitals import WINDOW_US, Sample, Window
from pulse_core.ports.readers import EventQuery
from pulse_core.projections import Snapshot, State
from upulse_cli.facts import facts_of, foldable, in_batches, kept_of, resumed
from upulse_cli.patience import aloud
from upulse_cli.standing import decided


class Seen(NamedTuple):
    """A snapshot, and the words that must go with it: what is not known of that moment any more."""

    snapshot: Snapshot
    caveats: Sequence[str] = ()


def seen(home: Home, at: int | None) -> Seen:
    """What a rule would see now, or saw at a moment (UTC microseconds)."""
    return seen_now(home) if at is None else seen_then(home, at)


def seen_now(home: Home) -> Seen:
    """The snapshot that the next tick would see."""
    facts = facts_of(home)
    settings, faults = decided(home, facts)
    now = SystemClock().now()
    with SqliteVitalsReader(home.path) as vitals:
        windows = _windows(vitals.between(now.at - WINDOW_US, now.at))
        number = vitals.tick_count() + 1
    caveats = (
        [f"the settings are faulty, so only the names of processes are known: {faults[0]}"] if faults else []
    )
    if facts.control.damage:
        caveats.append(f"the log is damaged: {facts.control.damage}")
    if not windows:
        caveats.append("no sense has spoken in the last minute: is the daemon running?")
    return Seen(Snapshot(number, now, settings, windows, facts), caveats)


def seen_then(home: Home, at: int) -> Seen:
    """The state after the last event before that moment, with the samples of the minute before it.

    The settings are today's: of earlier ones the log keeps only the digest, and says if it differs.
    """
    if at > SystemClock().now().at:
        raise PulseError(f"{iso(at)} has not come yet; the newest state is told without --at")
    with SqliteEventReader(home.path) as log, SqliteVitalsReader(home.path) as vitals:
        last = log.last_before(at)
        if last is None:
            raise PulseError(f"the log begins after {iso(at)}; nothing is known of that moment")
        facts = facts_at(log, last.seq, _kept(home, vitals.snapshot_before(at)), kept_of(home, log))
        tick = vitals.tick_before(at)
        windows = _windows(vitals.between(at - WINDOW_US, at))
    settings, faults = decided(home, facts)
    caveats = [f"the settings are faulty: {faults[0]}"] if faults else []
    if facts.control.digest not in ("", settings.digest):
        caveats.append("other settings were in force then; these rules are folded with the present ones")
    if not windows:
        caveats.append("the samples of that minute are gone (vitals are kept for [watch] keep)")
    moment = Moment(at, last.boot, last.mono + max(0, at - last.at))
    return Seen(Snapshot(tick.tick if tick else 0, moment, settings, windows, facts), caveats)


def facts_at(log: SqliteEventReader, seq: int, *kept: Mapping[str, Checkpoint]) -> State:
    """The projections at a row, folded from the nearest ones that were kept of an earlier row, or from the start."""
    state = resumed(log, *kept, upto=seq)
    rows = log.events(EventQuery(since_seq=state.seq, kinds=tuple(FOLD.kinds)))
    for batch in aloud(in_batches(takewhile(lambda row: row.seq <= seq, rows)), seq):
        state = FOLD(state, [foldable(row) for row in batch])
    return FOLD(state, (), upto=seq)


def _kept(home: Home, snapshot: str | None) -> Mapping[str, Checkpoint]:
    """The projections in a kept snapshot; none if it can't be read.

    One with events that no disk had taken yet is of no use: they are in the log now, and would be folded twice.
    """
    if snapshot is None:
        return {}
    try:
        blob = object_path(home.objects, snapshot).read_bytes()
        if sha256(blob).hexdigest() != snapshot:
            return {}
        whole: dict[str, Any] = json.loads(blob)
        if whole["supposed"]:
            return {}
        head = Head(whole["seq"])
        return {
            name: Checkpoint(whole["folds"][name], head, json.dumps(part))
            for name, part in whole["projected"].items()
            if name in whole["folds"]
        }
    except (OSError, ValueError, KeyError):
        return {}


def _windows(rows: Sequence[Sample]) -> dict[str, Window]:
    windows: dict[str, Window] = {}
    for row in rows:
        windows[row.key] = windows.get(row.key, Window()).plus(row)
    return windows
