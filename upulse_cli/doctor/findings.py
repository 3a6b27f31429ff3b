"""What a check finds, what it may look at, and how checks are run."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pulse_adapters.config.file import load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import Holder, holder
from pulse_core.model.errors import PulseError, SettingsRefused
from pulse_core.settings import Settings

OK, WARN, FAIL = "ok", "warn", "fail"
PATIENCE = 3.0


class Finding(NamedTuple):
    """One thing that was looked at: how it is, in words; what to do about it; and what repairs it, if that is safe.

    repair: does it, and says what was done.
    """

    name: str
    level: str
    words: str
    remedy: str = ""
    repair: Callable[[], str] | None = None


@dataclass(frozen=True)
class Ground:
    """What all checks look at. deep: read the whole log, however long it is."""

    home: Home
    deep: bool = False

    @cached_property
    def holder(self) -> Holder | None:
        """Who holds the home's lock: the daemon, for a moment a command, or nobody."""
        return holder(self.home.lock)

    @cached_property
    def answer(self) -> Mapping[str, Any] | PulseError:
        """The daemon's status, or why there is none."""
        try:
            with Client(self.home.socket, PATIENCE) as client:
                return client.ask("status")
        except PulseError as error:
            return error

    @cached_property
    def settings(self) -> tuple[Settings, Sequence[str]]:
        """The settings, or the defaults and why they are refused."""
        try:
            return load_to_start(self.home.config)
        except SettingsRefused as refused:
            return Settings(), refused.faults
        except PulseError as error:
            return Settings(), [str(error)]


Check = Callable[[Ground], Iterable[Finding]]


def examined(ground: Ground, checks: Iterable[Check]) -> list[Finding]:
    """All findings; a check that fails itself is one, too."""
    return [finding for check in checks for finding in _findings(check, ground)]


def _findings(check: Check, ground: Ground) -> list[Finding]:
    name = check.__name__.replace("_", " ")
    try:
        return list(check(ground))
    except (PulseError, OSError, sqlite3.Error) as error:
        return [
            Finding(name, FAIL, f"it can't be looked at: {error}", "look at the disk and its permissions")
        ]


def repaired(findings: Iterable[Finding]) -> list[str]:
    """Repair what can be repaired safely; what was done, and what could not be."""
    done = []
    for finding in findings:
        if finding.repair:
            try:
                done.append(f"{finding.name}: {finding.repair()}")
            except (PulseError, OSError) as error:
                done.append(f"{finding.name}: could not be repaired: {error}")
    return done
