"""Carries out effects: one asyncio task for each, from its executor's call until its outcome is on disk."""

import asyncio
from collections import UserDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from pulse_core.actions import parsed_params
from pulse_core.composition import declaration_of
from pulse_core.execute.limits import BURST, BYTES_A_SECOND, NO_ROOM, SMALL, small_part
from pulse_core.execute.outcomes import OutcomeRecorder
from pulse_core.model.backoff import Backoff
from pulse_core.model.errors import NotStartable, PulseError, Refused, describe_error
from pulse_core.model.event import Draft
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectExecuting,
    EffectFailed,
    EffectUnknown,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import Payload, encode
from pulse_core.model.shortages import lacks_to_start
from pulse_core.model.token_bucket import TokenBucket
from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor, GivenUp, PartlyDone, Policy, Result, Safety, Unsure
from pulse_core.ports.loops import is_cancelled
from pulse_core.projections.conditions import FOR
from pulse_core.projections.effects import OpenEffect, Phase, Source, source_of
from pulse_core.projections.state import CurrentState, State
from pulse_core.record.journal import Journal

MAX_INTERRUPTIONS = 10
PAUSED_INTERVAL = 0.5
AWAITED_INTERVAL = 0.1


def objection(effect: OpenEffect, state: State, now: Moment) -> str | None:
    """Why the effect must be cancelled instead of begun, or None if it is still valid. Pure."""
    if effect.cancel:
        return f"cancelled by {effect.cancel}"
    wish, wished = effect.wish, effect.event
    if wish.not_after is not None and now.since(wished.moment) > wish.not_after - wished.at:
        return "its time was over before it could be begun"
    if source_of(wished.data) is Source.PEOPLE:
        return None
    condition = wish.params.get(FOR)
    if wish.survival and condition and state.conditions[str(condition)] is None:
        return f"{condition} is over in the meantime"
    return declaration_of(wish.action).objection(wish, state, now) or None


def begin_wait(effect: OpenEffect, now: Moment, cooldown_us: int, settled: Moment | None) -> int:
    """Microseconds until the effect may be begun; 0 if it may be now. Pure."""
    retry = effect.retry_us - now.since(effect.moment) if effect.retry_us else 0
    cooling = cooldown_us - now.since(settled) if cooldown_us and settled else 0
    return max(0, retry, cooling)


SHORTAGE_PAUSES = Backoff(1.0, 5.0)
"""Seconds between two attempts while the machine lacks something: what it brings back is needed as soon as it has that."""


class ExecutorRegistry(UserDict[str, Executor]):
    """Executors by action; Pulse's own can't be replaced.

    is_complete: whether all executors are registered. Until then an effect without an executor waits instead of
    failing: effects for the engine's executors may be open when the daemon starts, before its action host runs.
    """

    def __init__(self, own: Mapping[str, Executor], is_complete: bool = True) -> None:
        super().__init__(own)
        self._own = own
        self.is_complete = is_complete

    def register(self, executors: Mapping[str, Executor]) -> None:
        """Register these besides Pulse's own, instead of those that were registered before."""
        self.data, self.is_complete = {**executors, **self._own}, True

    def awaits(self, action: str) -> bool:
        """Whether an executor for this action may still be registered."""
        return not self.is_complete and action not in self


