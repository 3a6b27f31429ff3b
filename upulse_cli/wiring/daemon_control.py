"""Who starts and stops the daemon of a home on this machine, and where its words are."""

import os
from collections.abc import Iterator

from pulse_adapters.ipc import daemon_process as process
from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_adapters.systemd import manager
from pulse_adapters.systemd.manager import SystemdUnit, installed, journal_lines, uninstall
from pulse_core.app.context import HomeContext
from pulse_core.app.daemon_control import DaemonControl
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from upulse_cli.output import say
from upulse_cli.views.narrator import log_line


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

    return DaemonControl(
        background=daemon_process(home.layout),
        unit=SystemdUnit(path),
        is_held=lambda: home.daemon.lock_holder() is not None,
        stop_grace=stop_grace,
        set_up_account=set_up_account,
        say=say,
    )


def demand_free(home: HomeLayout) -> None:
    """Raise HomeBusy if somebody holds the home."""
    process.demand_free(home)


def become_daemon(home: HomeLayout, *options: str) -> None:
    """Become the daemon of this home, so that nothing of the command line stays in memory."""
    process.replace_process(process.daemon_command(home, *options))


def uninstall_unit(home: HomeLayout) -> str:
    """Take the daemon's unit from systemd, and what was laid out for the engine's user, if we may; its path."""
    import shutil

    from pulse_adapters.engine_user.layout import layout_path

    unit = uninstall(home.path)
    if os.geteuid() == 0:
        shutil.rmtree(layout_path(home.path), ignore_errors=True)
    return str(unit.path)


def lingers() -> bool:
    """Whether this user's service manager outlives the login."""
    return manager.lingers()


def daemon_log_lines(home: HomeLayout, count: int, follow: bool) -> Iterator[str]:
    """The last lines that the daemon said, and what comes if that is wanted: of the journal, or else of its file."""
    unit = installed(home.path)
    if unit is None and not home.daemon_log.exists():
        raise PulseError(f"nothing was said yet: there is no {home.daemon_log}")
    found = journal_lines(unit, count, follow) if unit else process.log_lines(home.daemon_log, count, follow)
    yield from map(log_line, found)
