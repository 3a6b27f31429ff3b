"""Evaluates what the tree of one guarded process takes, beside what it may. Pure."""

from collections.abc import Iterator, Mapping

from pulse_core.model.json_types import Json
from pulse_core.model.text import format_size
from pulse_core.projections.gauges import FixedBound, Gauge
from pulse_core.settings.processes import ProcessSettings

CLEAR = 0.9
"""The share of its bound below which usage counts as well again."""


def gauges(process: ProcessSettings, said: Mapping[str, Json]) -> Iterator[Gauge]:
    """What a sample says of this process, for each bound that it has; said: its entry, empty while it is down."""
    name, (memory, cpu) = process.name, process.usage_conditions
    if bound := process.memory_bound:
        taken = said.get("memory")
        words = f"{name} takes {_memory(taken)} of memory (allowed: {format_size(bound)})"
        yield Gauge(memory, FixedBound(bound, CLEAR * bound, process.for_), taken, words)
    if most := process.cpu_max:
        used = said.get("cpu")
        words = f"{name} uses {_cores(used)} (allowed: {most:g})"
        yield Gauge(cpu, FixedBound(most, CLEAR * most, process.for_), used, words)


def _memory(taken: float | None) -> str:
    return "an unknown amount" if taken is None else format_size(taken)


def _cores(used: float | None) -> str:
    return "an unknown number of cores" if used is None else f"{used:.2f} cores"
