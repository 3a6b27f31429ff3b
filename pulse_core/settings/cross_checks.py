"""Checks across tables of the settings: repeated names, unknown names, and dependency cycles."""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from pulse_core.model.errors import hint
from pulse_core.settings.processes import ProcessSettings


class Disagreement(NamedTuple):
    """A fault across tables: the kind of the table, its place among those, its key, and the message."""

    table: str
    place: int
    key: str
    text: str


def disagreements(processes: Sequence[ProcessSettings]) -> list[Disagreement]:
    """Every such fault between the processes; needs only `name` and `depends_on` of each."""
    names, faults = [process.name for process in processes], list[Disagreement]()
    for place in repeated_places(names):
        text = f"process {names[place]!r} is there twice; names must differ"
        faults.append(Disagreement("process", place, "name", text))
    for place, process in enumerate(processes):
        for other in process.depends_on:
            if other not in names:
                near = hint(other, {*names} - {process.name})
                text = f"process {process.name!r} depends_on unknown {other!r}{near}"
                faults.append(Disagreement("process", place, "depends_on", text))
    return [*faults, *dependency_cycles(processes)]


def dependency_cycles(processes: Sequence[ProcessSettings]) -> list[Disagreement]:
    """A fault for each dependency cycle of processes, with its path."""
    places = {process.name: place for place, process in reversed(list(enumerate(processes)))}
    needs = {process.name: set(process.depends_on) for process in processes}
    faults = []
    while way := _find_cycle(needs):
        first = min(range(len(way)), key=lambda step: places[way[step]])
        way = way[first:] + way[:first]
        text = f"depends_on goes in a circle: {' -> '.join((*way, way[0]))}"
        faults.append(Disagreement("process", places[way[0]], "depends_on", text))
        needs[way[-1]].discard(way[0])
    return faults


def repeated_places(values: Sequence[str | None]) -> Iterable[int]:
    """The places of values that repeat an earlier one."""
    return (place for place, value in enumerate(values) if value is not None and value in values[:place])


def _find_cycle(needs: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1][1:]))
    return []
