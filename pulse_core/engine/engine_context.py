"""What the engine's side of the daemon is given, and the state of a running host."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.engine.quarantine import Quarantine
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.json_types import Json
from pulse_core.ports import (
    ActionHost,
    ActionHosts,
    Checkpoints,
    EventLog,
    Executor,
    ReservedNames,
    Revisions,
    RuleHost,
    RuleHosts,
    Watcher,
)
from pulse_core.projections import Snapshot, State
from pulse_core.settings import Settings

BACKOFF = Backoff(0.5, 300.0)
HEALTHY = 60.0
"""The backoff of restarts of a host that ended, and the uptime after which its earlier ends are forgotten (seconds)."""


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The engine's adapters: its repository, and what starts its hosts.

    without_plugins: the same without plugins, for safe mode; None if there are no plugins.
    """

    revisions: Revisions
    hosts: RuleHosts
    action_hosts: ActionHosts | None = None
    without_plugins: "EngineParts | None" = None


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What of the daemon the engine's side may use.

    last_snapshot: the last snapshot that the whole onion has folded, without provisional events; failed: reports a
    fault (whose, message), of a commit's code with the commit and whether its host ended by it; register: runs these
    watchers and executors besides the daemon's own; taken: the names of those.
    """

    log: EventLog
    checkpoints: Checkpoints
    current_state: Callable[[], State]
    settings: Callable[[], Settings]
    last_snapshot: Callable[[], Snapshot]
    failed: Callable[..., None]
    register: Callable[[Sequence[Watcher], Mapping[str, Executor]], None]
    taken: ReservedNames


def restarts() -> Restarts:
    """The restart policy for hosts that ended."""
    return Restarts(BACKOFF, HEALTHY)


@dataclass
class Running:
    """A rule host, its commit, the row up to which it knew the log when it was started, and its action host.

    parts: what started it; is_end_reported: whether the end of the host was recorded.
    """

    host: RuleHost
    commit: str
    seq: int
    parts: EngineParts
    action_host: ActionHost | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)
    is_end_reported: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def sandbox(self) -> dict[str, Json]:
        """Each part of what holds the engine's code, and whether it does; its user holds watchers and executors, too."""
        return dict(self.host.loaded.sandbox)

    async def close(self) -> None:
        """End the host, when the fold under way is done; the action host is not touched."""
        async with self.lock:
            await self.host.close()
