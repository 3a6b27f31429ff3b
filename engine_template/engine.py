"""What this engine consists of. Rules stand outermost first: each one asks those below it."""

from pulse_core import Executor, Projection, Rule, Watcher

from projections.deaths import deaths
from rules.disk_fills_up import disk_fills_up
from rules.quiet_nights import quiet_nights
from rules.too_many_deaths import too_many_deaths

RULES: list[Rule] = [
    quiet_nights,
    too_many_deaths,
    disk_fills_up,
]

PROJECTIONS: dict[str, Projection] = {
    "deaths": deaths,
}

WATCHERS: list[Watcher] = []

EXECUTORS: list[Executor] = []
