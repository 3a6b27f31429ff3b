"""The user's rules: where they lie, and the hosts that run them, in the daemon and from the command line."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pulse_adapters.workers.run_as import RunAs
from pulse_core.app.context import HomeContext
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Window
from pulse_core.ports import CannotLoad
from pulse_core.settings import Settings

if TYPE_CHECKING:
    from pulse_adapters.engine_user.layout import EngineUserLayout
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_core.engine.engine_context import EngineParts
    from upulse_cli.wiring.daemon_context import DaemonContext


def engine_of(shared: "DaemonContext", windows: Callable[[], Mapping[str, Window]]) -> "EngineParts | None":
    """The user's rules, if the home has a repository for them. windows: of every sense, as they are now."""
    home = shared.home.path
    if not (home / "engine" / ".git").exists():
        return None
    # Imported only where there is an engine: the others need not bear it in memory.
    from pulse_adapters.action_host.hosts import ChildActionHosts
    from pulse_adapters.git.git_client import GitClient
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import plugin_entries
    from pulse_core.engine.engine_context import EngineParts

    plugins = plugin_entries()
    user = partial(run_as, shared.home, shared.current_settings)
    hosts = ChildHosts(run_as=user, plugins=plugins)
    action_hosts = ChildActionHosts(shared.clock, windows, run_as=user, plugins=plugins)
    return EngineParts(GitClient(home), hosts, action_hosts)


def rule_hosts(context: HomeContext) -> "ChildHosts":
    """Starts rule hosts for this home, by its settings as they are then."""
    from pulse_adapters.rule_host.hosts import ChildHosts
    from pulse_adapters.rule_host.plugins import plugin_entries

    user = partial(run_as, context.layout, lambda: context.settings().settings)
    return ChildHosts(run_as=user, plugins=plugin_entries())


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
