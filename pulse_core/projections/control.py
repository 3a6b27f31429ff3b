"""The state of Pulse itself: paused or not, and which daemon and settings are in force."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pulse_core.model.event import Event
from pulse_core.model.kinds import DaemonStarted, DaemonStopped, LogVerified, Paused, Resumed, SettingsLoaded
from pulse_core.model.moment import Moment


@dataclass(frozen=True, slots=True)
class Control:
    """paused: since when, or None; by and why: who paused; digest: of the settings in force;
    processes: the names they guard; started / stopped: of the last daemon, with its pid and version;
    verified: when the whole log was last read, and the damage found then."""

    paused: Moment | None = None
    by: str = ""
    why: str = ""
    digest: str = ""
    processes: tuple[str, ...] = ()
    pid: int | None = None
    version: str = ""
    started: Moment | None = None
    stopped: Moment | None = None
    verified: Moment | None = None
    damage: str = ""


KINDS = frozenset(
    kind.kind for kind in (DaemonStarted, DaemonStopped, LogVerified, Paused, Resumed, SettingsLoaded)
)


def after(state: Control, events: Iterable[Event]) -> Control:
    """The controls after more events."""
    for event in events:
        match event.payload if event.kind in KINDS else None:
            case Paused(why=why):
                state = replace(state, paused=event.moment, by=event.actor, why=why)
            case Resumed():
                state = replace(state, paused=None, by="", why="")
            case SettingsLoaded(digest=digest, processes=processes):
                state = replace(state, digest=digest, processes=processes)
            case DaemonStarted(pid=pid, version=version):
                state = replace(state, pid=pid, version=version, started=event.moment, stopped=None)
            case LogVerified(fault=fault):
                state = replace(state, verified=event.moment, damage=fault)
            case DaemonStopped():
                state = replace(state, stopped=event.moment)
    return state