@dataclass(frozen=True, slots=True)
class Attempt:
    """An effect about to be carried out: its executor, its parsed params and the policy for them."""

    effect: OpenEffect
    executor: Executor
    params: Any
    policy: Policy
    number: int

    async def act(self, dice: Random) -> Payload:
        """Execute it once; returns the payload to record. Raises only when it is cancelled."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self.policy.timeout) as limit:
                result = await self.executor.execute(self.effect.wish, self.params, self.effect.event)
            payload = acked_payload(result, loop.time() - began)
        except TimeoutError as error:
            if not limit.expired():  # it is the executor's own, as of a file system that does not answer
                return self._failed(error, dice)
            return self._failed(PulseError(f"not done within {self.policy.timeout:g} s, and ended"), dice)
        except Unsure as error:
            return EffectUnknown(why=str(error))
        except GivenUp as error:
            return EffectFailed(error=str(error), result=error.result)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return self._failed(PulseError("it cancelled itself"), dice)
        except Exception as error:  # noqa: BLE001 - whatever an executor raises is the outcome of its effect
            return self._failed(error, dice)
        return payload

    async def recover(self) -> Payload | None:
        """What to record of an attempt that a crash interrupted, or None if it must begin again."""
        if self.number > MAX_INTERRUPTIONS + self.policy.retries:
            return EffectFailed(error=f"interrupted {self.number} times; not tried again")
        if self.policy.safety is Safety.IDEMPOTENT:
            return None
        if self.policy.safety is Safety.AT_MOST_ONCE:
            return EffectUnknown(why="the daemon died while it was executing, and it must not run twice")
        try:
            async with asyncio.timeout(self.policy.timeout):
                result = await self.executor.verify(self.effect.wish, self.params, self.effect.event)
            return acked_payload(result, 0.0) if result else None
        except Exception as error:  # noqa: BLE001 - not being able to look is the answer
            return EffectUnknown(
                why=f"interrupted, and nobody can tell whether it happened: {describe_error(error)}"
            )

    def _failed(self, failure: Exception, dice: Random) -> Payload:
        error, result = describe_error(failure), failure.result if isinstance(failure, PartlyDone) else {}
        if self.policy.outlasts_shortages and lacks_to_start(failure):
            pause = SHORTAGE_PAUSES.after(self.number)
        elif self.number > self.policy.retries or self.policy.safety is Safety.AT_MOST_ONCE:
            return EffectFailed(error=error, result=result, not_startable=isinstance(failure, NotStartable))
        else:
            pause = self.policy.pauses.jittered(self.number, dice.random())
        retry_us = round(pause * US_PER_SECOND)
        return EffectAttemptFailed(attempt=self.number, error=error, retry_us=retry_us, result=result)


def acked_payload(result: Result, seconds: float) -> EffectAcked:
    """The payload of an attempt that worked."""
    return EffectAcked(took_us=round(seconds * US_PER_SECOND), result=dict(result.data))


class EffectTasks:
    """Runs effects that are on disk as executing, and records how each one went.

    done: called with the effect's id whenever a task has ended; end_remains: ends what an earlier daemon, which died,
    has left running of an effect, before that is begun again.
    """

    def __init__(
        self,
        journal: Journal,
        current_state: CurrentState,
        executors: Mapping[str, Executor],
        clock: Clock,
        dice: Random,
        done: Callable[[str], None],
        end_remains: Callable[[str], Awaitable[None]],
    ) -> None:
        self.journal, self.current_state, self.end_remains = journal, current_state, end_remains
        self.executors = executors if isinstance(executors, ExecutorRegistry) else ExecutorRegistry(executors)
        self.clock, self.dice, self.done = clock, dice, done
        self.outcomes = OutcomeRecorder(journal)
        self._recorded = TokenBucket(BURST, BYTES_A_SECOND)
        """Bytes that effects of rules may record: no event ever goes."""
        self.running: dict[str, asyncio.Task[None]] = {}
        self._resuming: set[str] = set()

    def __len__(self) -> int:
        return len(self.running)

    def __contains__(self, id_: str) -> bool:
        return id_ in self.running

    def demand_room(self, data: str) -> None:
        """Raise Refused if this is the data of a rule's effect, and there is no room for it in the log."""
        if source_of(data) is Source.RULES and not self._has_room(len(data)):
            raise Refused(NO_ROOM)

    def spend_room(self, recorded: Sequence[Draft]) -> None:
        """Count effects that were recorded: what is wished again while the log can't be written takes no room."""
        for draft in recorded:
            if source_of(draft.data) is Source.RULES and len(draft.data) > SMALL:
                self._recorded.spend(len(draft.data))

    def attempt(self, effect: OpenEffect) -> Attempt:
        """The effect's next attempt (or the one under way); raises PulseError if no executor can."""
        executor = self.executors.get(effect.wish.action)
        if executor is None:
            raise PulseError(f"no executor carries out {effect.wish.action!r} any more")
        params = parsed_params(executor.params, effect.wish)
        number = effect.attempt if effect.phase is Phase.EXECUTING else effect.attempt + 1
        return Attempt(effect, executor, params, executor.policy(params), number)

    def may_act_unrecorded(self, effect: Effect) -> bool:
        """Whether it may begin while the log can't be written: only survival's idempotent effects."""
        executor = self.executors.get(effect.action)
        if executor is None or not effect.survival:
            return False
        return executor.policy(parsed_params(executor.params, effect)).safety is not Safety.AT_MOST_ONCE

    def start(self, group: asyncio.TaskGroup, effect: OpenEffect, attempt: Attempt | None = None) -> None:
        """Carry the effect out in a task of the group; attempt: as `attempt` made it before it was on disk."""
        self._start(group, effect, self._carry_out(effect, attempt))

    def resume(self, group: asyncio.TaskGroup, effect: OpenEffect) -> None:
        """Settle or carry out, in a task of the group, what an earlier daemon began."""
        self._resuming.add(effect.id)  # it checks for a cancel request by itself
        self._start(group, effect, self._resume(effect))

    def _start(
        self, group: asyncio.TaskGroup, effect: OpenEffect, work: Coroutine[object, None, None]
    ) -> None:
        task = group.create_task(self._until_done(effect.id, work), name=f"effect {effect.event.subject}")
        self.running[effect.id] = task

    def cancel(self, *ids: str) -> None:
        """Cancel these tasks (all, if none is named); the next start settles effects without a cancel request."""
        for id_ in ids or tuple(self.running):
            if ids and id_ in self._resuming:
                continue
            if not (task := self.running[id_]).cancelling():
                # Not at once: one that has just begun would end before its first step, and record nothing.
                asyncio.get_running_loop().call_soon(task.cancel)

    async def _until_done(self, id_: str, work: Coroutine[object, None, None]) -> None:
        try:
            await work
        finally:
            del self.running[id_]
            self._resuming.discard(id_)
            self.done(id_)

    async def _carry_out(self, effect: OpenEffect, attempt: Attempt | None = None) -> None:
        if attempt and attempt.executor is not self.executors.get(effect.wish.action):
            attempt = None  # another engine was loaded meanwhile
        try:
            outcome = await (attempt or self.attempt(effect)).act(self.dice)
        except Exception as error:  # noqa: BLE001 - an effect that nobody understands is one that failed
            outcome = EffectFailed(error=describe_error(error))
        except asyncio.CancelledError:
            if not (who := self._cancelled_by(effect.id)):
                raise
            outcome = EffectCancelled(why=f"ended by {who} while it was executing")
        await self._settle(effect, outcome)

    def _cancelled_by(self, id_: str) -> str:
        effect = self.current_state().effects.open.get(id_)
        return effect.cancel if effect else ""

    async def _resume(self, effect: OpenEffect) -> None:
        try:
            outcome = await self._resumed(effect)
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled():
                raise
            outcome = EffectUnknown(why=f"interrupted, and {describe_error(error)}")
        if outcome is not None:
            await self._settle(effect, outcome)
        self._resuming.discard(effect.id)
        if (newest := self.current_state().effects.open.get(effect.id)) is None:
            return  # it is settled, or was replaced meanwhile
        if newest.cancel:
            await self._settle(effect, EffectCancelled(why=f"interrupted, and cancelled by {newest.cancel}"))
        else:
            await self._carry_out(newest)

    async def _resumed(self, effect: OpenEffect) -> Payload | None:
        """What to record of what an earlier daemon began: how it ended, or that it begins again; None if it was replaced."""
        while self.executors.awaits(effect.action):  # noqa: ASYNC110 - for a moment after the start
            await asyncio.sleep(AWAITED_INTERVAL)
        if (outcome := await self.attempt(effect).recover()) is not None:
            return outcome
        # While Pulse is paused nothing is begun again, but it may be cancelled.
        while self.current_state().control.paused is not None and not self._cancelled_by(effect.id):  # noqa: ASYNC110 - rare
            await asyncio.sleep(PAUSED_INTERVAL)
        state = self.current_state()
        if (newest := state.effects.open.get(effect.id)) is None:
            return None
        if why := objection(newest, state, self.clock.now()):
            return EffectCancelled(why=f"interrupted, and {why}")
        await self.end_remains(effect.id)
        is_open = effect.id in self.current_state().effects.open
        return EffectExecuting(attempt=effect.attempt + 1) if is_open else None

    def _bounded(self, outcome: Payload) -> Payload:
        """The outcome with what is small of its result, if rules' effects have taken what they may of the log."""
        if not isinstance(outcome, EffectAcked | EffectFailed | EffectAttemptFailed) or not outcome.result:
            return outcome
        if not self._has_room(size := len(encode(outcome))):
            return outcome.model_copy(update={"result": small_part(outcome.result)})
        if size > SMALL:
            self._recorded.spend(size)
        return outcome

    def _has_room(self, size: int) -> bool:
        """Whether rules' effects may record so many bytes, or they are few."""
        return size <= SMALL or self._recorded.room(asyncio.get_running_loop().time()) >= size

    async def _settle(self, effect: OpenEffect, outcome: Payload) -> None:
        """Record the outcome, or hold it in memory: it must not be lost."""
        source = source_of(effect.event.data)
        while True:
            try:
                kept = self._bounded(outcome) if source is Source.RULES else outcome
                draft = effect_draft(effect, kept, self.journal.new_id())
                if source is Source.SURVIVAL:  # it waits for no others, not even for a turn of the loop
                    await self.journal.append_or_hold(draft)
                else:
                    await self.outcomes.record(draft)
            except Refused as refused:
                outcome = EffectFailed(error=f"it was done, but its outcome cannot be recorded: {refused}")
            else:
                return


def effect_draft(effect: OpenEffect, payload: Payload, id_: str = "") -> Draft:
    """A draft whose subject and cause are the effect. id_: its own, if it has one."""
    about = effect.id
    return Draft(payload, about, about, id_)


def executing_draft(about: str, id_: str, attempt: int = 1) -> Draft:
    """A draft that the effect `about` is about to be carried out. id_: its own."""
    payload, text = _executing(attempt)
    return Draft(payload, about, about, id_, data=text)


@lru_cache(maxsize=64)
def _executing(attempt: int) -> tuple[EffectExecuting, str]:
    """The payload and its text: nearly all effects have the same one."""
    payload = EffectExecuting(attempt=attempt)
    return payload, encode(payload)
