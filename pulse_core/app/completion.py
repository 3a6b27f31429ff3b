"""Names in a home that complete a command line: effects and vitals, newest first."""

from collections.abc import Iterator

from pulse_core.app.context import HomeContext
from pulse_core.model.names import SETTLING
from pulse_core.ports.readers import EventQuery

NEWEST = 2_000
"""Rows at the end of the log in which effects are searched: a person waits at a prompt."""


def effect_names(home: HomeContext, prefix: str, only_open: bool = False) -> Iterator[str]:
    """Keys of the newest effects; their ids, too, once something of the word is typed."""
    with home.events() as log:
        since = max(0, log.head().seq - NEWEST)
        events = list(log.events(EventQuery(since_seq=since, kinds=("effect", *SETTLING))))
    settled = {event.subject for event in events if event.kind != "effect"}
    effects = [
        event
        for event in reversed(events)
        if event.kind == "effect" and not (only_open and event.id in settled)
    ]
    yield from (event.subject for event in effects)
    if prefix:
        yield from (event.id for event in effects)


def vital_names(home: HomeContext) -> Iterator[str]:
    """Every number of the last samples."""
    from pulse_core.app.series import numbers  # completion of other words need not wait for it

    with home.vitals() as reader:
        for sample in reader.last_samples():
            yield from (name for name, _ in numbers(sample.data, sample.key))
