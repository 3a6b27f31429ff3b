"""`upulse daemon`, `pause` and `resume`: start it, stop it, hand it to systemd, hear what it says, have it only watch."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pulse_core.model.errors import PulseError
from pulse_core.model.text import count
from upulse_cli.options import AsJson, HomeDir, Why, group, open_home
from upulse_cli.output import put, put_json, put_or_draw, say, say_when

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.model.home_status import HomeStatus


def pause(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Only watch, don't act, until `upulse resume`."""
    record(home, "paused", why, as_json, "Paused: Pulse only watches. Go on with: upulse resume")


def resume(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Act again after `upulse pause`."""
    from pulse_core.app.state import current_state

    words = "Resumed: Pulse acts."
    with suppress(PulseError):  # of a log that only the daemon can read
        if current_state(open_home(home)).control.paused is None:
            words = "Pulse was not paused: it acts."
    record(home, "resumed", why, as_json, words)


def record(option: str | None, kind: str, why: str, as_json: bool, words: str) -> None:
    """Record it and say so."""
    from pulse_core.app.append import append

    answer = append(open_home(option), kind, data={"why": why})
    if as_json:
        put_json(answer.event)
    else:
        say(words)
    say_when(answer)


app = group("Start and stop the daemon, or hand it to systemd.")


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
    """Start the daemon.

    Returns when it is ready. Where its unit is installed, this goes through systemctl, as stop and restart do.
    """
    from upulse_cli.wiring.daemon_control import become_daemon, daemon_control, demand_free

    where = open_home(home)
    say_setting_faults(where, "No daemon was started.")
    demand_free(where.layout)
    more = ("--accept-damage",) if accept_damage else ()
    if foreground:
        become_daemon(where.layout, *more)
    daemon_control(where).start(*more)
    say_gone(where)


@app.command()
def stop(home: HomeDir = None) -> None:
    """Stop the daemon, not what it guards."""
    from upulse_cli.wiring.daemon_control import daemon_control
    from upulse_cli.wiring.shadow import running

    where = open_home(home)
    before = answered_status(where)
    if daemon_control(where).stop():
        say_left_running(where, before)
        if shadow := running(where.layout):
            say(
                f"A shadow (process {shadow.pid}) waits for the next daemon, and goes on with it; "
                "to end it: upulse shadow stop"
            )


@app.command()
def restart(
    normal: Annotated[
        bool, typer.Option("--normal", help="Leave safe mode: run what it leaves out, too.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Stop the daemon if it runs, and start it."""
    from pulse_core.app.append import append
    from pulse_core.app.daemon_control import UNTOUCHED
    from upulse_cli.wiring.daemon_control import daemon_control

    where = open_home(home)
    say_setting_faults(where, UNTOUCHED)
    data = {"why": "upulse daemon restart --normal"}
    daemon_control(where).restart((lambda: append(where, "safe-mode-left", data=data)) if normal else None)
    say_gone(where)


@app.command()
def reload(
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Restart those whose `start`, or what it is given, changed, and those that wait for their next try.",
        ),
    ] = False,
    home: HomeDir = None,
) -> None:
    """Take changed settings into force.

    The daemon reads them again without missing a tick; with a fault they are refused and the old ones stay. A changed
    `start`, `cwd`, `env`, `user` and the like are what a process has from its next start on: those are named, and so are
    those that are down and tried again only later.
    """
    from pulse_core.app.append import append
    from pulse_core.app.restarts import down_for_now, request_restarts
    from pulse_core.app.status import why_unheard
    from pulse_core.model.errors import PulseError
    from upulse_cli.wiring.home import changed_now, settings_in

    where = open_home(home)
    if why := why_unheard(where):
        settings_in(where.layout.config)
        raise PulseError(why)
    wait_for_settings(where, append(where, "reload-requested").event)
    say_gone(where)
    settings = where.settings().settings
    changed = {**changed_now(where, settings), **down_for_now(where)}
    if changed and restart:
        request_restarts(where, list(changed), "the settings were reloaded")
        say(f"Restart requested: {', '.join(changed)}.")
    elif changed:
        for name, words in changed.items():
            say(f"{name}: {words}")
        say(f"To restart {', '.join(changed)} now: upulse daemon reload --restart")


