"""What many commands take, spelled once: the home or its instance, JSON for programs, a reason."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from upulse_cli.output import show_change

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from upulse_cli.wiring.completion import Source

INSTANCE = "upulse.instance"
"""Where a context, and those within it, remember the home of the instance that was named."""

INSTANCE_HELP = "Instance, whose home is ~/.upulse-NAME; else UPULSE_INSTANCE."


def completed_by(source: "str | Source") -> Callable[[typer.Context, str], list[str]]:
    """What completes a value: a source, or the name of one in `upulse_cli.wiring.completion`, imported when a shell asks."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        from upulse_cli.wiring.completion import completions

        return completions(source, context.params.get("home") or context.meta.get(INSTANCE), incomplete)

    return complete


def text_arg(given: str, most: int, option: str) -> str:
    """The text of an option; of `-`, what is on stdin."""
    if given != "-":
        return given
    try:
        text = typer.get_text_stream("stdin", "utf-8", "strict").read(most + 1)
    except UnicodeDecodeError as error:
        words = "what is on stdin is no UTF-8 text; convert it (iconv), or name a file that has it"
        raise typer.BadParameter(words, param_hint=option) from error
    if len(text) > most:
        words = f"what is on stdin has more than {most:,} characters; put the rest in a file, and name that"
        raise typer.BadParameter(words, param_hint=option)
    return text


def use_utc(asked: bool) -> None:
    """Have this process write and read times in UTC, if asked."""
    if asked:
        os.environ["TZ"] = "UTC"
        time.tzset()


def check_instance(context: typer.Context, name: str | None) -> str | None:
    """Check the name of an instance, and remember it for the home."""
    if name is None:
        return name
    from pulse_core.model.errors import PulseError
    from upulse_cli.wiring.home import instance_home

    try:
        home = instance_home(name)
    except PulseError as error:
        raise typer.BadParameter(str(error)) from error
    if context.meta.get(INSTANCE, home) != home:
        raise typer.BadParameter("two instances are named; name one of them")
    context.meta[INSTANCE] = home
    return name


def home_or_instance(context: typer.Context, home: str | None) -> str | None:
    """The home that `--home` or `--instance` names; None for the usual one."""
    instance: str | None = context.meta.get(INSTANCE)
    if home is not None and instance is not None:
        raise typer.BadParameter("--instance says already which home is meant; give one of the two")
    return home if instance is None else instance


HomeDir = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Home directory; else UPULSE_HOME, else ~/.upulse.",
        callback=home_or_instance,
    ),
]
JSON_HELP = "Print JSON, for programs."
AsJson = Annotated[bool, typer.Option("--json", help=JSON_HELP)]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is settled; exits 1 unless acked.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="TIME", help="A moment: 10m, 15:20, yesterday, monday, or in ISO 8601; else now."
    ),
]
Since = Annotated[
    str,
    typer.Option(
        "--since", metavar="TIME", help="From when on: 24h, 15:20, yesterday, monday, or in ISO 8601."
    ),
]
Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port to listen on.")]
TokenVariable = Annotated[
    str | None, typer.Option("--token", metavar="env:NAME", help="Variable with the token for guidance.")
]
Why = Annotated[str, typer.Option("--why", metavar="WORDS", help="A reason, kept in the log.")]


def open_home(home: str | None) -> "HomeContext":
    """The home that a command was given, with nothing opened yet; raises NoHome if there is none."""
    from upulse_cli.wiring.home import found_home, home_context  # 40 ms that no help needs

    return home_context(found_home(home))


class CommandOfHome(TyperCommand):
    """A command that takes `--instance` and `--utc` wherever it takes `--home`."""

    def __init__(self, name: str | None, **more: Any) -> None:
        params = list(more.pop("params", None) or ())
        place = next((place for place, param in enumerate(params) if param.name == "home"), None)
        if place is not None:
            params[place + 1 : place + 1] = [instance_option(), utc_option()]
        super().__init__(name, params=params, **more)


class ChangeCommand(CommandOfHome):
    """A command that returns a `CommandResult`, which is shown as JSON if `--json` is given."""

    def __init__(self, name: str | None, **more: Any) -> None:
        params = list(more.pop("params", None) or ())
        place = next(place for place, param in enumerate(params) if param.name == "home")
        params.insert(place, TyperOption(param_decls=["as_json", "--json"], is_flag=True, help=JSON_HELP))
        super().__init__(name, params=params, **more)

    def invoke(self, context: Any) -> None:
        as_json = context.params.pop("as_json")
        show_change(super().invoke(context), as_json)


def instance_option() -> TyperOption:
    """The option: read before the home, whose callback needs it, and never passed to the command."""
    return TyperOption(
        param_decls=["--instance"],
        metavar="NAME",
        help=INSTANCE_HELP,
        callback=lambda context, param, name: check_instance(context, name),
        is_eager=True,
        expose_value=False,
        autocompletion=lambda context, _, begun: completed_by("instances")(context, begun),
    )


def utc_option() -> TyperOption:
    """The option: read before whatever names a moment."""
    return TyperOption(
        param_decls=["--utc"],
        is_flag=True,
        help="Times in UTC; else local.",
        callback=lambda context, param, asked: use_utc(asked),
        is_eager=True,
        expose_value=False,
    )


class CommandGroup(typer.Typer):
    """A group whose commands take an instance where they take a home."""

    def command(self, name: str | None = None, **more: Any) -> Callable[..., Any]:
        """A command, as ever."""
        return super().command(name, **{"cls": CommandOfHome, **more})

    def change(self, name: str | None = None) -> Callable[..., Any]:
        """A command that changes something."""
        return self.command(name, cls=ChangeCommand)


def group(about: str, epilog: str = "") -> CommandGroup:
    """A group of commands with plain help, which is quick, and plain errors; what takes a home takes an instance."""
    return CommandGroup(
        help=about,
        epilog=epilog or None,
        callback=lambda: None,  # else a group of one command would be that command
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
