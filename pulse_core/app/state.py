"""The projections of a home without its daemon's help, at the head of the log or at an earlier row; and snapshots."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from pulse_core.app.context import HomeContext, LoadedSettings
from pulse_core.composition import FOLD
from pulse_core.model.batches import in_batches
from pulse_core.model.errors import Damaged, NoHome, PulseError, SettingsRefused
from pulse_core.model.event import Checkpoint, Event, Head
from pulse_core.model.moment import Moment, local_text
from pulse_core.model.stored_data import REDACTED, damage_in, is_damaged
from pulse_core.model.vitals import WINDOW_US, windows_after
from pulse_core.ports.engine import History
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.fold import Fold
from pulse_core.projections.state import Snapshot, State, StateProjection
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

T = TypeVar("T")


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
    loaded = settings_for(home, state)
    now = home.clock.now()
    with home.vitals() as vitals:
        windows = windows_after({}, vitals.between(now.at - WINDOW_US, now.at))
        number = vitals.tick_count() + 1
    caveats = loaded.caveats
    if state.control.damage:
        caveats.append(f"the log is damaged: {state.control.damage}")
    if not windows:
        caveats.append("no watcher has reported in the last minute: is the daemon running?")
    return CaveatedSnapshot(Snapshot(number, now, loaded.settings, windows, state), caveats)


def past_snapshot(home: HomeContext, at: int) -> CaveatedSnapshot:
    """The state after the last event before that moment, with the samples of the minute before it.

    The settings are today's: of earlier ones the log keeps only the digest, and says if it differs.
    """
    if at > home.clock.now().at:
        raise PulseError(f"{local_text(at)} has not come yet; the newest state is told without --at")
    with home.events() as log, home.vitals() as vitals:
        last = log.last_before(at)
        if last is None:
            raise PulseError(f"the log begins after {local_text(at)}; nothing is known of that moment")
        state = state_at(home, log, last.seq, _kept(home, vitals.snapshot_before(at)))
        tick = vitals.tick_before(at)
        windows = windows_after({}, vitals.between(at - WINDOW_US, at))
    loaded = settings_for(home, state)
    caveats = loaded.caveats
    if state.control.digest not in ("", loaded.settings.digest):
        caveats.append("other settings were in force then; these rules are folded with the present ones")
    if not windows:
        caveats.append("the samples of that minute are gone (vitals are kept for [watch] keep)")
    moment = Moment(at, last.boot, last.mono + max(0, at - last.at))
    return CaveatedSnapshot(
        Snapshot(tick.tick if tick else 0, moment, loaded.settings, windows, state), caveats
    )


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


BATCH = 2_000


def current_state(home: HomeContext, fold: Fold = FOLD) -> State:
    """The projections at the head of the log, from the last checkpoint on if it is of this log."""
    try:
        with home.events() as log:
            return _folded(home, log, fold)
    except NoHome:  # a home whose log was never opened, or is gone
        return fold.start


def current_value(home: HomeContext, projection: StateProjection[T]) -> T:
    """The value of this projection at the head of the log; no other one is read."""
    return current_state(home, Fold((projection,))).of(projection)


def _folded(home: HomeContext, log: EventReader, fold: Fold) -> State:
    head, damage = log.head().seq, ""
    state = resumed(log, checkpoints_of(home, log), fold=fold)
    query = EventQuery(since_seq=state.seq, kinds=tuple(fold.kinds))
    for batch in home.progress(in_batches(log.events(query), BATCH), head):
        lost = (event for event in batch if is_damaged(event.data))
        damage = damage or next((f"row {one.seq} ({one.kind}): {damage_in(one.data)}" for one in lost), "")
        state = fold(state, [foldable(event) for event in batch])
    state = fold(state, (), upto=max(head, state.seq))
    if not damage or state.control.damage:  # a check of the log has named one
        return state
    return replace(state, control=replace(state.control, damage=damage))


def state_at(home: HomeContext, log: EventReader, seq: int, *kept: Mapping[str, Checkpoint]) -> State:
    """The projections at a row, from the furthest before it that was kept: in `kept`, or as a checkpoint."""
    state = resumed(log, *kept, checkpoints_of(home, log), upto=seq)
    events = log.events(EventQuery(since_seq=state.seq, kinds=tuple(FOLD.kinds)))
    for batch in home.progress(in_batches(takewhile(lambda event: event.seq <= seq, events), BATCH), seq):
        state = FOLD(state, [foldable(event) for event in batch])
    return FOLD(state, (), upto=seq)


def history_of(home: HomeContext) -> History:
    """All events after a row, in batches: what authors' projections remember of the time before. None without a log."""

    async def history(seq: int) -> AsyncIterator[Sequence[Event]]:
        try:
            with home.events() as log:
                for batch in in_batches(log.events(EventQuery(since_seq=seq)), BATCH):
                    yield [foldable(event) for event in batch]
        except NoHome:
            return

    return history


def checkpoints_of(home: HomeContext, log: EventReader) -> Mapping[str, Checkpoint]:
    """The checkpoints of this log by the name of their projection."""
    found = home.checkpoints()
    ours = {head for head in {one.head for one in found.values()} if log.chain_at(head.seq) == head.chain}
    return {name: one for name, one in found.items() if one.head in ours}


def resumed(
    log: EventReader, *kept: Mapping[str, Checkpoint], upto: int | None = None, fold: Fold = FOLD
) -> State:
    """The state at the furthest of these checkpoints that lies no further than a row."""
    catch_up = fold.resume(*kept, upto=upto)
    for gap in catch_up.gaps():
        events = log.events(EventQuery(since_seq=gap.since, kinds=tuple(gap.kinds)))
        for batch in in_batches(takewhile(lambda event: event.seq <= gap.upto, events), BATCH):  # noqa: B023 - read at once
            catch_up.take([foldable(event) for event in batch])
    return catch_up.state


def settings_for(home: HomeContext, state: State) -> LoadedSettings:
    """The settings and their faults; where they can't be used, just the names that were guarded last."""
    try:
        return home.settings()
    except SettingsRefused as refused:
        known = tuple(ProcessSettings(name=name, start=("?",)) for name in state.control.processes)
        return LoadedSettings(Settings(process=known), refused.faults, known=False)


def usable_settings(home: HomeContext) -> Settings:
    """The settings, or the defaults where they are refused: a pause must not wait until they are mended."""
    try:
        return home.settings().settings
    except SettingsRefused:
        return Settings()


def settings_faults(home: HomeContext) -> Sequence[str]:
    """Why the settings are refused; empty if they are not."""
    try:
        return home.settings().faults
    except SettingsRefused as refused:
        return refused.faults


def foldable(event: Event) -> Event:
    """The event; one whose payload is lost is passed over by the folds, as a redacted one is."""
    return event._replace(data=REDACTED) if is_damaged(event.data) else event
