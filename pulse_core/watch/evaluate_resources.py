"""Evaluates one sample of the machine's resources. Pure: same sample, history and bounds give the same conclusion."""

from collections.abc import Mapping

from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.projections.gauges import History, Streak, conclude_gauges
from pulse_core.rules.measurements import resource_gauges
from pulse_core.settings.resources import ResourcesSettings

KINDS = ("memory", "swap", "pressure:", "disk:", "inodes:", "unmeasured:")
"""What the names of these conditions begin with."""


def conclude(
    data: Mapping[str, Json], settings: ResourcesSettings, history: History, now: Moment
) -> tuple[tuple[Draft, ...], Mapping[str, Streak]]:
    """The events that follow, and the streaks from now on.

    A file system that does not answer changes nothing, but for long that is a condition of its own. What is not measured
    any more (a path that was taken out of the settings, a kernel without pressure) is cleared.
    """
    return conclude_gauges(resource_gauges(data, settings), KINDS, history, now)
