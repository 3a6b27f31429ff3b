"""`upulse process`: what is guarded, and what a person wants of it."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, Why, completed_by, group, open_home
from upulse_cli.output import put, put_or_draw, say, say_when

app = group("Show guarded processes, stop, start and restart them.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Its name in the settings.", autocompletion=completed_by("processes")
    ),
]


Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="Their names in the settings.", autocompletion=completed_by("processes")
    ),
]


@app.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List what is guarded, and how it stands."""
    from pulse_core.app.status import home_status, why_last_known
    from upulse_cli.time_args import local

    stands = home_status(open_home(home))
    if words := why_last_known(daemon := stands["daemon"]):
        since = daemon["since"] if daemon["state"] == "stopped" else None
        say(f"{words}, of {local(since, named=True)}" if since else words)
    if damage := stands["log"]["damage"]:
        say(f"DAMAGED LOG {damage}")
    nothing = "No process is guarded; add [[process]] to the settings (upulse config path)."
    if faults := stands.get("settings_faults"):
        nothing = f"What is guarded is not known, since the settings can't be read: {faults[0]}"
    put_or_draw(stands["processes"], as_json, "views.status.process_table", nothing)


@app.command()
def show(name: Name, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show one process: how it stands, and why.

    What its tree takes, its probes, what happened to it last, and the last lines that it printed.
    """
    from upulse_cli.wiring.processes import report_of_process

    found = report_of_process(open_home(home), name)
    if words := found["last_known"]:
        say(words)
    put_or_draw(found, as_json, "views.process.report")


@app.command()
def logs(
    name: Name,
    last: Annotated[int, typer.Option("-n", metavar="COUNT", min=0, help="The last so many lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is printed from now on.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Print what a process that Pulse started has printed.

    Also of one that is not guarded any more, while it is kept.
    """
    from upulse_cli.wiring.processes import is_guarded, process_log_lines

    where = open_home(home)
    lines = process_log_lines(where, name, last, follow)
    for number, line in enumerate(lines):
        if number == 0 and not is_guarded(where, name):
            say(f"{name} is not guarded any more; this is what is kept of what it printed.")
        put(line)


@app.command()
def stop(
    names: Names,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long it stays down; else [intent] expires."),
    ] = None,
    why: Why = "",
    home: HomeDir = None,
) -> None:
    """End processes and keep them down for a while.

    The watchdog doesn't fight it until the time is over, or `upulse process start`.
    """
    from pulse_core.app.restarts import not_started_by_itself, request_holds, request_of_each
    from pulse_core.model.durations import duration_text
    from pulse_core.model.names import STOP_PROCESS
    from upulse_cli.time_args import duration_arg

    expires = duration_arg(lasting, "--for") if lasting is not None else None
    if expires is not None and expires <= 0:
        raise typer.BadParameter("give a duration longer than 0", param_hint="--for")
    data = {"expires_us": expires, "why": why}
    answers = request_of_each(where := open_home(home), "process-stop-requested", names, data)
    held = duration_text(answers[0].event["data"]["expires_us"])
    stopped = [answer.event["subject"] for answer in answers]
    stay, them = ("stays", "it") if len(stopped) == 1 else ("stay", "them")
    again = f"start {them} before with: upulse process start {' '.join(stopped)}"
    say(f"Stop requested: {', '.join(stopped)} {stay} down for {held}; {again}")
    for name in not_started_by_itself(where, stopped):
        say(f"{name} stays down after that, too (autostart = false), until: upulse process start {name}")
    say_when(answers[-1])
    for words in request_holds(where, stopped, STOP_PROCESS):
        say(words)


@app.command()
def start(names: Names, why: Why = "", home: HomeDir = None) -> None:
    """Bring processes up again.

    Ends `upulse process stop`, and gives them a fresh budget of restarts.
    """
    from pulse_core.app.restarts import request_holds, request_of_each
    from pulse_core.app.status import guarded_processes

    before = guarded_processes(where := open_home(home))
    answers = request_of_each(where, "process-start-requested", names, {"why": why})
    up = {name: one["pid"] for name, one in before.items() if one["state"] == "up"}
    asked = [answer.event["subject"] for answer in answers]
    for name in filter(up.__contains__, asked):
        pid = f" (process {up[name]})" if up[name] else ""
        say(f"{name} is up already{pid}; nothing is started. To restart it: upulse process restart {name}")
    if down := [name for name in asked if name not in up]:
        say(f"Start requested: {', '.join(down)}.")
        say_when(answers[-1])
        for words in request_holds(where, down):
            say(words)


@app.command()
def restart(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Their names in the settings.",
            autocompletion=completed_by("processes"),
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All guarded processes.")] = False,
    why: Why = "",
    home: HomeDir = None,
) -> None:
    """End processes and start them again.

    Those first that others depend on. Ends `upulse process stop`, and gives them a fresh budget of restarts.
    """
    from pulse_core.app.restarts import request_holds, request_restarts

    if bool(names) == everything:
        raise typer.BadParameter("name the processes to be restarted, or give --all", param_hint="NAME")
    answers = request_restarts(where := open_home(home), None if everything else names, why)
    asked = [answer.event["subject"] for answer in answers]
    say(f"Restart requested: {', '.join(asked)}.")
    say_when(answers[-1])
    for words in request_holds(where, asked):
        say(words)
