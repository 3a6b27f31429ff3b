"""`--instance NAME` beside `--home DIR`, on every command that takes a home and before the commands."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperOption

if TYPE_CHECKING:
    from upulse_cli.wiring.completion import Source

GIVEN = "upulse.instance"
"""Where a context, and those within it, remember the instance that was named."""

HELP = "Instance, whose home is ~/.upulse-NAME; else UPULSE_INSTANCE."


def completed_by(source: "str | Source") -> Callable[[typer.Context, str], list[str]]:
    """What completes a value: a source, or the name of one in `upulse_cli.wiring.completion`, imported when a shell asks."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        from upulse_cli.wiring.completion import completions

        return completions(source, context.params.get("home") or context.meta.get(GIVEN), incomplete)

    return complete


def instance_named(context: typer.Context, name: str | None) -> str | None:
    """Check the name of an instance, and remember it for the home."""
    if name is None:
        return name
    from pulse_core.model.errors import PulseError
    from upulse_cli.wiring.home import instance_home

    try:
        home = instance_home(name)
    except PulseError as error:
        raise typer.BadParameter(str(error)) from error
    if context.meta.get(GIVEN, home) != home:
        raise typer.BadParameter("two instances are named; name one of them")
    context.meta[GIVEN] = home
    return name


def home_meant(context: typer.Context, home: str | None) -> str | None:
    """The home that is meant by `--home` or by `--instance`; None for the usual one."""
    instance: str | None = context.meta.get(GIVEN)
    if home is not None and instance is not None:
        raise typer.BadParameter("--instance says already which home is meant; give one of the two")
    return home if instance is None else instance


class CommandOfHome(TyperCommand):
    """A command that takes an instance wherever it takes a home."""

    def __init__(self, name: str | None, **more: Any) -> None:
        params = list(more.pop("params", None) or ())
        place = next((place for place, param in enumerate(params) if param.name == "home"), None)
        if place is not None:
            params.insert(place + 1, instance_option())
        super().__init__(name, params=params, **more)


def instance_option() -> TyperOption:
    """The option: read before the home, whose callback needs it, and never passed to the command."""
    return TyperOption(
        param_decls=["--instance"],
        metavar="NAME",
        help=HELP,
        callback=lambda context, param, name: instance_named(context, name),
        is_eager=True,
        expose_value=False,
        autocompletion=lambda context, _, begun: completed_by("instances")(context, begun),
    )


class WithInstance(typer.Typer):
    """A group whose commands are of this kind."""

    def command(self, name: str | None = None, **more: Any) -> Callable[..., Any]:
        """A command, as ever."""
        return super().command(name, **{"cls": CommandOfHome, **more})
