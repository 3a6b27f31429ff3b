"""`upulse completion`: what a shell needs to complete command lines."""

from typing import Annotated

import typer

from upulse_cli.output import put

SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[
        str,
        typer.Argument(metavar="SHELL", help="bash, zsh or fish.", autocompletion=lambda: list(SHELLS)),
    ],
) -> None:
    """Print a script that completes command lines.

    Commands, options, and the names of processes, effects and what else is known in the home. For bash:

    eval "$(upulse completion bash)"
    """
    from importlib.resources import files

    from pulse_core.model.errors import UnknownName

    if shell not in SHELLS:
        raise UnknownName("script for the shell", shell, SHELLS)
    put((files("upulse_cli") / "shells" / f"upulse.{shell}").read_text().rstrip("\n"))
