"""The command tree: which words there are, and what the exit codes mean."""

import os
from typing import Annotated

import typer

from upulse_cli.capabilities import packages
from upulse_cli.commands import (
    backup,
    completion,
    config,
    control,
    daemon,
    demo,
    dev,
    doctor,
    effect,
    engine,
    events,
    explain,
    gc,
    incidents,
    init,
    instances,
    new,
    plugins,
    process,
    profile,
    promote,
    replay,
    shadow,
    state,
    status,
    verify,
    vitals,
    why,
)
from upulse_cli.instance_option import HELP, completed_by, instance_named
from upulse_cli.options import group

EXIT_CODES = (
    "Exit codes: 0 done; 1 not done, and the words on stderr say why; 2 the command line was not understood;"
    " 3 done, and there is a difference (replay, shadow); 130 interrupted. Data goes to stdout, words to stderr."
)

app = group("The autonomic nervous system of a machine that runs AI agents.", epilog=EXIT_CODES)


@app.callback()
def common(
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance",
            metavar="NAME",
            help=HELP,
            callback=instance_named,
            autocompletion=completed_by("instances"),
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback with every error; or set UPULSE_DEBUG=1.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=lambda asked: tell_version(asked)
        ),
    ] = False,
) -> None:
    """Sense, decide and act on this machine, all the time, and explain every step."""
    if debug:
        os.environ["UPULSE_DEBUG"] = "1"


def tell_version(asked: bool) -> None:
    """Print the version, if asked."""
    if asked:
        from pulse_core import __version__

        print(__version__)
        raise typer.Exit


init.add_to(app)
instances.add_to(app)
app.add_typer(daemon.app, name="daemon")
status.add_to(app)
events.add_to(app)
app.add_typer(effect.app, name="effect")
app.add_typer(process.app, name="process")
for package in packages():
    package.add_to(app)
why.add_to(app)
explain.add_to(app)
incidents.add_to(app)
vitals.add_to(app)
profile.add_to(app)
state.add_to(app)
control.add_to(app)
verify.add_to(app)
backup.add_to(app)
doctor.add_to(app)
gc.add_to(app)
new.add_to(app)
dev.add_to(app)
promote.add_to(app)
replay.add_to(app)
app.add_typer(shadow.app, name="shadow")
app.add_typer(engine.app, name="engine")
plugins.add_to(app)
app.add_typer(config.app, name="config")
demo.add_to(app)
completion.add_to(app)
