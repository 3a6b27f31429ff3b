"""What many commands take, spelled once: the home, JSON for programs, a reason."""

from typing import Annotated

import typer

from upulse_cli.instance_option import WithInstance, home_meant

HomeDir = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Home directory; else UPULSE_HOME, else ~/.upulse.",
        callback=home_meant,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Why = Annotated[str, typer.Option("--why", metavar="WORDS", help="A reason, kept in the log.")]


def group(about: str, epilog: str = "") -> typer.Typer:
    """A group of commands with plain help, which is quick, and plain errors; what takes a home takes an instance."""
    return WithInstance(
        help=about,
        epilog=epilog or None,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
