"""`upulse daemon`: start it, stop it, hand it to systemd, hear what it says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir, group
from upulse_cli.speech import put, put_json, say

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home

app = group("Start and stop the daemon, or hand it to systemd.")

STOP_MARGIN = 5.0
"""Seconds beyond the settings' stop_grace that a stop may take."""


@app.command()
def start(
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay here and log to stderr, until Ctrl-C.")
    ] = False,
    accept_damage: Annotated[
        bool, typer.Option("--accept-damage", help="Set damaged stores aside, and go on without lost rows.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Start the daemon and return when it is ready; through systemctl where its unit is installed."""
    from pulse_adapters.config.file import load
    from upulse_cli import running
    from upulse_cli.access import found_home

    where = found_home(home)
    load(where.config)  # so that faults appear here, and nothing is started
    running.demand_free(where)
    more = ("--accept-damage",) if accept_damage else ()
    if foreground:
        running.replace_by(running.serving(where, *more))
    launch(where, *more)


@app.command()
def stop(home: HomeDir = None) -> None:
    """Stop the daemon; the processes it guards go on running."""
    from upulse_cli.access import found_home

    where = found_home(home)
    guarded = up_now(where)
    if halt(where):
        say(left_running(guarded))


@app.command()
def restart(home: HomeDir = None) -> None:
    """Stop the daemon if it runs, and start it."""
    from pulse_adapters.config.file import load
    from pulse_adapters.systemd import manager
    from upulse_cli.access import found_home

    where = found_home(home)
    load(where.config)
    if unit := manager.installed(where.path):
        manager.restart(unit)
        say("Restarted through systemctl.")
    else:
        halt(where)
        launch(where)


@app.command()
def reload(home: HomeDir = None) -> None:
    """Have the daemon read its settings again; ones with faults are refused whole, and the old ones stay."""
    from pulse_adapters.config.file import load
    from pulse_core.model.errors import PulseError
    from upulse_cli.access import Wish, append, found_home
    from upulse_cli.standing import is_running

    where = found_home(home)
    if not is_running(where):
        load(where.config)
        raise PulseError("no daemon runs; it reads the settings when it starts: upulse daemon start")
    answered(where, append(where, Wish("reload-requested")).event)


@app.command()
def status(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show whether the daemon runs, and since when."""
    from pulse_adapters.systemd import manager
    from upulse_cli.access import found_home
    from upulse_cli.standing import standing_of_daemon

    where = found_home(home)
    unit = manager.installed(where.path)
    daemon = {**standing_of_daemon(where), "unit": str(unit.path) if unit else None}
    if as_json:
        return put_json(daemon)
    from upulse_cli.speech import console
    from upulse_cli.views.status import daemon_line

    console().print(daemon_line(daemon))
    return put(f"unit      {daemon['unit'] or 'not installed'}")


@app.command()
def install(
    user: Annotated[bool, typer.Option("--user", help="In this user's systemd, not the machine's.")] = False,
    home: HomeDir = None,
) -> None:
    """Have systemd run the daemon from now on, and from each boot on."""
    from pulse_adapters.config.file import load
    from pulse_adapters.systemd import manager
    from upulse_cli.access import found_home

    where = found_home(home)
    load(where.config)
    unit = manager.install(where.path, user)
    if manager.is_active(unit):
        manager.restart(unit)
    else:
        halt_background(where)
        manager.start(unit)
    say(f"Installed and started: {unit.path}")
    if user and not manager.lingers():
        say("It ends with your last login; to keep it running and start it at boot: loginctl enable-linger")


@app.command()
def uninstall(home: HomeDir = None) -> None:
    """Stop the daemon and take its unit from systemd; the home and the guarded processes stay."""
    from pulse_adapters.systemd import manager
    from upulse_cli.access import found_home

    where = found_home(home)
    guarded = up_now(where)
    unit = manager.uninstall(where.path)
    say(f"Removed {unit.path}.")
    say(left_running(guarded))


@app.command()
def logs(
    last: Annotated[int, typer.Option("-n", metavar="COUNT", min=0, help="The last so many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is said from now on.")] = False,
    home: HomeDir = None,
) -> None:
    """Print what the daemon says: from the journal where its unit is installed, else from its file."""
    from pulse_adapters.systemd import manager
    from pulse_core.model.errors import PulseError
    from upulse_cli import tail
    from upulse_cli.access import found_home

    where = found_home(home)
    if unit := manager.installed(where.path):
        return journal(unit.user, last, follow)
    if not where.daemon_log.exists():
        raise PulseError(f"nothing was said yet: there is no {where.daemon_log}")
    for line in tail.last_lines(where.daemon_log, last):
        put(line)
    for line in tail.coming_lines(where.daemon_log) if follow else ():
        put(line)
    return None


def launch(home: "Home", *more: str) -> None:
    """Start the daemon, by systemd if it has the unit."""
    from pulse_adapters.systemd import manager
    from pulse_core.model.errors import PulseError
    from upulse_cli import running

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
        daemon = running.begin(home, *more)
        say(f"Started, process {daemon['pid']}.")


def halt(home: "Home") -> bool:
    """Stop the daemon, by systemd if that runs it; False if none ran."""
    from pulse_adapters.systemd import manager

    unit = manager.installed(home.path)
    if unit and manager.is_active(unit):
        manager.stop(unit)
        say("Stopped through systemctl.")
        return True
    return halt_background(home)


def halt_background(home: "Home") -> bool:
    """Stop a daemon that nobody else manages; False if none ran."""
    from upulse_cli import running

    pid = running.end(home, grace(home) + STOP_MARGIN)
    say(f"Stopped, it was process {pid}." if pid else "No daemon runs.")
    return pid is not None


def grace(home: "Home") -> float:
    """Seconds that a stop waits for running effects, as far as the settings can be read."""
    from pulse_adapters.config.file import load
    from pulse_core.model.errors import SettingsRefused
    from pulse_core.settings import Settings

    try:
        return load(home.config).daemon.stop_grace / 1e6
    except SettingsRefused:
        return Settings().daemon.stop_grace / 1e6


def up_now(home: "Home") -> list[str]:
    """The guarded processes that are up, in words; none if no daemon can say."""
    from pulse_adapters.ipc.client import Client
    from pulse_adapters.ipc.protocol import NotAnswering

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


def left_running(guarded: list[str]) -> str:
    """What a stop does not stop."""
    return f"Left running, unguarded: {', '.join(guarded)}." if guarded else "It left no process running."


def answered(home: "Home", request: Mapping[str, Any]) -> None:
    """Wait for the daemon's answer to a reload and say it; raises SettingsRefused with every fault."""
    from pulse_core.model.errors import SettingsRefused
    from upulse_cli.following import first, follow

    coming = follow(home, request["seq"], ("settings-loaded", "settings-refused"))
    answer = first(coming, lambda event: event["cause"] == request["id"])
    if answer["kind"] == "settings-refused":
        raise SettingsRefused([*answer["data"]["faults"], "The old settings stay in force."])
    say(f"The new settings are in force; they guard {len(answer['data'].get('processes', ()))} processes.")


def journal(user: bool, last: int, follow: bool) -> None:
    """Print what the unit wrote to the journal."""
    import subprocess

    from pulse_adapters.systemd import UNIT_NAME
    from pulse_core.model.errors import PulseError
    from upulse_cli.tail import spoken

    command = ["journalctl", "--user-unit" if user else "-u", UNIT_NAME, "-o", "cat", "--no-pager"]
    command += ["-n", str(last), *(["--follow"] if follow else [])]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as reader:
            for line in reader.stdout or ():
                put(spoken(line.rstrip("\n")))
    except FileNotFoundError as error:
        raise PulseError("there is no journalctl on this machine") from error
    if reader.returncode:
        raise PulseError(f"journalctl ended with exit {reader.returncode}")
