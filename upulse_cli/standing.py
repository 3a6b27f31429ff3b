"""How everything stands: the daemon's own answer, or what the files say while it is silent."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import Holder, holder
from pulse_adapters.ipc.protocol import NotAnswering
from pulse_core.model.moment import iso

if TYPE_CHECKING:
    from pulse_core.projections import State
    from pulse_core.projections.control import Control
    from pulse_core.settings import Settings

SOON = 2.0
"""Seconds after which a daemon counts as not answering."""

LAST_TICKS = 1_000
DAEMON = "pulse"
"""The actor of what the daemon records by itself."""

Standing = Mapping[str, Any]


def standing(home: Home) -> Standing:
    """The value of `pulse_core.daemon.status`, as the daemon says it or else read from the files.

    `daemon.state` is `running`, `not-answering` (the lock is held, the rest is from files) or `stopped`.
    """
    try:
        with Client(home.socket, SOON) as client:
            return client.ask("status")
    except NotAnswering:
        return from_files(home, holder(home.lock))


def unheard(home: Home) -> str | None:
    """Why nobody would hear a request, in words; None if a daemon answers."""
    daemon = standing_of_daemon(home)
    if daemon["state"] in ("starting", "running"):
        return None
    if daemon["state"] == "stopped":
        return "no daemon runs; start one with: upulse daemon start"
    who = f"process {daemon['pid']}" if daemon["pid"] else "whoever holds the home"
    return f"the daemon ({who}) does not answer; see: upulse daemon logs"


def standing_of_daemon(home: Home) -> Mapping[str, Any]:
    """The daemon's own part, without reading the log."""
    try:
        with Client(home.socket, SOON) as client:
            daemon: Mapping[str, Any] = client.ask("status")["daemon"]
            return daemon
    except NotAnswering:
        return silent(holder(home.lock), "")


def silent(held: Holder | None, stopped: str) -> Mapping[str, Any]:
    """A daemon that does not answer: stuck or just starting if it holds the lock, else stopped since then."""
    if held is None:
        return {"state": "stopped", "pid": None, "since": stopped or None, "version": None}
    return {"state": "not-answering", "pid": held.pid, "since": iso(held.since_at), "version": held.version}


def from_files(home: Home, held: Holder | None) -> Standing:
    """Everything but the daemon's own word: the projections folded anew, the last samples and ticks."""
    from pulse_adapters.host.clock import SystemClock
    from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
    from pulse_core.daemon.status import TickCounts, status
    from upulse_cli.facts import facts_of

    facts = facts_of(home)
    settings, faults = decided(home, facts)
    control = facts.control
    with SqliteVitalsReader(home.path) as vitals:
        took = [tick.took_us for tick in reversed(vitals.ticks(LAST_TICKS))]
        beat = TickCounts(vitals.tick_count(), took)
        samples = vitals.last_samples()
        signs = [*(tick.moment.at for tick in vitals.ticks(1)), *(sample.moment.at for sample in samples)]
    newest = {sample.key: sample.data for sample in samples}
    died = held is None and control.started is not None and control.stopped is None
    daemon = {**silent(held, last_seen(home, control, signs)), **({"died": True} if died else {})}
    whole = status(settings, facts, SystemClock().now(), beat, daemon, newest)
    return {**whole, "settings_faults": faults} if faults else whole


def last_seen(home: Home, control: "Control", signs: Sequence[int]) -> str:
    """When the daemon stopped; one that was killed could not say so, and lived at least until its last sign of life.

    signs: when it last kept a tick or a sample (UTC microseconds).
    """
    if control.stopped:
        return iso(control.stopped.at)
    if not control.started:
        return ""
    from pulse_adapters.sqlite.event_reader import SqliteEventReader

    with SqliteEventReader(home.path) as log:
        event = next((row.at for row in log.events(newest_first=True) if row.actor == DAEMON), 0)
    last = max(event, *signs, 0)
    return iso(last) if last else ""


def decided(home: Home, facts: "State") -> tuple["Settings", tuple[str, ...]]:
    """The settings and their faults; where they can't be used, just the names that were guarded last."""
    from pulse_adapters.config.file import load_to_start
    from pulse_core.model.errors import SettingsRefused
    from pulse_core.settings import ProcessSettings, Settings

    try:
        return load_to_start(home.config)
    except SettingsRefused as refused:
        known = tuple(ProcessSettings(name=name, start=("?",)) for name in facts.control.processes)
        return Settings(process=known), refused.faults
