"""The engine's watchers and executors as the daemon's loops see them; the work is done in the child."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pulse_adapters.hands_host.answers import (
    Reply,
    ToldExecutor,
    ToldWatcher,
    data_of,
    number_of,
    wrong_of,
)
from pulse_adapters.hands_host.frames import Message
from pulse_adapters.hands_host.keeping import Failed, Keeping
from pulse_adapters.hands_host.life import GRACE, Life, Lost
from pulse_adapters.hands_host.places import placed
from pulse_adapters.hands_host.schema import accepting
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import Json
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports import Clock, Fault, GivenUp, Policy, Result, Safety, Unsure

MARGIN = 3 * GRACE
"""Seconds that the loops allow beyond a call's time: by then it has ended here, in words that name its place."""
RESTART = 5.0
"""Seconds in which an action waits for a child to be up; it has not begun then, and fails."""
CAREFUL = Policy(Safety.AT_MOST_ONCE, timeout=600.0)
"""For an executor that tells no policy without params; the time that it gives to these is kept within."""


class Faulty(PulseError):
    """The engine's code failed; the words name file and line."""


class ChildWatcher:
    """`Watcher` in a child. It concludes nothing: the conclusions of an engine's reading are dropped with a fault,

    since only what the daemon itself has seen may be recorded as what happened; a rule can wish for the rest.
    """

    def __init__(
        self,
        told: ToldWatcher,
        keeping: Keeping,
        clock: Clock,
        windows: Callable[[], Mapping[str, Window]],
        failed: Failed,
    ) -> None:
        self.name, self.key, self.interval = told.name, told.key, told.interval
        self.timeout = told.timeout + MARGIN
        self.nudge = asyncio.Event()
        self.nudges = told.nudged
        self._told, self._keeping, self._clock, self._windows = told, keeping, clock, windows
        self._failed = failed
        self._wakes = False

    @property
    def whose(self) -> str:
        """How it is called in a fault."""
        return f"watcher:{self.name}"

    async def collect(self) -> Reading:
        """Have it sense once; whether that is worth a tick is said with it. Raises PulseError."""
        self._wakes = False
        try:
            reply = await self._keeping.ask(
                self.whose, self._question, self._told.timeout, patience=self._told.timeout
            )
        except Lost as lost:
            words = (
                lost.fault.message if lost.is_own else f"broken off: {lost.fault.whose} {lost.fault.message}"
            )
            raise Faulty(words) from None
        if wrong := wrong_of(reply):
            raise Faulty(late(self._told.timeout, wrong[1]) if wrong[0] == "late" else wrong[1])
        try:
            return self._reading(reply["ok"])
        except ValueError as error:
            self._keeping.life.spoil(str(error))
            raise Faulty(f"its host said {error}") from None

    def _question(self, life: Life) -> Message:
        window = self._windows().get(self.key, Window())
        newest = life.sent.get(self.name, -1)
        fresh = [(one.id, one.moment, one.data) for one in window.samples if one.id > newest]
        if fresh:
            life.sent[self.name] = fresh[-1][0]
        return {
            "do": "collect",
            "name": self.name,
            "key": self.key,
            "nudged": self._told.nudged,
            "now": self._clock.now(),
            "fresh": fresh,
        }

    def _reading(self, said: Reply) -> Reading:
        data = data_of(said)
        if data is None:
            raise ValueError("a sample without data")
        if dropped := number_of(said, "dropped"):
            words = (
                f"{dropped} conclusions were dropped: an engine's watcher brings samples, and rules conclude"
            )
            self._failed(Fault(self.whose, placed(words, self._told.place)))
        self._wakes = said.get("wake") is True
        return Reading(data)

    def should_wake(self, window: Window) -> bool:
        """What was said with the newest sample."""
        return self._wakes


class ChildExecutor:
    """`Executor` in a child. What it would refuse by `check` fails as given up, since nothing here may wait for it."""

    def __init__(self, told: ToldExecutor, keeping: Keeping, failed: Failed) -> None:
        self.action, self.params = told.action, accepting(told.schema)
        self._told, self._keeping, self._failed = told, keeping, failed
        self._plain = told.policy or CAREFUL
        looking = self._plain.timeout + RESTART if self._plain.safety is Safety.VERIFY_FIRST else 0.0
        self._policy = replace(self._plain, timeout=self._plain.timeout + RESTART + MARGIN + looking)

    @property
    def whose(self) -> str:
        """How it is called in a fault."""
        return f"executor:{self.action}"

    def policy(self, params: Any) -> Policy:
        """The policy that it told when it was loaded; its time is longer here, and kept over there."""
        return self._policy

    def check(self, params: Any) -> None:
        """Nothing: the params were held against its schema."""

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        """Have it done. Raises PulseError for a failure, Unsure where nobody can tell whether it was done."""
        try:
            data = await self._asked("execute", effect, event)
        except Lost as lost:
            return await self._settled(lost, effect, params, event)
        return Result(data or {})

    async def _settled(self, lost: Lost, effect: Effect, params: Any, event: Event) -> Result:
        """What is to be said of an action whose child ended under it."""
        words = lost.fault.message if lost.is_own else f"broken off: {lost.fault.whose} {lost.fault.message}"
        if self._plain.safety is Safety.AT_MOST_ONCE:
            raise Unsure(words) from None
        if self._plain.safety is Safety.VERIFY_FIRST and (found := await self._looked(effect, event, words)):
            return found
        raise Faulty(words) from None

    async def _looked(self, effect: Effect, event: Event, words: str) -> Result | None:
        try:
            async with asyncio.timeout(self._plain.timeout + RESTART):
                data = await self._asked("verify", effect, event)
        except (PulseError, Lost, TimeoutError) as error:
            raise Unsure(f"{words}; and nobody can look whether it was done: {error}") from None
        return None if data is None else Result(data)

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        """Have it looked whether it was done."""
        try:
            data = await self._asked("verify", effect, event)
        except (PulseError, Lost) as error:
            raise Unsure(str(error)) from None
        return None if data is None else Result(data)

    async def _asked(self, verb: str, effect: Effect, event: Event) -> Mapping[str, Json] | None:
        message = {
            "do": verb,
            "name": self.action,
            "effect": effect.model_dump(mode="json"),
            "event": tuple(event),
            "safety": self._plain.safety.value if self._told.policy else None,
        }
        reply = await self._keeping.ask(self.whose, lambda life: message, self._plain.timeout, RESTART)
        try:
            if wrong := wrong_of(reply):
                raise self._error(*wrong)
            return data_of(reply["ok"])
        except ValueError as error:
            self._keeping.life.spoil(str(error))
            raise Lost(await self._keeping.life.epitaph(), True) from None

    def _error(self, way: str, words: str) -> Exception:
        match way:
            case "given-up":
                return GivenUp(words)
            case "unsure":
                return Unsure(words)
            case "failed":
                return PulseError(words)
            case "late":
                words = late(None, words)
        self._failed(Fault(self.whose, words))
        return Faulty(words)


def late(seconds: float | None, place: str) -> str:
    """That something took too long."""
    within = f" within {seconds:g} s" if seconds else " in its time"
    return f"was not done{within}, and was ended{' ' + place if place else ''}"
