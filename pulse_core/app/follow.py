"""Waiting for news: through the daemon while it answers, else by looking at the file now and then."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import NotAnswering
from pulse_core.model.event import Event
from pulse_core.model.names import SETTLING
from pulse_core.ports.readers import EventQuery

LOOK = 0.25
"""Seconds between two looks at the file."""

Spelled = Mapping[str, Any]


def follow(
    home: HomeContext,
    seq: int,
    kinds: Collection[str] = (),
    *,
    brief: bool = False,
    patience: float = float("inf"),
) -> Iterator[Spelled]:
    """Events after row `seq` as they come; daemons may come and go meanwhile.

    brief: whoever asks will soon have what it waits for, so that no place has to be left for others; patience: seconds
    after which it ends if no daemon stays up.
    """
    until = time.monotonic() + patience
    while True:
        try:
            for event in home.daemon.follow(seq, kinds, brief=brief):
                seq = int(event["seq"])
                yield event
        except NotAnswering:
            for event in _written(home, seq, kinds):
                seq = int(event["seq"])
                yield event
            if time.monotonic() > until:
                return
            time.sleep(LOOK)


def _written(home: HomeContext, seq: int, kinds: Collection[str]) -> Iterator[Spelled]:
    with home.events() as log:
        yield from map(Event.spelled, log.events(EventQuery(since_seq=seq, kinds=tuple(kinds))))


def settled(home: HomeContext, effect: str) -> Spelled:
    """The event that settles this effect, when it has come."""
    with home.events() as log:
        wish = log.event(effect)
    events = follow(home, wish.seq, SETTLING, brief=True)
    return next(event for event in events if event["subject"] == effect)
