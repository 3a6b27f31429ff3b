"""What the doctor finds: everything that Pulse stands on, looked at by checks that each adapter brings.

A check yields findings. It changes nothing, and neither reads without need nor waits for long. What repairs is a
function of the finding; it never touches `events.db`, which only a restore may put back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulse_core import __version__
from pulse_core.model.errors import PulseError
from pulse_core.settings import Settings

OK, WARN, FAIL = "ok", "warn", "fail"
DAMAGE_REMEDY = (
    "upulse restore a backup; or upulse daemon start --accept-damage, which goes on without what is lost"
)


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
    return [finding for check in checks for finding in _findings(check)]


def _findings(check: Check) -> list[Finding]:
    name = check.__name__.replace("_", " ")
    try:
        return list(check())
    except (PulseError, OSError) as error:
        return [
            Finding(name, FAIL, f"it can't be looked at: {error}", "look at the disk and its permissions")
        ]


def repair(findings: Iterable[Finding]) -> list[str]:
    """Repair what can be repaired safely; what was done, and what could not be."""
    done = []
    for finding in findings:
        if finding.repair:
            try:
                done.append(f"{finding.name}: {finding.repair()}")
            except (PulseError, OSError) as error:
                done.append(f"{finding.name}: could not be repaired: {error}")
    return done


@dataclass(frozen=True)
class DaemonChecks:
    """What the daemon's own answer tells.

    home_holder: the process that holds the home's lock, None for nobody; status: the daemon's answer, or why there is
    none; settings: those in the file, or the defaults, with their faults; loaded_digest: of the settings in force.
    """

    home_holder: Callable[[], int | None]
    status: Callable[[], Mapping[str, Any] | PulseError]
    settings_in_file: Callable[[], tuple[Settings, Sequence[str]]]
    settings_path: str
    loaded_digest: Callable[[], str | None]

    def daemon(self) -> Iterator[Finding]:
        """Whether it answers."""
        status, holder = self.status(), self.home_holder()
        if isinstance(status, Mapping):
            told = status["daemon"]
            words = f"it answers: process {told['pid']}, version {told['version']}"
            other = told["version"] != __version__
            remedy = f"upulse daemon restart, since this is {__version__}" if other else ""
            yield Finding("daemon", WARN if other else OK, words, remedy)
        elif holder is None:
            yield Finding("daemon", WARN, "no daemon runs: nothing is guarded", "upulse daemon start")
        else:
            words = f"process {holder} holds the home and does not answer: {status}"
            yield Finding("daemon", FAIL, words, "upulse daemon logs; if it stays so: upulse daemon restart")

    def settings(self) -> Iterator[Finding]:
        """Whether they can be used, and are those in force."""
        found, faults = self.settings_in_file()
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            yield Finding("settings", FAIL, f"{faults[0]}{more}", "mend it, then: upulse config check")
            return
        loaded = self.loaded_digest()
        if isinstance(self.status(), Mapping) and loaded is not None and loaded != found.digest:
            words = "config.toml was changed and is not in force yet"
            yield Finding("settings", WARN, words, "upulse daemon reload")
            return
        yield Finding("settings", OK, f"{self.settings_path} is good")

    def rule_host(self) -> Iterator[Finding]:
        """What the daemon says of the host of the user's rules; nothing without an engine."""
        status = self.status()
        if isinstance(status, PulseError) or not (now := status.get("engine")):
            return
        if not now["runs"]:
            words = "no host is up; your rules don't run"
            yield Finding("rule host", WARN, words, "see: upulse events --kind error")
        elif now["degraded"]:
            words = f"{now['runs'][:12]} runs instead of what was promoted"
            yield Finding("rule host", WARN, words, "promote anew")
        for rule, why in now["quarantined"].items():
            yield Finding("rule", WARN, f"{rule} is passed over: {why}", "mend it, and promote")
        if weak := [part for part, holds in now["sandbox"].items() if not holds and part != "user"]:
            words = f"isolation: partial (no {', '.join(weak)})"
            yield Finding("rule host", WARN, words, "use a newer kernel")

    def lacks_engine_user(self) -> bool:
        """Whether the running engine was loaded without a user of its own."""
        status = self.status()
        if isinstance(status, PulseError) or not (now := status.get("engine")):
            return False
        return bool(now["runs"]) and not now["sandbox"].get("user")
