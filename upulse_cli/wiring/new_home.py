"""What a new home gets: settings, a log, and a repository for the user's rules. What is there already is kept."""

import asyncio
from collections.abc import Sequence

from pulse_adapters.config.home import Home
from pulse_adapters.config.template import template
from pulse_adapters.ipc.lock import HomeLock
from pulse_core import __version__
from pulse_core.model.errors import PulseError
from upulse_cli.wiring.home import home_context
from upulse_cli.wiring.offline_append import offline_gate


def write_settings(home: Home, demo: bool) -> bool:
    """Write the commented settings; False if there are some."""
    if home.config.exists():
        return False
    try:
        with home.config.open("x") as file:
            file.write(template(demo))
    except FileExistsError:
        return False
    except OSError as error:
        raise PulseError(f"{home.config} can't be written: {error.strerror}") from error
    return True


def make_log(home: Home) -> None:
    """Open the log once, so that the home has its id; a home in use has one."""
    if home.events.exists():
        return

    async def opened() -> None:
        with HomeLock(home.lock, __version__, wait=2.0):
            async with offline_gate(home_context(home)):
                pass

    asyncio.run(opened())


def make_engine(home: Home) -> Sequence[str]:
    """Make the repository for the user's rules, or what is missing of it; what was done, or why not, in sentences."""
    from pulse_adapters.git.create_repository import template_folder
    from pulse_adapters.git.errors import NoGit
    from pulse_adapters.git.git_command import (
        login_author,  # git is slow to import, and a home may be without an engine
    )
    from pulse_adapters.git.repository import Repository

    try:
        return Repository.create(home.path, template_folder(), login_author())[1]
    except NoGit as error:
        return (f"no engine for your own rules: {error}; the survival rules need none",)
