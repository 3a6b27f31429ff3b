"""The user's rules: where they lie, and the hosts that run them."""

from collections.abc import Callable, Mapping

from pulse_core.engine.surroundings import EngineParts
from pulse_core.model.vitals import Window
from upulse_cli.wiring.ground import Ground


def engine_of(ground: Ground, windows: Callable[[], Mapping[str, Window]]) -> EngineParts | None:
    """The user's rules, if the home has a repository for them. windows: of every sense, as they are now."""
    home = ground.home.path
    if not (home / "engine" / ".git").exists():
        return None
    # Imported only where there is an engine: the others need not bear it in memory.
    from pulse_adapters.git.asking import GitChild
    from pulse_adapters.hands_host.hosts import HandsHost
    from pulse_adapters.rule_host.hosts import ChildHosts
    from upulse_cli.engine.housing import HousedHands, HousedHosts
    from upulse_cli.engine.plugins import found_plugins
    from upulse_cli.engine.revisions import GitRevisions

    plugins = found_plugins()
    hosts = HousedHosts(ground.home, ground.decisions, ChildHosts(plugins=plugins))
    hands = HousedHands(ground.home, ground.decisions, HandsHost(ground.clock, windows, plugins=plugins))
    return EngineParts(GitRevisions(GitChild(home)), hosts, hands)
