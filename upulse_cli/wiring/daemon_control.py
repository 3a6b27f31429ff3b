"""Who starts and stops the daemon of a home on this machine, and where its words are."""

import os
from collections.abc import Iterator

from pulse_adapters.config.file import load, load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.ipc import daemon_process as process
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_adapters.ipc.lock import holder
from pulse_adapters.systemd import manager
from pulse_adapters.systemd.manager import SystemdUnit, installed, journal_lines, uninstall
from pulse_core.app.daemon_control import DaemonControl
from pulse_core.model.errors import NotAnswering, PulseError, SettingsRefused
from pulse_core.settings import Settings
from upulse_cli.output import say
from upulse_cli.views.daemon_log import log_line


def daemon_process(home: Home) -> DaemonProcess:
    """The daemon of this home as a process in the background."""
    return DaemonProcess(home, log_line, say)


def daemon_control(home: Home) -> DaemonControl:
    """Who starts and stops the daemon of this home; what is done is said."""

    def stop_grace() -> float:
        try:
            settings = load(home.config)
        except SettingsRefused:
            settings = Settings()
        return settings.daemon.stop_grace / 1e6

    def set_up_account() -> str:
        if not (home.path / "engine").exists():
            return ""
        from pulse_adapters.engine_user.account_setup import (
            set_up_account,  # slow to import, and seldom needed
        )

        try:
            user = load_to_start(home.config)[0].engine.user
        except PulseError as error:
            return f"Rules of your own have no user of their own: {error}"
        return set_up_account(home.path, user)

    return DaemonControl(
        background=daemon_process(home),
        unit=SystemdUnit(home.path),
        is_held=lambda: holder(home.lock) is not None,
        stop_grace=stop_grace,
        set_up_account=set_up_account,
        say=say,
    )


def demand_free(home: Home) -> None:
    """Raise HomeBusy if somebody holds the home."""
    process.demand_free(home)


def become_daemon(home: Home, *options: str) -> None:
    """Become the daemon of this home, so that nothing of the command line stays in memory."""
    process.replace_process(process.daemon_command(home, *options))


def uninstall_unit(home: Home) -> str:
    """Take the daemon's unit from systemd, and what was laid out for the engine's user, if we may; its path."""
    from pulse_adapters.engine_user.layout import layout_path
    from pulse_adapters.sandbox.copy_tree import remove_tree

    unit = uninstall(home.path)
    if os.geteuid() == 0:
        remove_tree(layout_path(home.path))
    return str(unit.path)


def lingers() -> bool:
    """Whether this user's service manager outlives the login."""
    return manager.lingers()


def daemon_log_lines(home: Home, count: int, follow: bool) -> Iterator[str]:
    """The last lines that the daemon said, and what comes if that is wanted: of the journal, or else of its file."""
    unit = installed(home.path)
    if unit is None and not home.daemon_log.exists():
        raise PulseError(f"nothing was said yet: there is no {home.daemon_log}")
    found = journal_lines(unit, count, follow) if unit else process.log_lines(home.daemon_log, count, follow)
    yield from map(log_line, found)


def processes_up(home: Home) -> list[str]:
    """The guarded processes that are up, in words; none if no daemon can say."""
    try:
        with Client(home.socket, timeout=2.0) as client:
            processes = client.ask("status")["processes"]
    except NotAnswering:
        return []
    return [
        f"{process['name']} (process {process['pid']})" if process["pid"] else process["name"]
        for process in processes
        if process["state"] == "up"
    ]
