"""The state of Pulse itself: paused or not, its daemons and how often they crashed, and the settings in force."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    AnchorPlaces,
    DaemonHealthy,
    DaemonStarted,
    DaemonStopped,
    EnginePromoted,
    EngineRolledBack,
    EventRedacted,
    LogRestored,
    LogVerified,
    Paused,
    Resumed,
    SafeModeEntered,
    SafeModeLeft,
    SettingsLoaded,
    SettingsRejected,
)
from pulse_core.model.moment import US_PER_SECOND, Moment

HEALTHY = 60 * US_PER_SECOND
"""How long a daemon must have run for its end not to count as an early crash."""
EPISODE = 3_600 * US_PER_SECOND
"""Starts further apart than this are no crash loop; and how long a daemon runs in safe mode until it leaves that."""
MOST_FAULTS, LONGEST_FAULT = 5, 500
"""How many faults of refused settings are kept, and how many characters of each."""


@dataclass(frozen=True, slots=True)
class Control:
    """paused: since when, or None; by and why: who paused; digest: of the settings in force;
    processes: the names they guard; faults: why newer settings were refused;
    started / stopped: of the last daemon, with its pid and version;
    verified: when the whole log was last read, and the damage found then;
    crashes: starts in a row whose daemon ended without a word within a minute; unproven: the last start, if its daemon
    has neither stopped nor run for a minute; safe: since when safe mode lasts, or None; left_out: what that leaves out, and
    left_out_since when just that;
    redacted: whether data was taken out of the log since the last start, so that checkpoints may still have it;
    anchored: where its head is written down outside of the home; unwatched: when the daemon before the last one stopped or
    was last seen (UTC microseconds; 0 if there was none); death: how that one ended without a stop, or empty;
    restored: when the backup was made from which the log was put back since the last start, if it may lack how that daemon
    ended (UTC microseconds; else 0); has_gap: whether that was so at the last start: then `unwatched` is of that backup."""

    paused: Moment | None = None
    by: str = ""
    why: str = ""
    digest: str = ""
    processes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    pid: int | None = None
    version: str = ""
    started: Moment | None = None
    stopped: Moment | None = None
    verified: Moment | None = None
    damage: str = ""
    crashes: int = 0
    unproven: Moment | None = None
    safe: Moment | None = None
    left_out: tuple[str, ...] = ()
    left_out_since: Moment | None = None
    redacted: bool = False
    anchored: tuple[str, ...] = ()
    unwatched: int = 0
    death: str = ""
    restored: int = 0
    has_gap: bool = False


KINDS = frozenset(
    kind.kind
    for kind in (
        AnchorPlaces,
        DaemonHealthy,
        DaemonStarted,
        DaemonStopped,
        EnginePromoted,
        EngineRolledBack,
        EventRedacted,
        LogRestored,
        LogVerified,
        Paused,
        Resumed,
        SafeModeEntered,
        SafeModeLeft,
        SettingsLoaded,
        SettingsRejected,
    )
)


def after(state: Control, events: Iterable[Event]) -> Control:
    """The controls after more events."""
    for event in events:
        if event.kind not in KINDS:
            continue  # at once, not after a comparison with each class
        match event.payload:
            case Paused(why=why):
                if state.paused is None or why:  # who pauses again may say another reason; since when stays
                    state = replace(state, paused=state.paused or event.moment, by=event.actor, why=why)
            case Resumed():
                state = replace(state, paused=None, by="", why="")
            case SettingsLoaded(digest=digest, processes=processes):
                state = replace(state, digest=digest, processes=processes, faults=())
            case SettingsRejected(faults=faults):
                state = replace(state, faults=tuple(one[:LONGEST_FAULT] for one in faults[:MOST_FAULTS]))
            case DaemonStarted(pid=pid, version=version, last_seen=seen):
                last = state.stopped or state.started
                unwatched = state.restored or max(seen, last.at if last else 0)
                has_gap = bool(state.restored)
                state = replace(_start(state, event.moment), pid=pid, version=version, unwatched=unwatched)
                state = replace(state, restored=0, has_gap=has_gap)
                death = _death(state, event.moment)
                state = replace(state, started=event.moment, stopped=None, redacted=False, death=death)
            case LogRestored(made_at=made_at) as restored:
                # Nobody restores while a daemon runs; how the one ended that the log knows, is not in it.
                if restored.has_gap and state.started and not state.stopped:
                    state = replace(state, unproven=None, stopped=event.moment, restored=made_at)
            case EventRedacted():
                state = replace(state, redacted=True)
            case AnchorPlaces(places=places):
                state = replace(state, anchored=places)
            case LogVerified(fault=fault):
                state = replace(state, verified=event.moment, damage=fault)
            case DaemonStopped():
                state = replace(_stop(state, event.moment), stopped=event.moment)
            case DaemonHealthy():
                state = _forget_crashes(state)
            case SafeModeEntered(left_out=left_out):
                since = state.left_out_since if left_out == state.left_out else event.moment
                state = replace(
                    state, safe=state.safe or event.moment, left_out=left_out, left_out_since=since
                )
            case SafeModeLeft():
                state = _leave_safe_mode(state)
            case EnginePromoted() | EngineRolledBack():
                if event.cause is not None:  # a person asked; what Pulse does by itself could go on for ever
                    state = _leave_safe_mode(state)
    return state


def _leave_safe_mode(state: Control) -> Control:
    return replace(state, crashes=0, safe=None, left_out=(), left_out_since=None)


def _death(state: Control, now: Moment) -> str:
    """How the daemon before this start ended, if nobody stopped it."""
    if state.started is None or state.stopped is not None:
        return ""
    return death_words(state.started, now)


def death_words(alive: Moment, now: Moment) -> str:
    """How a daemon ended that was not stopped; alive: when it ran; now: when the next one started."""
    return "the machine was restarted" if alive.boot != now.boot else "it was killed, or it crashed"


def _start(state: Control, now: Moment) -> Control:
    """One more start: the daemon before it crashed early if it has neither stopped nor proven itself."""
    before = state.unproven
    if before is None or before.boot != now.boot:
        crashes = state.crashes  # a clean stop, or the machine went down
    else:
        crashes = state.crashes + 1
        if now.since(before) >= EPISODE and not state.left_out:
            crashes = 0
    return replace(state, crashes=crashes, unproven=now)


def _stop(state: Control, now: Moment) -> Control:
    before = state.unproven
    if before is not None and now.since(before) >= HEALTHY:
        state = _forget_crashes(state)
    return replace(state, unproven=None)


def _forget_crashes(state: Control) -> Control:
    """A daemon has run for a minute. In safe mode that proves nothing for what is left out."""
    return replace(state, unproven=None, crashes=state.crashes if state.left_out else 0)
