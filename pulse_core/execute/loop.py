"""The executor loop: find due effects, record that they begin, begin them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from pulse_core.actions import parsed_params
from pulse_core.composition import declaration_of
from pulse_core.execute.effect_tasks import (
    Attempt,
    EffectTasks,
    begin_wait,
    effect_draft,
    executing_draft,
    objection,
)
from pulse_core.execute.limits import OpenBound, Refusals, RetryLimit
from pulse_core.execute.notice_batching import is_failed, is_outgoing_notice, next_batch
from pulse_core.execute.slots import SURVIVAL, Holder, Slots, holder
from pulse_core.model.errors import LogUnavailable, PulseError, describe_error
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    Effect,
    EffectCancelled,
    EffectCancelRequested,
    EffectExecuting,
    EffectFailed,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopRequested,
    Resumed,
    SettingsLoaded,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import OUTWARD
from pulse_core.model.payload import decode_plain, encode, encode_checked
from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor, NotYet
from pulse_core.ports.loops import coalesced, wait_within
from pulse_core.projections.effects import OpenEffect, Phase
from pulse_core.projections.state import CurrentState, State
from pulse_core.record.gate import Gate, check_executable
from pulse_core.record.journal import Journal
from pulse_core.settings.settings import Settings

NUDGING_KINDS = frozenset(
    kind.kind
    for kind in (
        ConditionCleared,
        ConditionRaised,
        Effect,
        EffectCancelRequested,
        ProcessDied,
        ProcessRestartRequested,
        ProcessStartRequested,
        ProcessStopRequested,
        Resumed,
        SettingsLoaded,
    )
)
SLICE = 5
"""Effects that are judged at a time: looking for a program takes some time, and others have their turn in between."""
AGAIN_US = 60 * US_PER_SECOND
"""How long after survival's last effect of a key the next one lets those of others begin before it."""
NEWS_US = 20_000
"""How long an effect waits for news without which it may not be begun, until it is asked for again."""
LONG = 10 * US_PER_SECOND
"""How long effects wait for a slot until it is told who holds them."""


async def nothing_remains(effect: str) -> None:
    """A machine on which nothing outlives the daemon."""


