"""Who starts and stops the daemon of a home on this machine, where its words are, and which homes there are."""

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import BASE, Home, instance_at
from pulse_adapters.ipc import daemon_process as process
from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_adapters.ipc.daemon_process import demand_free as demand_free
from pulse_adapters.systemd.manager import SystemdUnit, Unit, installed, journal_lines, uninstall, units
from pulse_adapters.systemd.manager import lingers as lingers
from pulse_adapters.workers.host_groups import end_hosts_left_over
from pulse_adapters.workers.users import expand_home
from pulse_core.app.context import HomeContext
from pulse_core.app.daemon_control import DaemonControl
from pulse_core.app.status import daemon_status
from pulse_core.home import HomeLayout
from pulse_core.model.errors import NotAnswering, PulseError
from pulse_core.model.home_status import LogStatus
from pulse_core.ports.readers import EventQuery
from upulse_cli.output import say
from upulse_cli.views.narrator import log_line
from upulse_cli.wiring.home import home_context

NOBODY = {"pid": None, "since": None, "version": None}


def known(option: str | None) -> list[Mapping[str, Any]]:
    """Every home: the usual one, those of instances beside it, those of units, the one that is named.

    Each with name (null for one that is no instance's), home, state, pid, since, version and unit.
    """
    served = {unit.home: unit for unit in reversed(list(units()))}
    found = {Path(os.path.realpath(path)): path for path in (*_beside(), *served, *_named(option))}
    told = (_told(Home(path), served.get(real)) for real, path in found.items())
    return sorted((one for one in told if one), key=lambda one: (one["name"] or "", one["home"]))


def _beside() -> Iterator[Path]:
    base = expand_home(BASE)
    yield Path(base)
    for path in glob.glob(f"{glob.escape(base)}-*"):
        if instance_at(Path(path)):
            yield Path(path)


def _named(option: str | None) -> Iterator[Path]:
    if option or os.environ.get("UPULSE_HOME"):
        yield Home.resolve(option).path


def _told(home: Home, unit: Unit | None) -> Mapping[str, Any] | None:
    """One home; None if there is none and no unit serves it."""
    about = {"name": instance_at(home.path), "home": str(home.path), "unit": str(unit.path) if unit else None}
    try:
        if not home.exists():
            return {**about, **NOBODY, "state": "missing"} if unit else None
        return {**about, **daemon_status(home_context(home))}
    except (PulseError, OSError):  # one of many
        return {**about, **NOBODY, "state": "not-readable"}


def daemon_process(home: HomeLayout) -> DaemonProcess:
    """The daemon of this home as a process in the background."""
    return DaemonProcess(home, log_line, say)


def daemon_control(home: HomeContext) -> DaemonControl:
    """Who starts and stops the daemon of this home; what is done is said."""
    path = home.layout.path

    def set_up_account() -> str:
        if not (path / "engine").exists():
            return ""
        from pulse_adapters.engine_user.account_setup import set_up_account  # slow, and seldom needed

        try:
            user = home.settings().settings.engine.user
        except PulseError as error:
            return f"Rules of your own have no user of their own: {error}"
        return set_up_account(path, user)

    def stop_grace() -> float:
        from pulse_core.app.state import usable_settings  # takes long, and is asked at a stop alone

        return usable_settings(home).daemon.stop_grace / 1e6

    def log_status() -> LogStatus | None:
        try:
            return home.daemon.status()["log"]
        except NotAnswering:
            return None

    def is_end_recorded(rows: int) -> bool:
        try:
            with home.events() as log:
                query = EventQuery(since_seq=rows, kinds=("daemon-stopped",))
                return any(log.events(query, limit=1))
        except (PulseError, OSError):
            return os.path.exists(home.layout.saved_log)  # where it was left

    def lost() -> int | None:
        from pulse_core.app.status import lost_holder  # seldom needed

        with suppress(PulseError, OSError):
            return found.pid if (found := lost_holder(home)) else None
        return None

    def is_log_there() -> bool:
        there = home.layout
        return there.events.exists() or there.saved_log.exists() or not there.path.exists()

    return DaemonControl(
        background=daemon_process(home.layout),
        unit=SystemdUnit(path),
        is_held=lambda: home.daemon.lock_holder() is not None,
        lost=lost,
        stop_grace=stop_grace,
        set_up_account=set_up_account,
        end_hosts=partial(end_hosts_left_over, path),
        successor=partial(process.successor, home.layout.lock),
        log=log_status,
        is_end_recorded=is_end_recorded,
        is_log_there=is_log_there,
        say=say,
    )


def become_daemon(home: HomeLayout, *options: str) -> None:
    """Become the daemon of this home, so that nothing of the command line stays in memory."""
    process.replace_process(process.daemon_command(home, *options))


def uninstall_daemon(home: HomeLayout) -> Iterator[str]:
    """Take the daemon's unit from systemd, and what root made for the engine from the machine; what was done."""
    from pulse_adapters.engine_user.account_removal import has_leftovers, remove_account

    is_root = os.geteuid() == 0
    is_more = is_root and has_leftovers(home.path)  # also of an uninstall that was broken off
    if installed(home.path) or not is_more:
        yield f"Removed {uninstall(home.path).path}."
    if is_more:
        demand_free(home)  # a daemon in the background would miss its engine's user
    end_hosts_left_over(home.path)
    if is_root:
        yield from remove_account(home.path)


def daemon_log_lines(home: HomeLayout, count: int, follow: bool) -> Iterator[str]:
    """The last lines that the daemon said, and what comes if that is wanted: of the journal, or else of its file."""
    unit = installed(home.path)
    if unit is None and not home.daemon_log.exists():
        raise PulseError(f"nothing was said yet: there is no {home.daemon_log}")
    found = journal_lines(unit, count, follow) if unit else process.log_lines(home.daemon_log, count, follow)
    yield from map(log_line, found)
