"""Proxies of the engine's watchers and executors for the daemon's loops; the work is done in the child."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import RootModel
from pydantic_core import to_json

from pulse_adapters.action_host.process import GRACE, ActionChild, CallLost
from pulse_adapters.action_host.replies import (
    LEAST_INTERVAL,
    LONGEST,
    CallReply,
    ExecutorDescription,
    WatcherDescription,
    policy_of,
)
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.host_process import ENGINE
from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import EngineCodeBroken, EngineFault
from pulse_core.ports.executor import GivenUp, Policy, Result, Safety, Unsure

MARGIN = 3 * GRACE
"""Seconds that the loops allow beyond a call's time: by then it has ended here, in words that name its place."""
RESTART = 5.0
"""Seconds in which an action waits for a child to be up; it has not begun then, and fails."""
ASKING = 1.0
"""Seconds in which an author's code says what policy it has for an effect."""
RETRIES = 10
"""What the loop may try again, where the author's own policy, which is known here, allows as much."""
_TRIED = 1_000
CAREFUL = Policy(Safety.AT_MOST_ONCE, timeout=600.0)
"""For an executor that has told no policy yet."""
CHOSEN: Mapping[str, Callable[[str], Exception]] = {
    "failed": PulseError,
    "given-up": GivenUp,
    "unsure": Unsure,
}
"""The ways to go wrong that an author has chosen: they are the world's fault, not the code's."""


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
                raise EngineCodeBroken(lost.fault.message) from None
            raise PulseError(_broken_off(lost)) from None
        if reply.wrong in CHOSEN:
            raise PulseError(reply.words)
        if reply.wrong:
            raise _error(reply, self._told.timeout)
        if reply.dropped:
            words = f"{reply.dropped} conclusions were dropped: an engine's watcher brings samples, and rules conclude"
            self._failed(EngineFault(self.whose, with_place(words, self._told.place)))
        self._supervisor.spend_sample(len(to_json(reply.data)))
        self._wakes = reply.wake
        return Reading(reply.data or {})

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


class EffectParams(RootModel[dict[str, Any]]):
    """Params as the effect has them, not validated: only the child has the author's model."""