class ExecutorLoop:
    """Begins effects when they are due: up to `daemon.concurrency` of survival at a time, and as many starts.

    Rules and people have their own; what waits for a living process to end takes no slot.

    Outgoing notices are sent one message at a time, and one of those that failed before, without taking a slot: however
    long a message takes, no survival action waits for it. failed: told of effects that nobody can carry out, and of slots
    that are held for long, with the commit whose rule wished for it; end_remains: as `EffectTasks` has it.

    Run `run` in a TaskGroup; after `stop` it begins nothing more and returns when the running ones have ended.
    """

    def __init__(
        self,
        journal: Journal,
        current_state: CurrentState,
        settings: Callable[[], Settings],
        executors: Mapping[str, Executor],
        clock: Clock,
        dice: Random,
        failed: Callable[[str, str, str], None],
        end_remains: Callable[[str], Awaitable[None]] = nothing_remains,
    ) -> None:
        self.journal, self.current_state, self.settings, self.clock = journal, current_state, settings, clock
        self.failed = failed
        self.workers = EffectTasks(journal, current_state, executors, clock, dice, self._done, end_remains)
        self.slots = Slots(lambda: settings().daemon.concurrency)
        self._waits: dict[str, Holder] = {}
        """Those of survival for which there was no room."""
        self._full_since: Moment | None = None
        self._is_newest_next = True
        self._refusals, self._retries = Refusals(), RetryLimit()
        self.beats = 0
        self._stir = asyncio.Event()
        self._stopping = False
        self._reserved: dict[str, Attempt | None] = {}
        self._late: set[str] = set()
        """Effects that may be recorded as begun once the log answers again, and are not."""
        self._messages: dict[bool, frozenset[str]] = {}
        """The notices of the message that is being sent: those that did not fail before, and those that did."""
        self._group: asyncio.TaskGroup | None = None

    def on_events(self, events: Sequence[Event]) -> None:
        """Wake for events that may make an effect due; a listener of the log."""
        if any(event.kind in NUDGING_KINDS for event in events):
            self._stir.set()
        for event in events if self._late else ():
            if event.kind == EffectExecuting.kind and event.subject in self._late:
                self._begin_late(event.subject)
        for event in events if self.workers.running else ():
            is_ours = event.kind == EffectCancelled.kind and event.subject in self.workers
            if is_ours and decode_plain(event.data).get("replaced"):
                self.workers.cancel(event.subject)

    def _begin_late(self, id_: str) -> None:
        """Begin an effect whose beginning was recorded after nobody had waited for that any more."""
        self._late.discard(id_)
        effect = self.current_state().effects.open.get(id_)
        if effect and id_ not in self._reserved and id_ not in self.workers:
            self._reserve(id_, self._holder(effect.wish, effect.event.data))
            self._begin([id_])

    def nudge(self) -> None:
        """Look for due effects now."""
        self._stir.set()

    def _done(self, id_: str) -> None:
        self.slots.release([id_])
        self.nudge()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self._stir.set()

    async def run(self) -> None:
        """Settle or resume what a crash interrupted, then begin what is due until stopped."""
        async with asyncio.TaskGroup() as outer:
            outer.create_task(self.workers.outcomes.run(), name="outcomes")
            async with asyncio.TaskGroup() as group:
                self._group = group
                for effect in self.current_state().effects.open.values():
                    if effect.phase is Phase.EXECUTING and not self._goes_out(effect):
                        self._resume(group, effect)
                while not self._stopping:
                    pause = await self._round()
                    self.beats += 1
                    await wait_within(self._stir, pause)
                    self._stir.clear()
                self._group = None
            self.workers.outcomes.close()

    def _resume(self, group: asyncio.TaskGroup, effect: OpenEffect) -> None:
        """Settle or carry out what an earlier daemon began."""
        with suppress(Exception):  # nobody carries it out any more, or this version can't read it
            self.slots.take(effect.id, self._holder(effect.wish, effect.event.data))
        self.workers.resume(group, effect)

    async def submit(self, effects: Sequence[Effect], gate: Gate) -> Collection[str]:
        """Record the effects of rules, and begin them as soon as they are on disk; returns the keys of those recorded.

        While slots are free, each is followed by its `effect-executing`: one commit, not two. An effect that no
        executor could carry out, or for which there is no room, is reported and left out: a rule's mistake must not fill
        the log. Such effects cost a rule its budget, too: once it is spent by them, no other effect of that rule is judged.
        """
        drafts, now = [], self.clock.now()
        most = self.settings().budget.of_rules
        spent = {
            rule: commit
            for rule, commit in {
                effect.rule: effect.commit for effect in effects if not effect.survival
            }.items()
            if self._refusals.of(rule, now) >= most
        }
        for rule in sorted(spent):
            words = f"its effects are left out for now: {most} a minute were refused"
            self.failed(f"rule:{rule}", words, spent[rule])
        open_ = self.current_state().effects
        room = OpenBound(open_.open.values())
        for number, effect in enumerate(effects):
            if number % SLICE == 0 and not effect.survival:
                await asyncio.sleep(0)
            if not effect.survival and effect.rule in spent:
                continue
            effect, cause = effect.model_copy(update={"because": ""}), effect.because or None
            try:
                check_executable(self.workers.executors, effect)
                # What others than survival wish must be decodable again, by every later start.
                text = encode_checked(effect) if effect.survival else encode(effect)
                if not effect.survival and effect.key not in open_.keys:
                    room.add(text)
                    self.workers.demand_room(text)
            except NotYet:
                continue  # whoever wished for it decides anew at the tick of these news
            except PulseError as error:
                self._refusals.add(effect.rule, effect.key, now)
                self.failed(f"rule:{effect.rule}", f"effect {effect.key!r} left out: {error}", effect.commit)
            else:
                drafts.append(Draft(effect, effect.key, cause, self.journal.new_id(), data=text))
        wishes = gate.unclaimed(drafts)
        if not wishes:
            return ()
        ids = [wish.id for wish in wishes]
        claimed: Sequence[Draft] = ()
        try:
            claimed = self.journal.with_ids(
                self._claim([one for wish in wishes for one in (*gate.replaced_by(wish), wish)])
            )
            await gate.record(claimed, self.journal.append_in_time)
            self.workers.spend_room(wishes)
            self._begin(ids)
        except LogUnavailable:
            if self.current_state().effects.open.keys() >= set(ids):  # by now they are recorded all the same
                self._begin(ids)
                return [wish.subject for wish in wishes]
            # Survival's idempotent effects are held in memory, and begun.
            may_act = self.workers.may_act_unrecorded
            bold = [one.id for one in wishes if isinstance(one.payload, Effect) and may_act(one.payload)]
            self._act_unrecorded(ids, bold, [one for one in claimed if one.id in bold or one.cause in bold])
            raise
        finally:
            self._give_up(ids)
        return [wish.subject for wish in wishes]

    def _claim(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """The drafts, each effect followed by its `effect-executing` while slots are free."""
        if self._group is None or self.current_state().control.paused is not None:
            return drafts
        both: list[Draft] = []
        for draft in drafts:
            both.append(draft)
            wish = draft.payload
            if not isinstance(wish, Effect) or is_outgoing_notice(wish, self.settings()):
                continue
            if self.slots.has_room(who := self._holder(wish, draft.data)) and not self._is_cooling(wish):
                self._reserve(draft.id, who)
                both.append(executing_draft(draft.id, self.journal.new_id()))
        return both

    def _holder(self, wish: Effect, data: str, attempt: Attempt | None = None) -> Holder:
        """Who would hold the slot of the effect with this data."""
        if (who := holder(data)) != SURVIVAL:
            return who
        if attempt:
            return Holder(attempt.policy.slot)
        executor = self.workers.executors.get(wish.action)
        return Holder(executor.policy(parsed_params(executor.params, wish)).slot) if executor else who

    def _is_cooling(self, wish: Effect) -> bool:
        """Whether its key was settled so lately that it may not be begun yet, or who would say so is gone.

        Between the judgement of some effects and that of others another engine may have been loaded.
        """
        if (settled := self.current_state().effects.settled_at.get(wish.key)) is None:
            return False
        try:
            executor = self.workers.executors[wish.action]
            cooldown = executor.policy(parsed_params(executor.params, wish)).cooldown
        except (KeyError, PulseError):
            return True
        return self.clock.now().since(settled) < cooldown * US_PER_SECOND

    def _begin(self, ids: Sequence[str]) -> None:
        """Start those of them that were claimed."""
        open_ = self.current_state().effects.open
        for id_ in ids:  # in their order, so that a simulation is reproducible
            # Without a group it is found as interrupted by the next start.
            if self._group is not None and id_ in self._reserved and (effect := open_.get(id_)):
                self.workers.start(self._group, effect, self._reserved[id_])
        self._unreserve(ids)

    def _act_unrecorded(self, ids: Sequence[str], bold: Sequence[str], drafts: Sequence[Draft]) -> None:
        """Hold the drafts of what may act from memory, and begin it; of the others remember what may yet be recorded."""
        if self.journal.hangs:
            self._late.update(id_ for id_ in ids if id_ in self._reserved and id_ not in bold)
        if drafts:
            self.journal.hold(*drafts)
            self._begin(bold)

    def _reserve(self, id_: str, who: Holder, attempt: Attempt | None = None) -> None:
        self._reserved[id_] = attempt
        self.slots.take(id_, who)

    def _unreserve(self, ids: Sequence[str]) -> None:
        for id_ in ids:
            self._reserved.pop(id_, None)

    def _give_up(self, ids: Sequence[str]) -> None:
        """Free what was reserved for those that have not begun."""
        self._unreserve(ids)
        self.slots.release(id_ for id_ in ids if id_ not in self.workers)

    def _goes_out(self, effect: OpenEffect) -> bool:
        return is_outgoing_notice(effect, self.settings())

    async def _round(self) -> float:
        """Begin and cancel what is due; the seconds until something may be due by itself."""
        pause_us = coalesced(self.settings().daemon.executor_scan_interval_ms / 1000) * US_PER_SECOND
        drafts: list[Draft] = []
        notices: list[OpenEffect] = []
        state, now = self.current_state(), self.clock.now()
        for effect in self._waiting(state, now):
            try:
                why = objection(effect, state, now) or self._refusal(effect)
                if not why and not self._goes_out(effect):
                    pause_us = min(pause_us, self._consider(effect, state, now, drafts) or pause_us)
                    continue
            except Exception as error:  # noqa: BLE001 - what nobody understands of one effect must not hold up the others
                drafts.append(effect_draft(effect, EffectFailed(error=describe_error(error))))
                continue
            if why:
                drafts.append(effect_draft(effect, EffectCancelled(why=why)))
            else:
                notices.append(effect)
        pause_us = min(pause_us, self._gather(notices, state, now, drafts) or pause_us)
        if drafts:
            await self._commit(drafts)
        return pause_us / US_PER_SECOND

    def _refusal(self, effect: OpenEffect) -> str:
        """Why one that was tried before is not tried again: its executor refuses it by now, as after other settings."""
        executor = self.workers.executors.get(effect.wish.action) if effect.attempt else None
        try:
            if executor:
                executor.check(parsed_params(executor.params, effect.wish))
        except NotYet:
            return ""  # it is no refusal, and `_consider` asks again
        except PulseError as error:
            return str(error)
        return ""

    def _waiting(self, state: State, now: Moment) -> Iterator[OpenEffect]:
        """Effects without a task, oldest first, survival's last; those for which no slot is free only if they need none.

        Of survival's, the newest and the oldest begin in turn: who dies beside a crowd does not wait for all of that, nor
        does any of the crowd wait for ever. What was done within the last minute comes after that, or those that keep dying
        would have one that dies once wait. However many wait, each costs a fraction of a microsecond in each round.
        """
        full: set[Holder] = set()  # nothing ends during a round: whoever has no room gets none
        own, again = deque[OpenEffect](), deque[OpenEffect]()
        is_outside = bool(self.settings().notice_urls)
        running, reserved = self.workers.running, self._reserved
        waits = self._waits = {id_: who for id_, who in self._waits.items() if id_ in state.effects.open}
        executing = Phase.EXECUTING  # to look it up for each of them would take a third of the whole
        for id_, effect in state.effects.open.items():
            if id_ in running:
                if effect.cancel:
                    self.workers.cancel(id_)
            elif id_ in reserved:
                continue
            elif is_outside and self._goes_out(effect):
                yield effect
            elif effect.phase is not executing:  # else it was just recorded, or by an earlier daemon
                who = holder(effect.event.data)
                if who == SURVIVAL:
                    was_done = state.effects.pause_left(effect.event.subject, AGAIN_US, now) > 0
                    (again if was_done else own).append(effect)
                elif effect.cancel or self._has_room(who, full) or declaration_of(effect.action).exclusive_by:
                    yield effect  # what keeps others out need not stay open if it may not begin any more
            elif self._group is not None and effect.action in OUTWARD:
                self._resume(self._group, effect)  # it waited for an address, and there is none by now
        while some := own or again:
            effect = some.pop() if self._is_newest_next else some.popleft()
            # Which slots it takes is found out when it is considered for the first time.
            if effect.cancel or effect.id not in waits or self._has_room(waits[effect.id], full):
                yield effect
                self._is_newest_next ^= effect.id in reserved
        self._tell_of_slots(bool(full), now)

    def _has_room(self, who: Holder, full: set[Holder]) -> bool:
        if who not in full and not self.slots.has_room(who):
            full.add(who)
        return who not in full

    def _tell_of_slots(self, held_back: bool, now: Moment) -> None:
        """Say who holds the slots, if effects have been waiting for one for long."""
        if not held_back:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        elif now.since(self._full_since) >= LONG:
            self.failed("executor", f"effects have been waiting for a slot; these are held: {self.slots}", "")
            self._full_since = now

    def _consider(self, effect: OpenEffect, state: State, now: Moment, drafts: list[Draft]) -> int:
        """Draft what the effect needs now; or the microseconds until it is due. Raises whatever is wrong with it."""
        if state.control.paused is not None or self.workers.executors.awaits(effect.wish.action):
            return 0
        attempt = self.workers.attempt(effect)
        cooldown = round(attempt.policy.cooldown * US_PER_SECOND)
        wait = begin_wait(effect, now, cooldown, state.effects.settled_at.get(effect.event.subject))
        who = self._holder(effect.wish, effect.event.data, attempt)
        if not wait and not self.slots.has_room(who):
            self._waits[effect.id] = who
            return 0
        if not wait:
            try:
                attempt.executor.check(attempt.params)
            except NotYet:
                return NEWS_US
            except PulseError:
                pass  # it was accepted, and carrying it out tells what is wrong with it by now
        if not wait and who.is_own and attempt.number > 1:
            if wait := self._retries.wait_us(self.settings().budget.of_rules, now):
                return wait
            self._retries.add(now)
        if not wait:
            self._waits.pop(effect.id, None)
            self._reserve(effect.id, who, attempt)
            drafts.append(executing_draft(effect.id, self.journal.new_id(), attempt.number))
        return wait

    def _gather(self, notices: Sequence[OpenEffect], state: State, now: Moment, drafts: list[Draft]) -> int:
        """Draft the next message of notices that are new, and that of those that failed, unless one is under way.

        Returns the microseconds until there may be one. They are apart since an address that does not answer takes long.
        """
        if state.control.paused is not None:
            return 0
        waits = list[int]()
        for failed in (False, True):
            if any(id_ in self.workers or id_ in self._reserved for id_ in self._messages.get(failed, ())):
                continue
            of_lane = [one for one in notices if is_failed(one) is failed]
            message = next_batch(of_lane, state, self.settings(), now)
            self._messages[failed] = frozenset(effect.id for effect in message.effects)
            self._reserved.update(dict.fromkeys(self._messages[failed]))
            drafts += [
                replace(executing_draft(effect.id, self.journal.new_id(), effect.attempt + 1), moment=now)
                for effect in message.effects
            ]
            waits.append(message.wait_us or 0)
        return min(filter(None, waits), default=0)

    async def _commit(self, drafts: Sequence[Draft]) -> None:
        ids = [draft.subject for draft in drafts if isinstance(draft.payload, EffectExecuting)]
        drafts = self.journal.with_ids(drafts)
        try:
            await self.journal.append_in_time(*drafts)
            self._begin(ids)
        except LogUnavailable:
            open_, may_act = self.current_state().effects.open, self.workers.may_act_unrecorded
            bold = [
                one
                for one in drafts
                if one.subject in ids
                and (effect := open_.get(one.subject))  # else it was replaced meanwhile
                and may_act(effect.wish)
            ]
            self._act_unrecorded(ids, [draft.subject for draft in bold], bold)
        finally:
            self._give_up(ids)
