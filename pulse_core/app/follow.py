"""Waiting for events: told by the daemon while it answers, else found by looking at the log now and then."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import NotAnswering
from pulse_core.ports.readers import EventQuery

LOOK = 0.25
"""Seconds between two looks at the log."""


def follow(
    home: HomeContext, seq: int, kinds: Collection[str] = (), *, brief: bool = False
) -> Iterator[Mapping[str, Any]]:
    """Events after row `seq` as they come, for ever, as JSON values; daemons may come and go meanwhile.

    brief: whoever asks will soon have what it waits for, so that no place has to be left for others.
    """
    while True:
        try:
            for event in home.daemon.follow(seq, kinds, brief=brief):
                seq = int(str(event["seq"]))
                yield event
        except NotAnswering:
            with home.events() as log:
                for written in log.events(EventQuery(since_seq=seq, kinds=tuple(kinds))):
                    seq = written.seq
                    yield written.spelled()
            time.sleep(LOOK)