class ChildExecutor:
    """`Executor` in a child, which is asked before each attempt for its policy for the params.

    `policy` is synchronous, so it can't ask the child: it returns a policy that leaves all decisions to this class
    (verify what was interrupted, retry until GivenUp is raised). An executor that can't return its policy, or takes too
    long for it, gets the safest one. The child runs `check` just before the action; what it refuses fails as GivenUp.
    """

    def __init__(self, told: ExecutorDescription, supervisor: ChildSupervisor, failed: Failed) -> None:
        self.action, self.params, self.whose = told.action, EffectParams, told.whose
        self._supervisor, self._failed = supervisor, failed
        self._plain = Policy(*told.policy) if told.policy else CAREFUL
        self._safest = Policy(Safety.AT_MOST_ONCE, timeout=self._plain.timeout)
        self._is_mute = False
        self._tried: dict[str, int] = {}

    def policy(self, params: Any) -> Policy:
        """A policy that lets the author's own one, which is asked for later, decide; with the pauses of that."""
        plain = self._plain
        retries = max(RETRIES, plain.retries)
        return replace(plain, safety=Safety.VERIFY_FIRST, timeout=3 * LONGEST, retries=retries)

    def check(self, params: Any) -> None:
        """Do nothing: the child validates the params by the author's model when the action starts."""

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        """Run the action in the child. Raises PulseError for a failure, Unsure if its outcome is unknown."""
        policy, tried = self._plain, self._tried.pop(event.id, 0) + 1
        try:
            with self._supervisor.held():
                policy = await self._policy_for(effect)
                try:
                    return Result(await self._asked("execute", policy, effect, event) or {})
                except CallLost as lost:
                    return await self._settled(lost, policy, effect, event)
        except GivenUp:
            raise
        except PulseError as error:
            if policy.safety is Safety.AT_MOST_ONCE or tried > policy.retries:
                raise GivenUp(str(error)) from None
            self._tried[event.id] = tried
            if len(self._tried) > _TRIED:  # effects that were cancelled between two attempts
                del self._tried[next(iter(self._tried))]
            raise

    async def _policy_for(self, effect: Effect) -> Policy:
        """The author's policy for this effect. Raises GivenUp if it refuses the params, PulseError if no child is up."""
        if self._is_mute:
            return self._safest
        message = {"do": "policy", "name": self.action, "params": effect.params}
        try:
            reply = await self._supervisor.call(self.whose, lambda child: message, ASKING, RESTART)
        except CallLost as lost:
            if not lost.is_own:
                raise PulseError(_broken_off(lost)) from None
            self._is_mute = True  # each time that it hangs, all others are ended with it
            return self._safest
        if reply.wrong:
            return self._told_none(reply.wrong, reply.words)
        try:
            return policy_of(reply.policy)
        except WorkerFault as error:
            return self._told_none("broken", f"its policy makes no sense: {error}")

    def _told_none(self, way: str, words: str) -> Policy:
        if way == "given-up":
            raise GivenUp(words)
        self._failed(EngineFault(self.whose, f"{words}; without a policy the action is done once at most"))
        return self._safest

    async def _settled(self, lost: CallLost, policy: Policy, effect: Effect, event: Event) -> Result:
        """The result of an action whose child ended during it; verifies it where the policy says so."""
        words = lost.fault.message if lost.is_own else _broken_off(lost)
        if policy.safety is Safety.AT_MOST_ONCE:
            raise Unsure(words) from None
        if policy.safety is Safety.VERIFY_FIRST:
            try:
                data = await self._asked("verify", policy, effect, event)
            except (PulseError, CallLost, Unsure) as error:
                raise Unsure(f"{words}; and nobody can look whether it was done: {error}") from None
            if data is not None:
                return Result(data)
        if (
            self._supervisor.is_closed
        ):  # the next one is of another commit, which has not promised to go on with this
            raise GivenUp(words) from None
        raise EngineCodeBroken(words) from None

    async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
        """Ask the child whether the action was done, if the author's policy is to verify."""
        try:
            with self._supervisor.held():
                policy = await self._policy_for(effect)
                if policy.safety is Safety.IDEMPOTENT:
                    return None
                if policy.safety is Safety.AT_MOST_ONCE:
                    raise Unsure("it must not run twice")
                data = await self._asked("verify", policy, effect, event)
        except (PulseError, CallLost) as error:
            raise Unsure(str(error)) from None
        return None if data is None else Result(data)

    async def _asked(
        self, verb: str, policy: Policy, effect: Effect, event: Event
    ) -> Mapping[str, Json] | None:
        message: Message = {
            "do": verb,
            "name": self.action,
            "effect": effect.model_dump(mode="json"),
            "event": tuple(event),
        }
        reply = await self._supervisor.call(self.whose, lambda child: message, policy.timeout, RESTART)
        if reply.wrong:
            error = _error(reply, policy.timeout)
            if isinstance(error, EngineCodeBroken):
                self._failed(EngineFault(self.whose, str(error)))
            raise error
        return reply.data


def _error(reply: CallReply, seconds: float) -> Exception:
    """What an author's code raised, or that it was not done within these seconds."""
    if reply.wrong in CHOSEN:
        return CHOSEN[reply.wrong](reply.words)
    if reply.wrong != "late":
        return EngineCodeBroken(reply.words)
    return EngineCodeBroken(f"was not done within {seconds:g} s, and was ended {reply.words}".strip())


def _broken_off(lost: CallLost) -> str:
    whose = "" if lost.fault.whose == ENGINE else f"{lost.fault.whose} "
    return f"broken off: {whose}{lost.fault.message}"
