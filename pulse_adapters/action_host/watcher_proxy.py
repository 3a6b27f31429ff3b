"""Proxies of the engine's watchers for the daemon's loop; the work is done in the child."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_adapters.action_host.process import GRACE, ActionChild, CallLost
from pulse_adapters.action_host.replies import LEAST_INTERVAL, WatcherDescription
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.errors import PulseError
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import EngineCodeBroken, EngineFault

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
        self.name, self.key, self.whose = told.name, told.key, told.whose
        self.interval = max(LEAST_INTERVAL, told.interval)
        self.timeout = told.timeout + MARGIN
        self.nudge = asyncio.Event()
        self.nudges = told.nudged
        self._told, self._supervisor, self._clock, self._windows = told, supervisor, clock, windows
        self._failed = failed
        self._wakes = False

    async def collect(self) -> Reading:
        """Take a sample in the child, which also says whether it is worth a tick. Raises PulseError."""
        self._wakes = False
        try:
            reply = await self._supervisor.call(
                self.whose, self._question, self._told.timeout, patience=self._told.timeout
            )
        except CallLost as lost:
            if lost.is_own:
                raise EngineCodeFailed(lost.fault.message) from None
            raise PulseError(f"broken off: {lost.fault.whose} {lost.fault.message}") from None
        if reply.wrong:
            raise self._error(reply.wrong, reply.words)
        if reply.dropped:
            words = f"{reply.dropped} conclusions were dropped: an engine's watcher brings samples, and rules conclude"
            self._failed(EngineFault(self.whose, with_place(words, self._told.place)))
        self._wakes = reply.wake
        return Reading(reply.data or {})

    def _error(self, way: str, words: str) -> PulseError:
        if way in HONEST:
            return PulseError(words)
        return EngineCodeFailed(timeout_message(self._told.timeout, words) if way == "late" else words)

    def _question(self, child: ActionChild) -> Message:
        window = self._windows().get(self.key, Window())
        newest = child.sent.get(self.name, -1)
        fresh = [(one.id, one.moment, one.data) for one in window.samples if one.id > newest]
        if fresh:
            child.sent[self.name] = fresh[-1][0]
        return {
            "do": "collect",
            "name": self.name,
            "key": self.key,
            "nudged": self._told.nudged,
            "now": self._clock.now(),
            "fresh": fresh,
        }

    def should_wake(self, window: Window) -> bool:
        """What the child said with the newest sample."""
        return self._wakes


def timeout_message(seconds: float | None, place: str) -> str:
    """The message for a call that took too long."""
    within = f" within {seconds:g} s" if seconds else " in its time"
    return f"was not done{within}, and was ended{' ' + place if place else ''}"
