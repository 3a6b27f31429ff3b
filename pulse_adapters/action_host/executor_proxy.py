"""The engine's executors as the daemon's loop sees them; the deed is done in the child."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import RootModel

from pulse_adapters.action_host.protocol import LONGEST, ExecutorDescription, data_of, policy_of, wrong_of
from pulse_adapters.action_host.session import CallLost
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.action_host.watcher_proxy import RESTART, EngineCodeFailed, late
from pulse_adapters.workers.framing import Message
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports import EngineFault, GivenUp, Policy, Result, Safety, Unsure

ASKING = 1.0
"""Seconds in which an author's code says what policy it has for an effect."""
RETRIES = 10
"""What the loop may try again, where the author's own policy, which is known here, allows as much."""
_TRIED = 1_000
CAREFUL = Policy(Safety.AT_MOST_ONCE, timeout=600.0)
"""For an executor that has told no policy yet."""


class EffectParams(RootModel[dict[str, Any]]):
    """Params as they stand in the effect; the author's own model, which only the child has, takes or refuses them."""


class ChildExecutor:
    """`Executor` in a child, which is asked before each attempt what policy it has for these params.

    The loop waits for nobody where it asks for a policy, so it is told one by which all is decided here: it has a look
    at what was broken off, which is answered by the author's class, and tries again as long as nobody gives up. One
    that can't say its policy, or takes too long for it, has the most careful one. `check` is asked in the child just
    before the deed; what it refuses fails as given up.
    """

    def __init__(self, told: ExecutorDescription, keeping: ChildSupervisor, failed: Failed) -> None:
        self.action, self.params = told.action, EffectParams
        self._told, self._keeping, self._failed = told, keeping, failed
        self._plain = told.policy or CAREFUL
        self._safest = Policy(Safety.AT_MOST_ONCE, timeout=self._plain.timeout)
        self._is_mute = False
        self._tried: dict[str, int] = {}

    @property
    def whose(self) -> str:
        """How it is called in a fault."""
        return f"executor:{self.action}"

    def policy(self, params: Any) -> Policy:
        """What lets the author's own policy, which is asked for later, decide; its pauses are those it told."""
        plain = self._plain
        retries = max(RETRIES, plain.retries)
        return replace(plain, safety=Safety.VERIFY_FIRST, timeout=3 * LONGEST, retries=retries)

    def check(self, params: Any) -> None:
        """Nothing: the child holds the params against the author's model when the action is begun."""

    async def execute(self, effect: Effect, params: Any, event: Event) -> Result:
        """Have it done. Raises PulseError for a failure, Unsure where nobody can tell whether it was done."""
        policy, tried = self._plain, self._tried.pop(event.id, 0) + 1
        try:
            with self._keeping.held():
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
        """What its author says of these params. Raises GivenUp if they say no, PulseError if no child is up."""
        if self._is_mute:
            return self._safest
        message = {"do": "policy", "name": self.action, "params": effect.params}
        try:
            reply = await self._keeping.ask(self.whose, lambda life: message, ASKING, RESTART)
        except CallLost as lost:
            if not lost.is_own:
                raise PulseError(_broken_off(lost)) from None
            self._is_mute = True  # each time that it hangs, all others are ended with it
            return self._safest
        try:
            if wrong := wrong_of(reply):
                return self._told_none(*wrong)
            return policy_of(reply["ok"])
        except ValueError as error:
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
        """What is to be said of an action whose child ended under it."""
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
        """Have it looked whether it was done, if the author's policy is to look."""
        try:
            with self._keeping.held():
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
        reply = await self._keeping.ask(self.whose, lambda life: message, policy.timeout, RESTART)
        try:
            if wrong := wrong_of(reply):
                raise self._error(*wrong)
            return data_of(reply["ok"])
        except ValueError as error:
            self._keeping.life.spoil(str(error))
            raise CallLost(await self._keeping.life.epitaph(), True) from None

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
        self._failed(EngineFault(self.whose, words))
        return EngineCodeFailed(words)


def _broken_off(lost: CallLost) -> str:
    return f"broken off: {lost.fault.whose} {lost.fault.message}"
