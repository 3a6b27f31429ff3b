"""`upulse mcp`: agents ask Pulse what happened, and do their tasks."""

from enum import StrEnum
from typing import Annotated

import typer

from upulse_cli.options import HomeDir, Host, Port, TokenVariable, group, open_home
from upulse_cli.output import put, say

mcp = group(
    """Serve Pulse's own tools, and all guidance, to agents.

    Without a command it serves in the foreground: Pulse's tools at /pulse for those with a token of `mcp install`, and at
    /mcp/PATH the guidance of each project that was added. Ends with code 3 if the port is used."""
)


ClientProgram = StrEnum("ClientProgram", ("claude", "cursor", "codex"))


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    mcp.callback(invoke_without_command=True, no_args_is_help=False)(serve)
    app.add_typer(mcp, name="mcp")


def serve(
    context: typer.Context,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Answer whoever has started this, on its stdin.")
    ] = False,
    host: Host = "127.0.0.1",
    port: Port = 8766,
    token: TokenVariable = None,
    home: HomeDir = None,
) -> None:
    """Serve, if no command is named."""
    from upulse_cli.capabilities.mcp.wiring import serve_http, serve_stdio

    if context.invoked_subcommand is None:
        serve_stdio(open_home(home)) if stdio else serve_http(open_home(home), host, port, token, say)


@mcp.command()
def install(
    client: Annotated[ClientProgram, typer.Argument(help="Which program.")],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Its name in the log; else the program's.")
    ] = "",
    write: Annotated[bool, typer.Option("--write", help="Write it; else it is shown alone.")] = False,
    home: HomeDir = None,
) -> None:
    """Add Pulse to the configuration of an agent's program.

    With --write it makes a token by which its calls are known. Deleting that file in the home's `clients` ends it.
    """
    from upulse_cli.capabilities.mcp.wiring import installation

    config = installation(open_home(home), client, name or client, write)
    if not config.added:
        return say(f"{config.path} has it already.")
    put(config.added.rstrip())
    if not write:
        return say(f"This would be added to {config.path}; --write does so.")
    return say(f"Added to {config.path}; start {client} anew.")
