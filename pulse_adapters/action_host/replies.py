"""What an action host's child answers. What an author has chosen is checked alone: it must not cost the child its life."""

import re
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field

from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.host_process import ENGINE
from pulse_adapters.workers.message_types import CutTo
from pulse_adapters.workers.messages import decode
from pulse_adapters.workers.source_locations import with_place
from pulse_core.ports.engine import EngineFault
from pulse_core.ports.executor import Policy, Safety

T = TypeVar("T")

MOST_BYTES = 64 * 1024
"""Of a sample, or of a result, as JSON."""
LEAST_INTERVAL, LONGEST = 1.0, 86_400.0
_MOST = Field(max_length=200)
"""Watchers, or executors, of an engine."""
Text = Annotated[str, CutTo(2_000)]
NAME = r"^[^\x00-\x20\x7f-\x9f\u2028\u2029]{1,200}$"
Name = Annotated[str, Field(pattern=NAME)]
Seconds = Annotated[float, Field(ge=0.001, le=LONGEST)]
Pause = Annotated[float, Field(ge=0.0, le=LONGEST)]
Items = Annotated[tuple[dict[str, Any], ...], _MOST]


class WatcherDescription(NamedTuple):
    """A watcher as its child describes it; times in seconds. nudged: it may ask to be collected."""

    name: Name
    key: Name
    interval: Seconds
    timeout: Seconds
    nudged: bool
    place: Text

    @property
    def whose(self) -> str:
        """Its name in a fault."""
        return f"watcher:{self.name}"


class PolicyDescription(NamedTuple):
    """The fields of a `Policy`."""

    safety: Safety
    timeout: Seconds
    retries: Annotated[int, Field(ge=0, le=1_000)]
    backoff: Pause
    backoff_max: Pause
    cooldown: Pause


class ExecutorDescription(NamedTuple):
    """An executor as its child describes it. policy: without params; None if it depends on them."""

    action: Name
    policy: PolicyDescription | None
    place: Text

    @property
    def whose(self) -> str:
        """Its name in a fault."""
        return f"executor:{self.action}"


class LoadedActions(NamedTuple):
    """The usable watchers and executors, and the faults of what is left out."""

    watchers: tuple[WatcherDescription, ...]
    executors: tuple[ExecutorDescription, ...]
    faults: tuple[EngineFault, ...]


class Owners(NamedTuple):
    """Whose faults an engine's actions may be. foreign: those that are the daemon's own; plugins: that are loaded."""

    foreign: Collection[str]
    plugins: Collection[str]

    def booked(self, whose: str, words: str) -> EngineFault:
        """The fault, on the host itself if it names what can't be one of its own."""
        kind, _, name = whose.partition(":")
        if kind in ("watcher", "executor"):
            is_own = whose not in self.foreign and re.fullmatch(NAME, name) is not None
        else:
            is_own = name in self.plugins if kind == "plugin" else whose == ENGINE
        return EngineFault(whose, words) if is_own else EngineFault(ENGINE, f"{whose[:200]}: {words}")


class ActionLoadReply(NamedTuple):
    """What was loaded, or why nothing was."""

    error: Text | None = None
    watchers: Items = ()
    executors: Items = ()
    faults: Annotated[tuple[tuple[Text, Text], ...], Field(max_length=400)] = ()

    def loaded(self, own: Owners) -> LoadedActions:
        """The usable items; an unusable one becomes a fault."""
        faults = list(self.faults)
        watchers = tuple(_usable(WatcherDescription, self.watchers, "watcher", "name", faults))
        executors = tuple(_usable(ExecutorDescription, self.executors, "executor", "action", faults))
        return LoadedActions(watchers, executors, tuple(own.booked(*fault) for fault in faults))


def _usable(kind: type[T], items: Items, what: str, name: str, faults: list[tuple[str, str]]) -> Iterator[T]:
    for item in items:
        try:
            yield decode(kind, item)
        except WorkerFault as error:
            words = with_place(f"left out: its {error}", str(item.get("place"))[:200])
            faults.append((f"{what}:{str(item.get(name))[:50]}", words))


class CallReply(NamedTuple):
    """What a call came to. wrong: how it failed, and words why; the rest is the result of one that did not."""

    wrong: Literal["", "late", "cancelled", "failed", "given-up", "unsure", "broken"] = ""
    words: Text = ""
    data: dict[str, Any] | None = None
    wake: bool = False
    dropped: Annotated[int, Field(ge=0, lt=2**31)] = 0
    names: Annotated[tuple[Text, ...], _MOST] = ()
    policy: dict[str, Any] | None = None


def policy_of(described: object) -> Policy:
    """The policy that was described. Raises WorkerFault."""
    return Policy(*decode(PolicyDescription, described))
