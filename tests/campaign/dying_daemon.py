"""A daemon that is killed at a named point: `python -m tests.campaign.dying_daemon POINT NTH --home H`.

POINT is `before:KIND` or `after:KIND` for the commit of an event of that kind, or `before:spawn`, `after:spawn`;
NTH says at which time of passing it. The product has no such hooks: its adapters are wrapped here.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from pulse_adapters.host.spawner import Spawner
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.event import Draft, Event
from pulse_core.ports.host import ProcessId
from upulse_cli import serve


class Fate:
    """Counts how often the point was passed, and kills the process at the chosen time."""

    def __init__(self, point: str, nth: int) -> None:
        self.point, self.left = point, nth

    def passing(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def wrap(fate: Fate) -> None:
    """Let every commit and spawn pass by fate, before and after."""
    append, start = SqliteEventLog.append, Spawner.start

    async def fated_append(self: SqliteEventLog, *drafts: Draft) -> Sequence[Event]:
        kinds = [draft.payload.kind for draft in drafts]
        for kind in kinds:
            fate.passing(f"before:{kind}")
        events = await append(self, *drafts)
        for kind in kinds:
            fate.passing(f"after:{kind}")
        return events

    async def fated_start(self: Spawner, argv: Sequence[str], **how: Any) -> ProcessId:
        fate.passing("before:spawn")
        found = await start(self, argv, **how)
        fate.passing("after:spawn")
        return found

    SqliteEventLog.append = fated_append  # type: ignore[method-assign]
    Spawner.start = fated_start  # type: ignore[method-assign]


def main() -> int:
    """A daemon with this fate; its exit code."""
    wrap(Fate(sys.argv[1], int(sys.argv[2])))
    del sys.argv[1:3]
    return serve.main()


if __name__ == "__main__":
    sys.exit(main())
