"""`upulse completion`: what a shell needs to complete command lines."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from pulse_core.model.text import one_line
from upulse_cli.speech import put

if TYPE_CHECKING:
    from upulse_cli.completing import Candidate


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(completion)


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    line: Annotated[
        str | None,
        typer.Argument(
            metavar="LINE",
            help="A command line up to the cursor: prints what may come next, as the script asks.",
        ),
    ] = None,
) -> None:
    """Print a script that completes command lines.

    Commands, options, and the names of processes, effects and what else is known in the home. For bash:

    eval "$(upulse completion bash)"
    """
    from pulse_core.model.errors import UnknownName

    if shell not in SHELLS:
        raise UnknownName("script for the shell", shell, SHELLS)
    if line is None:
        from importlib.resources import files

        return put((files("upulse_cli") / "shells" / f"upulse.{shell}").read_text().rstrip("\n"))
    from typer.main import get_command

    from upulse_cli.app import app
    from upulse_cli.candidates import SOURCES
    from upulse_cli.completing import candidates

    for one in candidates(get_command(app), line, SOURCES):
        put(SHELLS[shell](one, line))
    return None


def for_bash(one: "Candidate", line: str) -> str:
    """The word as it is to stand on the line: escaped, unless a quote is open."""
    import shlex

    try:
        shlex.split(line)
    except ValueError:
        return one_line(one.word)
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", one_line(one.word))


def for_zsh(one: "Candidate", _line: str) -> str:
    """Word and description for `_describe`."""
    word = one_line(one.word).replace("\\", "\\\\").replace(":", "\\:")
    return f"{word}:{one_line(one.about)}" if one.about else word


def for_fish(one: "Candidate", _line: str) -> str:
    """Word and description."""
    return f"{one_line(one.word)}\t{one_line(one.about)}" if one.about else one_line(one.word)


SHELLS: Mapping[str, Callable[["Candidate", str], str]] = {"bash": for_bash, "zsh": for_zsh, "fish": for_fish}
