"""Checks across tables of the settings: repeated names, unknown names, and dependency cycles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import NamedTuple

from pulse_core.model.errors import hint
from pulse_core.model.pattern import search_pattern
from pulse_core.settings.processes import ProcessSettings

MOST_FAULTS = 100
"""Told at once: to find thousands takes as long as a hostile author of settings wants."""
MOST_TOLD = 5
"""Other processes that are named to one."""


class Disagreement(NamedTuple):
    """A fault across tables: the kind of the table, its place among those, its key, and the message."""

    table: str
    place: int
    key: str
    text: str


def disagreements(processes: Sequence[ProcessSettings]) -> list[Disagreement]:
    """Such faults between the processes, at most MOST_FAULTS; needs only `name` and `depends_on` of each."""
    faults = list(islice(_wrong_names(processes), MOST_FAULTS))
    return [*faults, *dependency_cycles(processes, MOST_FAULTS - len(faults))]


def _wrong_names(processes: Sequence[ProcessSettings]) -> Iterator[Disagreement]:
    names = [process.name for process in processes]
    known = set(names)
    yield from repeated_names("process", names)
    for place, process in enumerate(processes):
        for other in process.depends_on:
            if other not in known:
                near = hint(other, known - {process.name})
                text = f"process {process.name!r} depends_on unknown {other!r}{near}"
                yield Disagreement("process", place, "depends_on", text)


def repeated_names(table: str, names: Sequence[str]) -> list[Disagreement]:
    """A fault for each name that is there twice, at most MOST_FAULTS."""
    places = islice(repeated_places(names), MOST_FAULTS)
    text = "is there twice; names must differ"
    return [Disagreement(table, place, "name", f"{table} {names[place]!r} {text}") for place in places]


def dependency_cycles(processes: Sequence[ProcessSettings], most: int = MOST_FAULTS) -> list[Disagreement]:
    """A fault for each dependency cycle of processes, with its path; not more than `most`."""
    places = {process.name: place for place, process in reversed(list(enumerate(processes)))}
    needs = {process.name: set(process.depends_on) for process in processes}
    faults = list[Disagreement]()
    while len(faults) < most and (way := _find_cycle(needs)):
        first = min(range(len(way)), key=lambda step: places[way[step]])
        way = way[first:] + way[:first]
        text = f"depends_on goes in a circle: {' -> '.join((*way, way[0]))}"
        faults.append(Disagreement("process", places[way[0]], "depends_on", text))
        needs[way[-1]].discard(way[0])
    return faults


def overlaps(processes: Sequence[ProcessSettings]) -> Mapping[str, str]:
    """By name, in words: which two would be recognised by the same process, which is then only one of them."""
    told: dict[str, list[str]] = {}
    lines = {one.name: " ".join(one.start).encode() for one in processes if one.start}
    for one in processes:
        pattern, words = search_pattern(one.match) if one.match else None, told.setdefault(one.name, [])
        others = {name: line for name, line in lines.items() if name != one.name} if pattern else {}
        if pattern and others and pattern.may_find(b"\n".join(others.values())):
            found = [name for name, line in others.items() if pattern.finds(line)]
            words += [f"its `match` finds what {name} starts, too" for name in found[:MOST_TOLD]]
    for way in ("match", "pid_file", "tcp", "systemd_unit"):
        first: dict[object, str] = {}
        for one in processes:
            value = getattr(one, way)
            other = first.setdefault((value, one.systemd_user), one.name)
            if value and other != one.name:
                told[one.name].append(f"its `{way}` is that of {other}, too")
    return {
        name: f"{'; '.join(words)}: a process counts for one of them alone"
        for name, words in told.items()
        if words
    }


def repeated_places(values: Sequence[str | None]) -> Iterable[int]:
    """The places of values that repeat an earlier one."""
    seen: set[str | None] = {None}
    for place, value in enumerate(values):
        if value in seen and value is not None:
            yield place
        seen.add(value)


def _find_cycle(needs: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1][1:]))
    return []
