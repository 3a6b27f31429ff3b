"""Executors: what carries out effects, and their retry policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pulse_core.model.backoff import Backoff
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pulse_core.model.kinds import Effect


class Safety(Enum):
    """How an action is recovered whose outcome is unknown after a crash."""

    IDEMPOTENT = "idempotent"  # do it again
    VERIFY_FIRST = "verify-first"  # look whether it happened, then do it or not
    AT_MOST_ONCE = "at-most-once"  # never again: settled as unknown


class Slot(StrEnum):
    """Which slots an action of survival takes; others take those of who requested them."""

    SHARED = ""
    START = "start"  # only starts something, which takes a moment
    NONE = "none"  # waits for something that lives to end: there is at most one such action for each process


@dataclass(frozen=True, slots=True)
class Policy:
    """How an action is carried out: seconds throughout; `retries` are further attempts after the first.

    outlasts_shortages: an attempt that the machine lacks processes, threads, descriptors, memory or /dev/null for is made
    again until it has them, and is none of `retries`; of survival's actions alone, as `slot`.
    """

    safety: Safety
    timeout: float = 60.0
    retries: int = 0
    backoff: float = 1.0
    backoff_max: float = 60.0
    cooldown: float = 0.0
    slot: Slot = Slot.SHARED
    outlasts_shortages: bool = False

    @property
    def pauses(self) -> Backoff[float]:
        """The seconds between two attempts."""
        return Backoff(self.backoff, self.backoff_max, jitter=0.25)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an action that worked."""

    data: Mapping[str, Json] = field(default_factory=dict)


class Unsure(Exception):
    """Raised by an executor that can't tell whether its action happened; never retried."""


class PartlyDone(PulseError):
    """Raised by an executor whose action failed in part; result: what was done of it, as a `Result` has it."""

    def __init__(self, message: str, result: Mapping[str, Json] = {}) -> None:
        super().__init__(message)
        self.result = dict(result)


class GivenUp(PartlyDone):
    """Raised by an executor whose action failed and is not worth another attempt, whatever its policy says."""


class NotYet(Refused):
    """Raised by `check` where something has changed that the log does not tell yet: what follows from it is decided then."""


class Executor(Protocol):
    """Carries out one kind of effect.

    `params` is the model that validates its effects' params when they are appended. `execute` returns when the action
    is done, or raises: PulseError for a failure that it understands. Cancelling it ends all that it started.
    """

    @property
    def action(self) -> str: ...

    @property
    def params(self) -> "type[BaseModel]": ...

    def policy(self, params: Any) -> Policy:
        """The policy for these params."""

    def check(self, params: Any) -> None:
        """Refuse, before it is recorded, what may not be done (raises Refused), or not now (NotYet); most refuse nothing."""
        return

    async def execute(self, effect: "Effect", params: Any, event: Event) -> Result: ...

    async def verify(self, effect: "Effect", params: Any, event: Event) -> Result | None:
        """The result if the action has happened already, None if it has not. Raises Unsure if that can't be known.

        Called only if the policy's safety is VERIFY_FIRST.
        """
        return None