@app.command()
def status(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show whether it runs, and since when."""
    from pulse_core.app.status import daemon_status
    from upulse_cli.wiring.daemon_control import daemon_control

    where = open_home(home)
    daemon = {**daemon_status(where), "unit": daemon_control(where).unit.path()}
    put_or_draw(daemon, as_json, "views.status.daemon_line")
    if not as_json:
        put(f"unit      {daemon['unit'] or 'not installed'}")


@app.command()
def install(
    user: Annotated[bool, typer.Option("--user", help="In this user's systemd, not the machine's.")] = False,
    home: HomeDir = None,
) -> None:
    """Have systemd run it, now and at each boot.

    Where the home is root's, its rules of your own get a user of their own, pulse-engine-ID, which is made if it is missing.
    """
    from upulse_cli.wiring.daemon_control import daemon_control, lingers
    from upulse_cli.wiring.home import settings_in

    where = open_home(home)
    settings_in(where.layout.config)
    say(f"Installed and started: {daemon_control(where).install(user)}")
    if user and not lingers():
        say("It ends with your last login; to keep it running and start it at boot: loginctl enable-linger")


@app.command()
def uninstall(home: HomeDir = None) -> None:
    """Stop it, and take its unit from systemd.

    The home stays as it is, and the guarded processes go on running. The user that the install made for rules of your
    own goes with all that it runs and what it left in /tmp; one that the settings name stays.
    """
    from upulse_cli.wiring.daemon_control import uninstall_daemon

    where = open_home(home)
    before = answered_status(where)
    for sentence in uninstall_daemon(where.layout):
        say(sentence)
    say_left_running(where, before)


@app.command()
def logs(
    last: Annotated[int, typer.Option("-n", metavar="COUNT", min=0, help="The last so many lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is said from now on.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Print what the daemon says.

    From the journal where its unit is installed, else from its file.
    """
    from upulse_cli.time_args import zone
    from upulse_cli.wiring.daemon_control import daemon_log_lines

    say(f"times in {zone()}")
    for line in daemon_log_lines(open_home(home).layout, last, follow):
        put(line)


def say_setting_faults(home: "HomeContext", refused: str) -> None:
    """Raise SettingsRefused here, before anything is stopped or started; say what a start only complains of.

    refused: what did not happen then, in a sentence.
    """
    from pulse_core.model.errors import SettingsRefused

    try:
        faults = home.settings().faults
    except SettingsRefused as error:
        raise SettingsRefused([*error.faults, refused]) from error
    for fault in faults:
        say(fault)


def answered_status(home: "HomeContext") -> "HomeStatus | None":
    """What the daemon says of itself and what it guards; None if none answers."""
    from pulse_core.model.errors import NotAnswering

    try:
        return home.daemon.status()
    except NotAnswering:
        return None


def say_left_running(home: "HomeContext", before: "HomeStatus | None") -> None:
    """Say which guarded processes live after a stop. before: what a daemon had said until then."""
    from pulse_core.model.home_status import left_running
    from upulse_cli.wiring.home import stopped_status

    if before is None:
        say("No daemon answered: which processes are left running is not known.")
    else:
        say(left_running(stopped_status(home, before)))


def say_gone(home: "HomeContext") -> None:
    """Say which processes the settings that were just loaded name no more, and which of those go on."""
    from pulse_core.ports.readers import EventQuery
    from upulse_cli.wiring.home import unguarded_now

    with home.events() as log:
        rows = log.events(EventQuery(kinds=("settings-loaded",)), limit=1, newest_first=True)
        data = next((row.spelled()["data"] for row in rows), None) or {}
    if gone := data.get("gone"):
        say(f"Not in the settings any more: {', '.join(gone)}.")
    for line in unguarded_now(home, home.settings().settings):
        say(line)


def wait_for_settings(home: "HomeContext", request: Mapping[str, Any]) -> None:
    """Wait for the daemon's answer to a reload and say it; raises SettingsRefused with every fault."""
    from pulse_core.model.errors import SettingsRefused

    kinds = ("settings-loaded", "settings-refused")
    coming = home.daemon.follow(request["seq"], kinds, brief=True)
    answer = next(event for event in coming if event["cause"] == request["id"])
    if answer["kind"] == "settings-refused":
        raise SettingsRefused([*answer["data"]["faults"], "The old settings stay in force."])
    say(f"Settings reloaded: {count(len(answer['data'].get('processes', ())), 'process')} guarded.")
