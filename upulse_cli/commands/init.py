"""`upulse init`: a new home."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import HomeDir
from upulse_cli.speech import say

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


def init(
    demo: Annotated[
        bool, typer.Option("--demo", help="Guard one harmless process, to see Pulse work.")
    ] = False,
    engine: Annotated[
        bool, typer.Option("--engine/--no-engine", help="With a repository for your own rules, or without.")
    ] = True,
    home: HomeDir = None,
) -> None:
    """Make a home for Pulse.

    Its directory, commented settings, an empty log, and a git repository for your own rules; what is there already
    is kept.
    """
    from pulse_adapters.config.home import Home

    made = Home.resolve(home)
    with for_the_owner_alone():
        made.create()
        wrote = write_settings(made, demo)
        make_log(made)
        done = make_engine(made) if engine else ()
    say(f"{made.path} is a Pulse home.")
    if not wrote:
        say(f"{made.config} was there already and is left as it is.")
    for sentence in done:
        say(sentence)
    named = "" if home is None else f" --home {shlex.quote(home)}"
    if not demo:
        say(f"Next: say what to guard in {made.config}, then check it: upulse config check{named}")
    say(f"Start the daemon: upulse daemon start{named}")


@contextmanager
def for_the_owner_alone() -> Iterator[None]:
    """What is made inside is the owner's, whatever the umask; that is put back, since children inherit it."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def write_settings(home: "Home", demo: bool) -> bool:
    """Write the commented settings; False if there are some."""
    if home.config.exists():
        return False
    from pulse_adapters.config.template import template
    from pulse_core.model.errors import PulseError

    try:
        with home.config.open("x") as file:
            file.write(template(demo))
    except FileExistsError:
        return False
    except OSError as error:
        raise PulseError(f"{home.config} can't be written: {error.strerror}") from error
    return True


def make_log(home: "Home") -> None:
    """Open the log once, so that the home has its id; a home in use has one."""
    if home.events.exists():
        return
    import asyncio

    from pulse_adapters.ipc.lock import HomeLock
    from pulse_core import __version__
    from pulse_core.app.offline_append import offline_gate
    from upulse_cli.wiring.home import home_context

    async def opened() -> None:
        with HomeLock(home.lock, __version__, wait=2.0):
            async with offline_gate(home_context(home)):
                pass

    asyncio.run(opened())


def make_engine(home: "Home") -> Sequence[str]:
    """Make the repository for the user's rules, or what is missing of it; what was done, or why not, in sentences."""
    from pulse_adapters.git.author import whoever
    from pulse_adapters.git.errors import NoGit
    from pulse_adapters.git.repository import Repository
    from pulse_adapters.git.template import shipped

    try:
        return Repository.create(home.path, shipped(), whoever())[1]
    except NoGit as error:
        return (f"no engine for your own rules: {error}; the survival rules need none",)
