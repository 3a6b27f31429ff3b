"""The user's rules: where they lie, and the hosts that run them, in the daemon and from the command line."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse_adapters.config.home import Home
from pulse_adapters.workers.run_as import RunAs
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import Windows, WorkflowContext
from pulse_core.engine.engine_context import EngineParts
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Window
from pulse_core.ports import CannotLoad
from pulse_core.settings import Settings
from upulse_cli.wiring.ground import Ground
from upulse_cli.wiring.home import home_context

if TYPE_CHECKING:
    from pulse_adapters.engine_user.layout import EngineUserLayout
    from pulse_adapters.sandbox.code_checks import SandboxedChecks


def engine_of(ground: Ground, windows: Callable[[], Mapping[str, Window]]) -> EngineParts | None:
    """The user's rules, if the home has a repository for them. windows: of every sense, as they are now."""
    home = ground.home.path
    if not (home / "engine" / ".git").exists():
        return None
    # Imported only where there is an engine: the others need not bear it in memory.
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.git.git_client import GitClient
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import found_plugins

    plugins = found_plugins()
    user = partial(run_as, ground.home, ground.current_settings)
    hosts = ChildHosts(run_as=user, plugins=plugins)
    hands = ChildActionHosts(ground.clock, windows, run_as=user, plugins=plugins)
    return EngineParts(GitClient(home), hosts, hands)


def workflow_context(home: Home, *, is_live: bool = False) -> WorkflowContext:
    """The engine of this home, for what people ask of it. Raises NoRepository.

    The settings are read once, unless it is to follow a daemon whose settings may change meanwhile (is_live).
    """
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.git.author import whoever
    from pulse_adapters.git.repository import Repository
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import found_plugins
    from pulse_adapters.rule_host.standby import StandbyHosts

    context = home_context(home)
    if not is_live:
        context = replace(context, settings=cache(context.settings))
    user, plugins = partial(run_as, home, lambda: context.settings().settings), found_plugins()

    def action_hosts(windows: Windows) -> ChildActionHosts:
        return ChildActionHosts(context.clock, windows, run_as=user, plugins=plugins)

    return WorkflowContext(
        home=context,
        author=whoever(),
        repository=Repository(home.path),
        checks=partial(code_checks, context),
        rule_hosts=ChildHosts(run_as=user, plugins=plugins),
        action_hosts=action_hosts,
        standby_hosts=lambda: StandbyHosts(ChildHosts(run_as=user, plugins=plugins, dev=True)),
    )


def code_checks(context: HomeContext) -> "SandboxedChecks":
    """The gates' tools for this home, run as the engine's user if it has one. Raises PulseError."""
    from pulse_adapters.git.template import shipped
    from pulse_adapters.sandbox.code_checks import SandboxedChecks

    config, home = shipped() / "pyproject.toml", context.layout
    user = engine_user(home, context.settings().settings) if os.geteuid() == 0 else None
    if user:
        return SandboxedChecks(config, user.work, user.account.ids)

    def cache_folder() -> Path:
        path = home.path / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    return SandboxedChecks(config, cache_folder)


def run_as(home: HomeLayout, settings: Callable[[], Settings]) -> RunAs:
    """As whom the engine's code runs. Raises CannotLoad where it can't have the user that it must have."""
    if os.geteuid() != 0:
        return RunAs()  # nobody but root can give a process another user
    try:
        found = engine_user(home, settings())
    except PulseError as error:
        raise CannotLoad(str(error)) from error
    return RunAs(found.account.ids, found.shown) if found else RunAs()


def engine_user(home: HomeLayout, settings: Settings) -> "EngineUserLayout | None":
    """The user that the engine's code runs as, with its own place; None if it runs as we do. Raises PulseError."""
    from pulse_adapters.engine_user.layout import engine_user_of

    return engine_user_of(home.path, settings.engine.user)


def scaffold_in_staging(home: HomeLayout, what: str, name: str) -> Sequence[Path]:
    """Write a rule, projection, watcher or executor into staging, with its test; the files, the module first."""
    from pulse_adapters.git.repository import Repository
    from pulse_adapters.git.scaffold import scaffold

    repository = Repository(home.path)
    repository.mend()
    return scaffold(repository.staging().path, what, name)


def installed_plugins() -> Sequence[Mapping[str, Any]]:
    """Every installed plugin: its name, its package with the version, what it brings, and what is wrong with it."""
    from pulse_adapters.rule_host.plugin_contents import installed_plugins

    return installed_plugins()
