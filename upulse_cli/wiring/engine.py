"""The user's rules: where they lie, and the hosts that run them, in the daemon and from the command line."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pulse_adapters.config.file import load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.workers.run_as import RunAs
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Window
from pulse_core.ports import CannotLoad, Clock
from pulse_core.settings import Settings

if TYPE_CHECKING:
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.engine_user.layout import EngineUserLayout
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.sandbox.code_checks import SandboxedChecks
    from pulse_core.engine.engine_context import EngineParts
    from upulse_cli.wiring.ground import Ground


def engine_of(ground: "Ground", windows: Callable[[], Mapping[str, Window]]) -> "EngineParts | None":
    """The user's rules, if the home has a repository for them. windows: of every sense, as they are now."""
    home = ground.home.path
    if not (home / "engine" / ".git").exists():
        return None
    # Imported only where there is an engine: the others need not bear it in memory.
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.git.git_client import GitClient
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import found_plugins
    from pulse_core.engine.engine_context import EngineParts

    plugins = found_plugins()
    user = partial(run_as, ground.home, ground.current_settings)
    hosts = ChildHosts(run_as=user, plugins=plugins)
    hands = ChildActionHosts(ground.clock, windows, run_as=user, plugins=plugins)
    return EngineParts(GitClient(home), hosts, hands)


def settings_of(home: Home) -> Settings:
    """The settings, also with such faults as keep no daemon from starting. Raises SettingsRefused."""
    return load_to_start(home.config)[0]


def rule_hosts(home: Home, dev: bool = False) -> "ChildHosts":
    """Starts rule hosts for this home from the command line, by its settings as they are then."""
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import found_plugins

    user = partial(run_as, home, partial(settings_of, home))
    return ChildHosts(run_as=user, plugins=found_plugins(), dev=dev)


def hands_hosts(home: Home, clock: Clock, windows: Callable[[], Mapping[str, Window]]) -> "ChildActionHosts":
    """Starts hands hosts likewise. windows: of every sense, as they are now."""
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.rule_host.plugins import found_plugins

    user = partial(run_as, home, partial(settings_of, home))
    return ChildActionHosts(clock, windows, run_as=user, plugins=found_plugins())


def code_checks(home: Home) -> "SandboxedChecks":
    """The gates' tools for this home, run as the engine's user if it has one. Raises PulseError."""
    from pulse_adapters.git.template import shipped
    from pulse_adapters.sandbox.code_checks import SandboxedChecks

    config = shipped() / "pyproject.toml"
    user = engine_user(home, settings_of(home)) if os.geteuid() == 0 else None
    if user:
        return SandboxedChecks(config, user.work, user.account.ids)

    def cache() -> Path:
        path = home.path / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    return SandboxedChecks(config, cache)


def run_as(home: Home, settings: Callable[[], Settings]) -> RunAs:
    """As whom the engine's code runs. Raises CannotLoad where it can't have the user that it must have."""
    if os.geteuid() != 0:
        return RunAs()  # nobody but root can give a process another user
    try:
        found = engine_user(home, settings())
    except PulseError as error:
        raise CannotLoad(str(error)) from error
    return RunAs(found.account.ids, found.shown) if found else RunAs()


def engine_user(home: Home, settings: Settings) -> "EngineUserLayout | None":
    """The user that the engine's code runs as, with its own place; None if it runs as we do. Raises PulseError."""
    from pulse_adapters.engine_user.layout import engine_user_of

    return engine_user_of(home.path, settings.engine.user)
