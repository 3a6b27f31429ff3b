"""The senses that look at the outside, for a world whose daemons come and go."""

from collections.abc import Callable

from pulse_adapters.memory.network import MemoryProber
from pulse_core.llm.watcher import Llm
from pulse_core.model.vitals import Window
from pulse_core.ports.logs import LogFollower
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.watch.error_log import ErrorLog
from pulse_core.watch.network import Network
from tests.simulation.world import World


def of_network(world: World, prober: MemoryProber) -> tuple[Watcher, ...]:
    """What asks the network, as a new daemon has it."""
    settings, facts = settings_of(world), facts_of(world)
    return (
        Network(prober, settings, facts, window_of(world, Network.key)),
        Llm(prober, world.clock, settings, facts, window_of(world, Llm.key)),
    )


def of_logs(world: World, logs: LogFollower) -> ErrorLog:
    """What follows logs, likewise."""
    return ErrorLog(logs, world.clock, settings_of(world), facts_of(world), world.vitals.newest)


def settings_of(world: World) -> Callable[[], Settings]:
    """The settings in force."""
    return lambda: world.settings


def facts_of(world: World) -> Callable[[], State]:
    """What the log says to the daemon of now."""

    def facts() -> State:
        assert world.daemon is not None
        return world.daemon.parts.view()

    return facts


def window_of(world: World, key: str) -> Callable[[], Window]:
    """The window of a sense; an empty one while there is no daemon."""
    return lambda: world.daemon.watch.windows.get(key, Window()) if world.daemon else Window()
