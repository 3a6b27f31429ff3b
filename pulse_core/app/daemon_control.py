"""Starting and stopping the daemon: by the service manager where that has its unit, else as a background process."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pulse_core.model.errors import PulseError
from pulse_core.model.home_status import LogStatus
from pulse_core.model.text import are, count, count_kinds

STOP_MARGIN = 5.0
"""Seconds beyond the settings' stop_grace that a stop may take."""
UNTOUCHED = "Nothing was stopped or started."
"""Ends the words of a restart that is refused before it has begun."""


class BackgroundDaemon(Protocol):
    """The daemon of one home as a process in the background."""

    def start(self, *options: str) -> int:
        """Start it and wait until it is ready; its process. Raises PulseError with its own last words."""

    def stop(self, patience: float) -> int | None:
        """Ask it to stop and wait until it has, so many seconds; its process, or None if there was none."""


class DaemonUnit(Protocol):
    """The unit of one home's daemon, with the machine's service manager. Each verb may raise PulseError."""

    def path(self) -> str | None:
        """The path of the unit's file; None if none is installed."""

    def is_active(self) -> bool:
        """Whether it says that the daemon is up. False without a unit."""

    def install(self, user: bool) -> str:
        """Install the unit, for the machine or for this user alone, without starting it; the path of its file."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def restart(self) -> None: ...


@dataclass(frozen=True)
class DaemonControl:
    """Who starts and stops the daemon of one home.

    is_held: whether somebody holds the home, or PulseError where its lock can't be one; stop_grace: seconds that a stop
    waits for running effects; set_up_account: gives the engine a user of its own if it can, and says how that stands,
    or nothing without an engine; end_hosts: ends what hosts of a daemon that is gone have left, or raises PulseError;
    successor: while inside, another process waits to do something if this one is ended, once nobody holds the home, for
    which it waits so many seconds; log: what the daemon says of the log, None if it says nothing; is_end_recorded: whether
    its stop is after this row, and with it what was held; is_log_there: whether the log lies in its home, or what was
    saved of it; say: tells what was done.
    """

    background: BackgroundDaemon
    unit: DaemonUnit
    is_held: Callable[[], bool]
    lost: Callable[[], int | None]
    stop_grace: Callable[[], float]
    set_up_account: Callable[[], str]
    end_hosts: Callable[[], None]
    successor: Callable[[Callable[[], None], float], AbstractContextManager[None]]
    log: Callable[[], LogStatus | None]
    is_end_recorded: Callable[[int], bool]
    is_log_there: Callable[[], bool]
    say: Callable[[str], None]

    def start(self, *options: str) -> None:
        """Start the daemon and wait until it is ready."""
        unit = self.unit.path()
        if unit and options:
            raise PulseError(
                f"systemd starts this daemon and can't pass {options[0]}; do it once by hand, then stop that: "
                f"upulse daemon start --foreground {options[0]}"
            )
        if unit:
            self.unit.start()
            self.say("Started through systemctl.")
        else:
            self.say(f"Started, process {self.background.start(*options)}.")

    def restart(self, meanwhile: Callable[[], object] | None = None) -> None:
        """Stop the daemon if it runs, and start it; meanwhile: what is done while it is down."""
        self._demand_usable_lock()
        if not meanwhile and self.unit.is_active():
            self.unit.restart()
            self.say("Restarted through systemctl.")
            return
        with self._started_all_the_same():
            self.stop()  # also one that systemd starts again and again
            try:
                if meanwhile:
                    meanwhile()
            finally:
                self.start()

    def _started_all_the_same(self) -> AbstractContextManager[None]:
        """Stopped inside, it is started although this process ends before: by Ctrl-C, a closed terminal, a kill."""
        return self.successor(self.start, self.stop_grace() + STOP_MARGIN)

    def stop(self) -> bool:
        """Stop the daemon whoever runs it, and end what its hosts have left; False if none ran."""
        log = self.log()
        was_there = self._stop()
        if was_there and log and (held := log.get("held")) and not self.is_end_recorded(log["rows"]):
            self.say(
                f"What it could not record is LOST: {count_kinds(held)}. The next start knows nothing of it."
            )
        if was_there and log and log["rows"] and not self.is_log_there():
            self.say(
                f"The log was deleted, and could not be saved: its {count(log['rows'], 'row')} {are(log['rows'])} LOST."
            )
        try:
            self.end_hosts()
        except PulseError as error:  # a restart goes on
            self.say(str(error))
        return was_there

    def _stop(self) -> bool:
        # Without a daemon its unit may be about to start it again.
        if self.unit.is_active() or (self.unit.path() and not self.is_held()):
            self.unit.stop()
            self.say("Stopped through systemctl.")
            return True
        pid = self._stop_background()
        if pid is None and (lost := self.lost()):
            raise PulseError(
                f"process {lost} is the daemon of this home, and its lock is out of reach, since its file system was mounted"
                f" anew; stop it with: kill {lost}"
            )
        self.say(f"Stopped, it was process {pid}." if pid else "No daemon runs.")
        return pid is not None

    def install(self, user: bool) -> str:
        """Install the unit and have the service manager run the daemon, whoever ran it before; the unit's path."""
        self._demand_usable_lock()
        path = self.unit.install(user)
        if not user and (words := self.set_up_account()):
            self.say(words)
        if self.unit.is_active():
            self.unit.restart()
            return path
        with self._started_all_the_same():
            if pid := self._stop_background():
                self.say(f"Stopped the daemon in the background, process {pid}.")
            self.unit.start()
        return path

    def _demand_usable_lock(self) -> None:
        """Raise PulseError here, before anything is stopped, where a start would be refused for the lock's file."""
        try:
            self.is_held()
        except PulseError as error:
            raise PulseError(f"{error}\n{UNTOUCHED}") from error

    def _stop_background(self) -> int | None:
        return self.background.stop(self.stop_grace() + STOP_MARGIN)
