"""What sweeps a home: its objects, what names them, and its files of no use."""

import time
from collections.abc import Awaitable, Callable, Sequence

from pulse_adapters.config.home import Home, expanded
from pulse_adapters.host.leftovers import HomeLeftovers
from pulse_adapters.objects import FileObjects, shards
from pulse_adapters.sqlite.named_objects import NamedObjects
from pulse_core.app.gc import MINIMUM_AGE, Sweeper
from pulse_core.settings import Settings


def sweeper_of(
    home: Home,
    objects: FileObjects,
    unnamed_by_ticks: Callable[[Sequence[str]], Awaitable[Sequence[str]]],
    settings: Callable[[], Settings],
    damage: Callable[[], str],
) -> Sweeper:
    """A sweeper of this home. damage: says what is wrong with the log, or nothing."""

    def old() -> float:
        return time.time() - MINIMUM_AGE

    return Sweeper(
        old_objects=lambda: (shard.objects for shard in shards(home.objects, old())),
        discard=lambda names: objects.discard(names, old()),
        references=NamedObjects(home.events),
        unnamed_by_ticks=unnamed_by_ticks,
        leftovers=HomeLeftovers(
            home, settings, lambda: (shard.leftovers for shard in shards(home.objects, old())), expanded
        ),
        is_in_doubt=lambda: bool(damage() or any(home.damaged.glob("*"))),
    )
