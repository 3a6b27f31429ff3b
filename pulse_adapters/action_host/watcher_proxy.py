"""Proxies of the engine's watchers for the daemon's loop; the work is done in the child."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_adapters.action_host.protocol import (
    Reply,
    WatcherDescription,
    data_of,
    failure_of,
    number_of,
)
from pulse_adapters.action_host.session import GRACE, CallLost, ChildSession
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports import Clock, EngineCodeBroken, EngineFault

MARGIN = 3 * GRACE
"""Seconds that the loops allow beyond a call's time: by then it has ended here, in words that name its place."""
RESTART = 5.0
"""Seconds in which an action waits for a child to be up; it has not begun then, and fails."""
HONEST = ("failed", "given-up", "unsure")
"""The ways to go wrong that an author has chosen: they are the world's fault, not the code's."""


class EngineCodeFailed(EngineCodeBroken):
    """The engine's code failed; the message names file and line."""


class ChildWatcher:
    """`Watcher` in a child. Conclusions of an engine's reading are dropped with a fault, since only what the daemon

    itself has observed may be recorded as having happened; a rule can request effects instead.
    """

    def __init__(
        self,
        told: WatcherDescription,
        supervisor: ChildSupervisor,
        clock: Clock,
        windows: Callable[[], Mapping[str, Window]],
        failed: Failed,
    ) -> None:
        self.name, self.key, self.interval = told.name, told.key, told.interval
        self.timeout = told.timeout + MARGIN
        self.nudge = asyncio.Event()
        self.nudges = told.nudged
        self._told, self._supervisor, self._clock, self._windows = told, supervisor, clock, windows
        self._failed = failed
        self._wakes = False

    @property
    def whose(self) -> str:
        """The name of this watcher in a fault."""
        return f"watcher:{self.name}"

    async def collect(self) -> Reading:
        """Take a sample in the child, which also says whether it is worth a tick. Raises PulseError."""
        self._wakes = False
        try:
            reply = await self._supervisor.ask(
                self.whose, self._question, self._told.timeout, patience=self._told.timeout
            )
        except CallLost as lost:
            if lost.is_own:
                raise EngineCodeFailed(lost.fault.message) from None
            raise PulseError(f"broken off: {lost.fault.whose} {lost.fault.message}") from None
        if wrong := failure_of(reply):
            raise self._error(*wrong)
        try:
            return self._reading(reply["ok"])
        except ValueError as error:
            self._supervisor.session.spoil(str(error))
            raise EngineCodeFailed(f"its host said {error}") from None

    def _error(self, way: str, words: str) -> PulseError:
        if way in HONEST:
            return PulseError(words)
        return EngineCodeFailed(timeout_message(self._told.timeout, words) if way == "late" else words)

    def _question(self, session: ChildSession) -> Message:
        window = self._windows().get(self.key, Window())
        newest = session.sent.get(self.name, -1)
        fresh = [(one.id, one.moment, one.data) for one in window.samples if one.id > newest]
        if fresh:
            session.sent[self.name] = fresh[-1][0]
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
            self._failed(EngineFault(self.whose, with_place(words, self._told.place)))
        self._wakes = said.get("wake") is True
        return Reading(data)

    def should_wake(self, window: Window) -> bool:
        """What the child said with the newest sample."""
        return self._wakes


def timeout_message(seconds: float | None, place: str) -> str:
    """The message for a call that took too long."""
    within = f" within {seconds:g} s" if seconds else " in its time"
    return f"was not done{within}, and was ended{' ' + place if place else ''}"
