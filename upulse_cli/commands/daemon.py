"""`upulse daemon`: start it, stop it, hand it to systemd, hear what it says."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pulse_core.model.text import count
from upulse_cli.options import AsJson, HomeDir, group
from upulse_cli.output import put, put_json, say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.home import HomeLayout

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
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
    demand_settings(where)
    demand_free(where)
    more = ("--accept-damage",) if accept_damage else ()
    if foreground:
        become_daemon(where, *more)
    daemon_control(where).start(*more)


@app.command()
def stop(home: HomeDir = None) -> None:
    """Stop the daemon, not what it guards."""
    from upulse_cli.wiring.daemon_control import daemon_control, processes_up
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
    guarded = processes_up(where)
    if daemon_control(where).stop():
        say(left_running(guarded))
        if waiting := shadow_left(where):
            say(waiting)


@app.command()
def restart(home: HomeDir = None) -> None:
    """Stop the daemon if it runs, and start it."""
    from upulse_cli.wiring.daemon_control import daemon_control
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
    demand_settings(where)
    daemon_control(where).restart()


@app.command()
def reload(home: HomeDir = None) -> None:
    """Take changed settings into force.

    The daemon reads them again without missing a tick; with a fault they are refused and the old ones stay.
    """
    from pulse_core.app.append import AppendRequest, append
    from pulse_core.app.status import why_unheard
    from pulse_core.model.errors import PulseError
    from upulse_cli.wiring.home import found_home, home_context
    from upulse_cli.wiring.settings import settings_in

    where = found_home(home)
    context = home_context(where)
    if why := why_unheard(context):
        settings_in(where.config)
        raise PulseError(why)
    answered(context, append(context, AppendRequest("reload-requested")).event)


@app.command()
def status(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show whether it runs, and since when."""
    from pulse_core.app.status import daemon_status
    from upulse_cli.wiring.daemon_control import daemon_control
    from upulse_cli.wiring.home import found_home, home_context

    where = found_home(home)
    daemon = {**daemon_status(home_context(where)), "unit": daemon_control(where).unit.path()}
    if as_json:
        return put_json(daemon)
    from upulse_cli.output import console
    from upulse_cli.views.status import daemon_line

    console().print(daemon_line(daemon))
    return put(f"unit      {daemon['unit'] or 'not installed'}")


@app.command()
def install(
    user: Annotated[bool, typer.Option("--user", help="In this user's systemd, not the machine's.")] = False,
    home: HomeDir = None,
) -> None:
    """Have systemd run it, now and at each boot.

    Where the home is root's, rules of your own get a user of their own, pulse-engine, which is made if it is missing.
    """
    from upulse_cli.wiring.daemon_control import daemon_control, lingers
    from upulse_cli.wiring.home import found_home
    from upulse_cli.wiring.settings import settings_in

    where = found_home(home)
    settings_in(where.config)
    say(f"Installed and started: {daemon_control(where).install(user)}")
    if user and not lingers():
        say("It ends with your last login; to keep it running and start it at boot: loginctl enable-linger")


@app.command()
def uninstall(home: HomeDir = None) -> None:
    """Stop it, and take its unit from systemd.

    The home stays as it is, and the guarded processes go on running. The user pulse-engine stays, too: files may be its
    own, and other homes may need it.
    """
    from upulse_cli.wiring.daemon_control import processes_up, uninstall_unit
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
    guarded = processes_up(where)
    say(f"Removed {uninstall_unit(where)}.")
    say(left_running(guarded))


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
    from upulse_cli.wiring.daemon_control import daemon_log_lines
    from upulse_cli.wiring.home import found_home

    for line in daemon_log_lines(found_home(home), last, follow):
        put(line)


def demand_settings(home: "HomeLayout") -> None:
    """Raise SettingsRefused here, before anything is stopped or started; say what a start only complains of."""
    from upulse_cli.wiring.home import home_context

    for fault in home_context(home).settings().faults:
        say(fault)


def left_running(guarded: list[str]) -> str:
    """What a stop does not stop."""
    return f"Left running, unguarded: {', '.join(guarded)}." if guarded else "It left no process running."


def shadow_left(home: "HomeLayout") -> str:
    """That a shadow goes on, if one does."""
    from upulse_cli.wiring.backup import running_shadow

    if (found := running_shadow(home)) is None:
        return ""
    return f"A shadow (process {found.pid}) waits for the next daemon, and goes on with it; to end it: upulse shadow stop"


def answered(home: "HomeContext", request: Mapping[str, Any]) -> None:
    """Wait for the daemon's answer to a reload and say it; raises SettingsRefused with every fault."""
    from pulse_core.model.errors import SettingsRefused

    kinds = ("settings-loaded", "settings-refused")
    coming = home.daemon.follow(request["seq"], kinds, brief=True)
    answer = next(event for event in coming if event["cause"] == request["id"])
    if answer["kind"] == "settings-refused":
        raise SettingsRefused([*answer["data"]["faults"], "The old settings stay in force."])
    say(
        f"The new settings are in force; they guard {count(len(answer['data'].get('processes', ())), 'process')}."
    )
