"""Starting and stopping the daemon: by systemd where that has its unit, else as a process in the background."""

from pulse_adapters.config.file import load
from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import holder
from pulse_adapters.systemd import Unit, manager
from pulse_core.model.errors import NotAnswering, PulseError, SettingsRefused
from pulse_core.settings import Settings
from upulse_cli import running
from upulse_cli.speech import say

STOP_MARGIN = 5.0
"""Seconds beyond the settings' stop_grace that a stop may take."""


def launch(home: Home, *more: str) -> None:
    """Start the daemon and wait until it is ready."""
    unit = manager.installed(home.path)
    if unit and more:
        raise PulseError(
            f"systemd starts this daemon and can't pass {more[0]}; do it once by hand, then stop that: "
            f"upulse daemon start --foreground {more[0]}"
        )
    if unit:
        manager.start(unit)
        say("Started through systemctl.")
    else:
        say(f"Started, process {running.begin(home, *more)['pid']}.")


def relaunch(home: Home) -> None:
    """Stop the daemon if it runs, and start it."""
    if (unit := manager.installed(home.path)) and manager.is_active(unit):
        manager.restart(unit)
        say("Restarted through systemctl.")
    else:
        halt(home)
        launch(home)


def halt(home: Home) -> bool:
    """Stop the daemon whoever runs it; False if none ran."""
    unit = manager.installed(home.path)
    if unit and (manager.is_active(unit) or holder(home.lock) is None):  # or it may be about to be restarted
        manager.stop(unit)
        say("Stopped through systemctl.")
        return True
    pid = running.end(home, _grace(home) + STOP_MARGIN)
    say(f"Stopped, it was process {pid}." if pid else "No daemon runs.")
    return pid is not None


def hand_over(home: Home, user: bool) -> Unit:
    """Install the unit and have systemd run the daemon, whoever ran it before."""
    unit = manager.install(home.path, user)
    if not user and (home.path / "engine").exists():
        say(_account_set_up(home))
    if manager.is_active(unit):
        manager.restart(unit)
        return unit
    if pid := running.end(home, _grace(home) + STOP_MARGIN):
        say(f"Stopped the daemon in the background, process {pid}.")
    manager.start(unit)
    return unit


def _account_set_up(home: Home) -> str:
    """Give the engine a user of its own if that is possible; how it stands, in a sentence."""
    from pulse_adapters.config.file import load_to_start  # slow to import, and seldom needed
    from pulse_adapters.engine_user.account_setup import set_up_account

    try:
        user = load_to_start(home.config)[0].engine.user
    except PulseError as error:
        return f"Rules of your own have no user of their own: {error}"
    return set_up_account(home.path, user)


def up_now(home: Home) -> list[str]:
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


def _grace(home: Home) -> float:
    """Seconds that a stop waits for running effects, as far as the settings can be read."""
    try:
        settings = load(home.config)
    except SettingsRefused:
        settings = Settings()
    return settings.daemon.stop_grace / 1e6
