"""What the engine's side of the daemon is given, and the state of a running host: which of its rules are skipped."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.json_types import Json
from pulse_core.model.text import count
from pulse_core.model.tick import LayerOutcome
from pulse_core.ports.engine import (
    ActionHost,
    ActionHosts,
    EngineFault,
    ReservedNames,
    Revisions,
    RuleHost,
    RuleHosts,
)
from pulse_core.ports.executor import Executor
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.settings import Settings

RULE = "rule:"
SLOW = 0.5
"""The part of the deadline that a rule must not take tick after tick."""
SLOW_TICKS = 10
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
class Quarantine:
    """Counts consecutive errors and slow ticks of each rule of one host. One good tick resets the count."""

    errors: Counter[str] = field(default_factory=Counter)
    slow: Counter[str] = field(default_factory=Counter)

    def observe(
        self, layers: Iterable[LayerOutcome], faults: Iterable[EngineFault], deadline_us: int
    ) -> None:
        """Count the outcome of one tick."""
        erred = {fault.whose.removeprefix(RULE) for fault in faults if fault.whose.startswith(RULE)}
        took = {layer.rule: layer.took_us for layer in layers}
        slow = {rule for rule, us in took.items() if us > SLOW * deadline_us}
        self.errors = _counted(self.errors, erred)
        self.slow = _counted(self.slow, slow)

    def verdicts(self, errors: int) -> dict[str, str]:
        """The rules to skip and why; errors: how many in a row are too many."""
        found = {
            rule: f"it took more than {SLOW:.0%} of the deadline in {times} ticks in a row"
            for rule, times in self.slow.items()
            if times >= SLOW_TICKS
        }
        for rule, times in self.errors.items():
            if times >= errors:
                found[rule] = f"it failed in {count(times, 'tick')} in a row"
        return found


def _counted(before: Counter[str], now: set[str]) -> Counter[str]:
    return Counter({rule: before[rule] + 1 for rule in now})


@dataclass
class Running:
    """A rule host, its commit, the row up to which it knew the log when it was started, and its action host.

    parts: what started it; is_end_reported: whether the end of the host was recorded; is_behind: whether it could not
    be told of an event.
    """

    host: RuleHost
    commit: str
    seq: int
    parts: EngineParts
    action_host: ActionHost | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)
    is_end_reported: bool = False
    is_behind: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def sandbox(self) -> dict[str, Json]:
        """Each part of what holds the engine's code, and whether it does; its user holds watchers and executors, too."""
        return dict(self.host.loaded.sandbox)

    @property
    def is_up(self) -> bool:
        """Whether it can fold."""
        return self.host.alive and not self.is_behind

    async def close(self) -> None:
        """End the host, when the fold under way is done; the action host is not touched."""
        async with self.lock:
            await self.host.close()

    async def end(self) -> None:
        """End both."""
        try:
            await self.close()
        finally:
            if self.action_host:
                await self.action_host.close()
