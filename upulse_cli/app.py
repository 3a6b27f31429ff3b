"""The command tree: which words there are, and what the exit codes mean."""

import os
from typing import Annotated

import typer

from pulse_core.capabilities import capability_modules
from upulse_cli.commands import (
    backup,
    completion,
    config,
    daemon,
    demo,
    dev,
    doctor,
    effect,
    engine,
    events,
    explain,
    init,
    notify,
    process,
    promote,
    redact,
    replay,
    status,
    vitals,
)
from upulse_cli.options import INSTANCE_HELP, check_instance, completed_by, group

EXIT_CODES = (
    "Exit codes: 0 done; 1 not done, and the words on stderr say why; 2 the command line was not understood;"
    " 3 done, and there is a difference (replay, shadow), or the port is used (guidance start), or no daemon runs"
    " (status --exit-code); 4 something is wrong (status --exit-code); 70 a bug; 71 memory or threads ran out;"
    " 130 interrupted."
    " Data goes to stdout, words to stderr."
)

app = group("The autonomic nervous system of a machine that runs AI agents.", epilog=EXIT_CODES)


@app.callback()
def common(
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance",
            metavar="NAME",
            help=INSTANCE_HELP,
            callback=check_instance,
            autocompletion=completed_by("instances"),
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback with every error; or set UPULSE_DEBUG=1.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=lambda asked: print_version(asked)
        ),
    ] = False,
) -> None:
    """Sense, decide and act on this machine, all the time, and explain every step."""
    if debug:
        os.environ["UPULSE_DEBUG"] = "1"


def print_version(asked: bool) -> None:
    """Print the version, if asked."""
    if asked:
        from pulse_core import __version__
        from upulse_cli.output import put

        put(__version__)
        raise typer.Exit


app.command()(init.init)
app.command()(init.instances)
app.add_typer(daemon.app, name="daemon")
app.command()(status.status)
app.command()(events.events)
app.add_typer(effect.app, name="effect")
app.add_typer(process.app, name="process")
app.add_typer(notify.app, name="notify")
for package in capability_modules("upulse_cli.capabilities"):
    package.add_to(app)
app.command()(explain.why)
app.command()(explain.explain)
app.command()(events.incidents)
app.command()(vitals.vitals)
app.command()(vitals.profile)
app.command()(events.state)
app.command()(daemon.pause)
app.command()(daemon.resume)
app.command()(backup.verify)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(redact.redact)
app.command()(doctor.doctor)
app.command()(doctor.gc)
app.command()(dev.new)
app.command()(dev.dev)
app.command()(promote.promote)
app.command()(promote.deploy)
app.command()(promote.rollback)
app.command()(replay.replay)
app.add_typer(replay.shadow_app, name="shadow")
app.add_typer(engine.app, name="engine")
app.command()(engine.plugins)
app.add_typer(config.app, name="config")
app.command()(demo.demo)
app.command()(completion.completion)
