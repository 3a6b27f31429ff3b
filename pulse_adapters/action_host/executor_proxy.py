"""Proxies of the engine's executors for the daemon's loop; the action itself runs in the child."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import RootModel

from pulse_adapters.action_host.process import CallLost
from pulse_adapters.action_host.replies import LONGEST, ExecutorDescription, policy_of
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.action_host.watcher_proxy import RESTART, EngineCodeFailed, timeout_message
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports.engine import EngineFault
from pulse_core.ports.executor import GivenUp, Policy, Result, Safety, Unsure

ASKING = 1.0
"""Seconds in which an author's code says what policy it has for an effect."""
RETRIES = 10
"""What the loop may try again, where the author's own policy, which is known here, allows as much."""
_TRIED = 1_000
CAREFUL = Policy(Safety.AT_MOST_ONCE, timeout=600.0)
"""For an executor that has told no policy yet."""


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
                return await self._done(policy, effect, event)
        except GivenUp:
            raise
        except PulseError as error:
            if policy.safety is Safety.AT_MOST_ONCE or tried > policy.retries:
                raise GivenUp(str(error)) from None
            self._count(event.id, tried)
            raise

    def _count(self, id_: str, tried: int) -> None:
        self._tried[id_] = tried
        if len(self._tried) > _TRIED:  # effects that were cancelled between two attempts
            del self._tried[next(iter(self._tried))]

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

    async def _done(self, policy: Policy, effect: Effect, event: Event) -> Result:
        try:
            data = await self._asked("execute", policy, effect, event)
        except CallLost as lost:
            return await self._settled(lost, policy, effect, event)
        return Result(data or {})

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
        raise EngineCodeFailed(words) from None

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
            raise self._error(reply.wrong, reply.words)
        return reply.data

    def _error(self, way: str, words: str) -> Exception:
        match way:
            case "given-up":
                return GivenUp(words)
            case "unsure":
                return Unsure(words)
            case "failed":
                return PulseError(words)
            case "late":
                words = timeout_message(None, words)
        self._failed(EngineFault(self.whose, words))
        return EngineCodeFailed(words)


def _broken_off(lost: CallLost) -> str:
    return f"broken off: {lost.fault.whose} {lost.fault.message}"
