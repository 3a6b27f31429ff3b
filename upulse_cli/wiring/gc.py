"""What sweeps a home: its objects, what names them, and its files of no use."""

import asyncio
import time
from collections.abc import Callable, Mapping

from pulse_adapters.config.home import expand_path
from pulse_adapters.host.leftovers import HomeLeftovers
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects, shards
from pulse_adapters.sqlite.named_objects import NamedObjects, old_vitals, unnamed_by_ticks
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core import __version__
from pulse_core.app.context import HomeContext
from pulse_core.app.gc import MINIMUM_AGE, Sweeper, collect_garbage
from pulse_core.app.state import current_state, usable_settings
from pulse_core.home import HomeLayout
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import GcDone
from pulse_core.settings.settings import Settings


def sweeper_of(
    home: HomeLayout,
    objects: FileObjects,
    settings: Callable[[], Settings],
    damage: Callable[[], str],
    ticks_since: int = 0,
    is_in_place: Callable[[], bool] = lambda: True,
) -> Sweeper:
    """A sweeper of this home. damage: says what is wrong with the log, or nothing; ticks_since: older ones don't count.

    is_in_place: whether the home lies where it did; else nothing goes there, where another one may lie.
    """

    def old() -> float:
        return time.time() - MINIMUM_AGE

    references = NamedObjects(home.events)
    leftovers = HomeLeftovers(
        home, settings, lambda: (shard.leftovers for shard in shards(home.objects, old())), expand_path
    )
    return Sweeper(
        old_objects=lambda: (shard.objects for shard in shards(home.objects, old())),
        discard=lambda names: objects.discard(names, old()) if is_in_place() else (),
        advance_references=references.advance,
        is_referenced=references.__contains__,
        unnamed_by_ticks=lambda names: unnamed_by_ticks(home.vitals, names, ticks_since),
        leftover_sizes=leftovers.sizes,
        remove_leftovers=lambda: leftovers.remove() if is_in_place() else (),
        is_in_doubt=lambda: bool(damage() or not is_in_place() or any(home.damaged.glob("*"))),
    )


def collect_offline(home: HomeContext) -> Mapping[str, Json]:
    """Take it away under the home's lock, as the daemon would; what went. Raises HomeBusy if a daemon runs."""
    settings = usable_settings(home)

    async def collect() -> GcDone:
        async with SqliteVitals.open(home.layout.vitals) as vitals:
            sweeper = offline_sweeper(home, settings)
            return await collect_garbage(vitals, sweeper, home.clock.now().at, settings.watch)

    with HomeLock(home.layout.lock, __version__, wait=2.0):
        return asyncio.run(collect()).model_dump()


def forecast(home: HomeContext) -> Mapping[str, Json]:
    """What would go; nothing is changed."""
    settings, now = usable_settings(home), home.clock.now().at
    before, minutes_before = now - settings.watch.keep, now - settings.watch.keep_minutes
    samples, ticks, minutes = old_vitals(home.layout.vitals, before, minutes_before)
    swept = asyncio.run(offline_sweeper(home, settings, minutes_before).forecast())
    return {"samples": samples, "ticks": ticks, "minutes": minutes, **swept._asdict()}


def offline_sweeper(home: HomeContext, settings: Settings, ticks_since: int = 0) -> Sweeper:
    """A sweeper of a home without a daemon."""
    return sweeper_of(
        home.layout,
        FileObjects(home.layout.objects),
        lambda: settings,
        lambda: current_state(home).control.damage,
        ticks_since,
    )
