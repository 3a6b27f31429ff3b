"""What the doctor finds: everything that Pulse stands on, looked at by checks that each adapter brings.

A check yields findings. It changes nothing, and neither reads without need nor waits for long. What repairs is a
function of the finding; it never touches `events.db`, which only a restore may put back.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pulse_core import __version__
from pulse_core.app.context import HomeContext, LoadedSettings
from pulse_core.app.state import current_state
from pulse_core.composition import set_aside
from pulse_core.model.errors import PulseError, SettingsRefused, describe_error
from pulse_core.model.event import Event
from pulse_core.model.home_status import SHOWN_PIDS, HomeStatus, LockHolder
from pulse_core.model.moment import Moment
from pulse_core.model.text import listed
from pulse_core.ports.engine import CONTROL_GROUP, GROUP_LIMITS
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.conditions import GONE, UNWRITTEN
from pulse_core.settings.settings import Settings

OK, WARN, FAIL = "ok", "warn", "fail"
DAMAGE_REMEDY = (
    "upulse restore a backup; or upulse daemon start --accept-damage, which goes on without what is lost"
)

HELPS = {
    CONTROL_GROUP: "a service has control groups of its own: upulse daemon install",
    GROUP_LIMITS: "once that is done: upulse daemon restart",
}
"""What helps where a host of the engine lacks these."""


class Finding(NamedTuple):
    """One thing that was looked at: how it is, in words; what to do about it; and what repairs it, if that is safe.

    repair: does it, and says what was done.
    """

    name: str
    level: str
    words: str
    remedy: str = ""
    repair: Callable[[], str] | None = None


Check = Callable[[], Iterable[Finding]]
"""Its name says what is looked at, where the check fails itself."""


def examine(checks: Iterable[Check]) -> list[Finding]:
    """All findings; a check that fails itself is one, too."""
    found: list[Finding] = []
    for check in checks:
        try:
            found += check()
        except Exception as error:  # noqa: BLE001 - what fails in one check must not hide what the others find
            words = f"it can't be looked at: {_words(error)}"
            name = check.__name__.replace("_", " ")
            remedy = (
                "look at the disk and its permissions" if isinstance(error, _OF_HOME) else "report this bug"
            )
            found.append(Finding(name, FAIL, words, remedy))
    return found


def repair(findings: Iterable[Finding]) -> list[str]:
    """Repair what can be repaired safely; what was done, and what could not be."""
    done = []
    for finding in findings:
        if finding.repair:
            try:
                done.append(f"{finding.name}: {finding.repair()}")
            except Exception as error:  # noqa: BLE001 - as above
                done.append(f"{finding.name}: could not be repaired: {_words(error)}")
    return done


_OF_HOME = (PulseError, OSError)
"""What a home and its machine can be wrong with; anything else is a bug."""


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, _OF_HOME) else describe_error(error)


@dataclass(frozen=True)
class DaemonChecks:
    """What the daemon's own answer tells, beside the home's settings and log; each is asked once."""

    home: HomeContext

    @cached_property
    def holder(self) -> LockHolder | None:
        """Who holds the home's lock: the daemon, for a moment a command, or nobody."""
        return self.home.daemon.lock_holder()

    @cached_property
    def status(self) -> HomeStatus | PulseError:
        """The daemon's status, or why there is none."""
        try:
            return self.home.daemon.status()
        except PulseError as error:
            return error

    @cached_property
    def settings_in_file(self) -> LoadedSettings:
        """The settings, or the defaults and why they are refused."""
        try:
            return self.home.settings()
        except SettingsRefused as refused:
            return LoadedSettings(Settings(), refused.faults)
        except PulseError as error:
            return LoadedSettings(Settings(), [str(error)])

    @property
    def answering_daemon(self) -> int | None:
        """The process of a daemon that answers."""
        return self.holder.pid if self.holder and isinstance(self.status, Mapping) else None

    def last_start(self) -> Moment | None:
        """When the daemon last started."""
        event = self.newest("daemon-started")
        return event.moment if event else None

    def newest(self, kind: str) -> Event | None:
        """The newest event of this kind; None also if the log can't be read, which is said of the log itself."""
        try:
            with self.home.events() as log:
                return next(log.events(EventQuery(kinds=(kind,)), limit=1, newest_first=True), None)
        except PulseError:
            return None

    def daemon(self) -> Iterator[Finding]:
        """Whether it answers."""
        status, holder = self.status, self.holder
        if isinstance(status, Mapping):
            told = status["daemon"]
            words = f"it answers: process {told['pid']}, version {told['version']}"
            other = told["version"] != __version__
            remedy = f"upulse daemon restart, since this is {__version__}" if other else ""
            yield Finding("daemon", WARN if other else OK, words, remedy)
        elif holder is None:
            yield Finding("daemon", WARN, "no daemon runs: nothing is guarded", "upulse daemon start")
        else:
            words = f"process {holder.pid} holds the home and does not answer: {status}"
            yield Finding("daemon", FAIL, words, "upulse daemon logs; if it stays so: upulse daemon restart")

    def log(self) -> Iterator[Finding]:
        """What the daemon says of the log that it has open: the files alone may look well."""
        status = self.status
        for one in status["conditions"] if isinstance(status, Mapping) else ():
            if one["name"] in {GONE, UNWRITTEN}:
                yield Finding("log", FAIL, f"the daemon can't record anything: {one['evidence']}")

    def safe_mode(self) -> Iterator[Finding]:
        """Whether something is left out since it or daemons crashed, or a person wants it; from the log alone."""
        try:
            state = current_state(self.home)
        except PulseError:
            return  # which is said of the log itself
        for name, why in set_aside(state).items():
            remedy = "a bug of Pulse: report it, and upgrade; until then all else goes on"
            yield Finding("capability", WARN, f"{name} is set aside: {why}", remedy)
        control, engine = state.control, state.engine
        if control.safe:
            words = (
                f"{control.crashes} daemons in a row were killed, or failed, within a minute of their start"
            )
            remedy = "; ".join(
                filter(None, ("see: upulse daemon logs", engine.remedy, "upulse daemon restart --normal"))
            )
            yield Finding("safe mode", WARN, f"without {', '.join(control.left_out)}: {words}", remedy)
        if engine.disabled:
            words = (
                f"it was disabled by {engine.disabled_by}{engine.disabled_why and ': '}{engine.disabled_why}"
            )
            yield Finding("engine", WARN, words, "upulse engine enable")

    def leftovers(self) -> Iterator[Finding]:
        """What the daemon says of processes that outlived who is guarded, and of those in its way."""
        status = self.status
        for one in status["processes"] if isinstance(status, Mapping) else ():
            if left := one.get("leftovers"):
                words = f"{one['name']}: {listed(left, SHOWN_PIDS)} of earlier lives of it"
                remedy = (
                    'kill what is not meant to stay; with kill = "tree" a restart and a stop end what is left'
                )
                yield Finding("leftovers", WARN, words, remedy)
        for gone in status.get("unguarded", ()) if isinstance(status, Mapping) else ():
            pids = " ".join(map(str, gone["pids"]))
            words = f"{gone['name']} is not in the settings any more; still running: {pids}"
            yield Finding("leftovers", WARN, words, f"kill {pids}; or put it back into the settings")

    def settings(self) -> Iterator[Finding]:
        """Whether they can be used, and are those in force."""
        found, faults, _ = self.settings_in_file
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            yield Finding("settings", FAIL, f"{faults[0]}{more}", "mend it, then: upulse config check")
            return
        loaded = self.newest("settings-loaded")
        in_force = json.loads(loaded.data).get("digest", "") if loaded else found.digest
        if isinstance(self.status, Mapping) and in_force != found.digest:
            words = "config.toml was changed and is not in force yet"
            yield Finding("settings", WARN, words, "upulse daemon reload")
            return
        yield Finding("settings", OK, f"{self.home.layout.config} is good")

    def rule_host(self) -> Iterator[Finding]:
        """What the daemon says of the host of the user's rules; nothing without an engine."""
        status = self.status
        if isinstance(status, PulseError) or not (now := status.get("engine")):
            return
        if why := now.get("gone"):
            yield Finding(
                "engine", FAIL, str(why), "upulse restore, or put engine/ back; then: upulse daemon restart"
            )
        elif not now["runs"] and not now.get("disabled") and not now.get("left_out"):
            words = "its host is starting" if now.get("starting") else "no host is up"
            yield Finding(
                "rule host", WARN, f"{words}; your rules don't run", "see: upulse events --kind error"
            )
        elif now["runs"] and now.get("degraded"):
            words = f"{now['runs'][:12]} runs instead of what was promoted"
            yield Finding("rule host", WARN, words, "promote anew")
        if why := now.get("without_plugins"):
            words = f"left out, since your rules can't be loaded with them: {why}"
            yield Finding(
                "plugins",
                WARN,
                words,
                "see which one: upulse plugins; remove it, then: upulse daemon restart",
            )
        for rule, fault in status.get("raising", {}).items():
            yield Finding(
                "rule", WARN, f"{rule} raises: {fault}", "mend it, and promote; or: upulse rollback"
            )
        for rule, why in now["quarantined"].items():
            yield Finding("rule", WARN, f"{rule} is quarantined: {why}", "mend it, and promote")
        others = ("user", CONTROL_GROUP, GROUP_LIMITS)  # of these is told with what would help
        if weak := [part for part, holds in now["sandbox"].items() if not holds and part not in others]:
            words = f"isolation: partial (no {', '.join(weak)})"
            yield Finding("rule host", WARN, words, "use a newer kernel")
        for part, why in now.get("missing", {}).items():
            words = f"isolation: partial (no {part}): {why}"
            yield Finding(part, WARN if now["sandbox"]["user"] else OK, words, HELPS[part])

    def lacks_engine_user(self) -> bool:
        """Whether the running engine was loaded without a user of its own."""
        status = self.status
        if isinstance(status, PulseError) or not (now := status.get("engine")):
            return False
        return bool(now["runs"]) and not now["sandbox"].get("user")
