"""The gate: checks a draft against its caller's role and the state of the log, then has it recorded."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from pulse_core.actions import parsed_params
from pulse_core.capability import Check, RecordedBefore, RefusedOnRecord, Scope
from pulse_core.composition import ADMITS, ALONE, declaration_of
from pulse_core.model.durations import UNITS
from pulse_core.model.errors import LogUnavailable, PulseError, Refused, UnknownName, describe_error
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import (
    ONE_LINE,
    Effect,
    EffectCancelled,
    EffectCancelRequested,
    EventRedacted,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopRequested,
    PromoteRequested,
    RollbackRequested,
)
from pulse_core.model.payload import Role
from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor
from pulse_core.ports.log import EventLog
from pulse_core.projections.effects import OpenEffect, gives_way
from pulse_core.projections.state import CurrentState, State
from pulse_core.settings.settings import Settings


def require_guarded_process(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a subject that is no guarded process."""
    names = [process.name for process in settings.process]
    if draft.subject not in names:
        raise UnknownName("guarded process", draft.subject, names)


def require_open_effect(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a subject that is no open effect."""
    if draft.subject not in state.effects.open:
        raise Refused(f"no open effect {draft.subject!r}; see: upulse effect list")


def refuse_open_effect(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse to redact an effect that somebody still has to read."""
    if draft.subject in state.effects.open:
        raise Refused(f"the effect {draft.subject} is open; cancel it, or wait until it is settled")


REPLACED = "a newer notice of it takes its place"
LONGEST_SUBJECT = 500
LONGEST_STOP_DAYS = 3_650
COMMIT = re.compile(r"(?:[0-9A-Za-z_][0-9A-Za-z_.-]{0,99})?")
"""A commit's id, or a name for one: nothing that a git command would read as an option, or as a path."""


def check_subject(draft: Draft) -> None:
    """Refuse a subject that is no short line; what it must be for the kind, the kind's own check says."""
    if len(draft.subject) > LONGEST_SUBJECT or not re.fullmatch(ONE_LINE, draft.subject):
        raise Refused(
            f"the subject of {draft.payload.kind!r} is no line of at most {LONGEST_SUBJECT} characters"
        )


def check_stop(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a stop of what is no guarded process, or for longer than anybody can mean."""
    require_guarded_process(draft, role, state, settings)
    assert isinstance(draft.payload, ProcessStopRequested)
    if (draft.payload.expires_us or 0) > LONGEST_STOP_DAYS * UNITS["d"]:
        raise Refused(f"a process is stopped for at most {LONGEST_STOP_DAYS:,}d")


def check_commit(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a request for what is no name of a commit, and for the promote of the one that is in force."""
    asked = draft.payload if isinstance(draft.payload, PromoteRequested) else None
    for name in (draft.subject, asked.previous if asked else ""):
        if not COMMIT.fullmatch(name) or (name and not name.strip("0")):
            raise Refused(f"{name[:100]!r} is no commit; give its id")
    if asked and not draft.subject:
        raise Refused("which commit? give its id as the subject")
    if asked and draft.subject == state.engine.commit:
        raise Refused(f"{draft.subject[:12]} is in force already")


CHECKS: Mapping[str, Check] = {
    EventRedacted.kind: refuse_open_effect,
    ProcessStopRequested.kind: check_stop,
    ProcessStartRequested.kind: require_guarded_process,
    ProcessRestartRequested.kind: require_guarded_process,
    PromoteRequested.kind: check_commit,
    RollbackRequested.kind: check_commit,
    EffectCancelRequested.kind: require_open_effect,
}
"""By kind, the check that a draft from outside must pass; capabilities have their own, and other kinds need the
caller's role alone."""


def fill_defaults(draft: Draft, settings: Settings) -> Draft:
    """The draft with what only the writer can fill in: an effect's key as its subject, the expiry of a stop."""
    match draft.payload:
        case Effect(key=key):
            return replace(draft, subject=key, data="")
        case ProcessStopRequested(expires_us=None) as stop:
            payload = stop.model_copy(update={"expires_us": settings.intent.expires})
            return replace(draft, payload=payload, data="")
    return draft


Append = Callable[..., Coroutine[Any, Any, Sequence[Event]]]
RULE_FIELDS = ("rule", "tick", "samples", "survival", "capability", "because", "commit")
ROLE_NAMES = {
    Role.DAEMON: "the daemon",
    Role.PERSON: "the owner or root",
    Role.AGENT: "agents",
    Role.NOBODY: "a stranger",
}


class RecordedDraft(NamedTuple):
    """The event recorded for a draft, and whether it was recorded before."""

    event: Event
    existing: bool = False


class Claim(NamedTuple):
    """What only one open effect may have at a time: a key, or the value of a param that its action declares exclusive.

    is_subject: the subject of a draft that its capability checks against the state, which only one of these may have while
    it is being recorded: so each is checked against what the one before has changed.
    """

    value: str
    action: str = ""
    exclusive_by: str = ""
    is_subject: bool = False

    def __str__(self) -> str:
        if self.is_subject:
            return f"a change of {self.value!r}"
        return f"{self.action} of {self.value!r}" if self.action else f"the key {self.value!r}"


def claims_of(effect: Effect) -> Sequence[Claim]:
    """The claims of this effect."""
    key, name = Claim(effect.key), declaration_of(effect.action).exclusive_by
    return (key, Claim(str(effect.params.get(name, "")), effect.action, name)) if name else (key,)


def all_claims(drafts: Iterable[Draft]) -> Sequence[Claim]:
    """The claims of all effects among these, and of all drafts that a capability checks."""
    found: list[Claim] = []
    for draft in drafts:
        if isinstance(draft.payload, Effect):
            found += claims_of(draft.payload)
        elif draft.payload.kind in ADMITS:
            found.append(Claim(draft.subject, is_subject=True))
            if name := ALONE.get(draft.payload.kind):
                found.append(Claim(f"all {name}", is_subject=True))
    return found


class Gate:
    """The one way into the log, and the one place where effects exclude each other.

    An effect claims its key, and the param that its action declares exclusive (for `restart-process` the process): no
    other effect may have the same claim while it is open or being recorded.
    """

    def __init__(
        self,
        log: EventLog,
        current_state: CurrentState,
        settings: Callable[[], Settings],
        executors: Mapping[str, Executor],
        clock: Clock,
    ) -> None:
        self.clock, self.log, self.current_state, self.settings, self.executors = (
            clock,
            log,
            current_state,
            settings,
            executors,
        )
        self._under_way: dict[Claim, asyncio.Event] = {}
        self._commits: set[asyncio.Future[Sequence[Event]]] = set()

    async def append(
        self, role: Role, actor: str, drafts: Sequence[Draft], scope: Scope | None = None
    ) -> Sequence[RecordedDraft]:
        """Record what a caller from outside asks for; raises Refused with the reason, recording nothing.

        scope: what the caller is bound to.
        """
        try:
            return await self._append(role, actor, drafts, scope)
        except RefusedOnRecord as refused:
            await self.record([Draft(refused.record, refused.subject, actor=actor)])
            raise

    async def _append(
        self, role: Role, actor: str, drafts: Sequence[Draft], scope: Scope | None
    ) -> Sequence[RecordedDraft]:
        asked = drafts
        if scope:
            drafts = [scope.bounded(draft, self.current_state()) for draft in drafts]
        for draft in drafts:
            is_granted = scope is not None and draft.payload.kind in scope.granted
            await self._check(Role.PERSON if is_granted else role, draft)
        wanted = all_claims(drafts)
        while under_way := [self._under_way[claim] for claim in wanted if claim in self._under_way]:
            await under_way[0].wait()  # so that the open effects are known
        state = self.current_state()
        signed = [
            replace(fill_defaults(draft, self.settings()), actor=actor, moment=None) for draft in drafts
        ]
        for draft in drafts:
            if check := ADMITS.get(draft.payload.kind):
                try:
                    check(
                        replace(draft, moment=self.clock.now()), role, self.current_state(), self.settings()
                    )
                except PulseError as refused:
                    if before := await self._before(signed, refused):
                        return before
                    raise
        open_ = [self._open(draft) for draft in drafts]
        if len(drafts) == 1 and open_[0] is not None:
            return [RecordedDraft(open_[0], existing=True)]
        if taken := [event.subject for event in open_ if event]:
            raise Refused(f"the key {taken[0]!r} is open already; add its effect by itself to be told its id")
        for claim, times in Counter(wanted).items():
            if times > 1:
                raise Refused(f"{claim} is wished twice at once; one after the other may have it")
            holder = self._holder(claim)
            if holder and not any(holder.id == one.id or _gives_way(holder, one) for one in drafts):
                raise Refused(f"{claim} is under way already: effect {holder.id}")
        fresh = [one for one in signed if self.replaced_by(one) and not await self._is_recorded(one)]
        if self.current_state() is not state or not self._under_way.keys().isdisjoint(wanted):
            # All was checked against what has changed meanwhile.
            return await self._append(role, actor, asked, scope)
        replaced = [one for draft in fresh for one in self.replaced_by(draft)]
        events = await self.record([*replaced, *signed])
        return [RecordedDraft(event) for event in events[len(replaced) :]]

    async def _before(self, drafts: Sequence[Draft], refused: PulseError) -> Sequence[RecordedDraft]:
        """What was recorded of drafts that are refused only because they were recorded before, as after a lost answer."""
        if all([await self._is_recorded(draft) for draft in drafts]):
            return [RecordedDraft(event, existing=True) for event in await self.log.append(*drafts)]
        if not isinstance(refused, RecordedBefore) or len(drafts) > 1:
            return ()
        batches = [batch async for batch in self.log.since(refused.row - 1, upto=refused.row)]
        return [RecordedDraft(event, existing=True) for batch in batches for event in batch]

    async def _is_recorded(self, draft: Draft) -> bool:
        return bool(draft.id) and await self.log.has(draft.id)

    async def append_own(self, draft: Draft) -> Event:
        """Record what an executor says, as the daemon's own; raises Refused like any other."""
        (recorded,) = await self.append(Role.DAEMON, draft.actor, (draft,))
        return recorded.event

    def unclaimed(self, drafts: Iterable[Draft]) -> Sequence[Draft]:
        """The drafts of a rule whose claims no other effect has, neither an earlier one of these nor one that stays open."""
        fresh, claimed = [], set(self._under_way)
        holder = cache(self._holder)  # all open effects are searched for it
        for draft in drafts:
            mine = all_claims((draft,))
            held_by = filter(None, map(holder, mine))
            if claimed.isdisjoint(mine) and all(_gives_way(one, draft) for one in held_by):
                claimed.update(mine)
                fresh.append(draft)
        return fresh

    def replaced_by(self, draft: Draft) -> Sequence[Draft]:
        """The end of the open effect that gives way to this draft, if there is one; to be recorded before it."""
        before = self.current_state().effects.by_key(draft.subject)
        if before is None or not _gives_way(before, draft):
            return ()
        return (Draft(EffectCancelled(why=REPLACED, replaced=True), before.id, draft.id or None),)

    def _holder(self, claim: Claim) -> OpenEffect | None:
        """The open effect that has this claim."""
        if claim.is_subject:
            return None
        effects = self.current_state().effects
        if not claim.exclusive_by:
            return effects.by_key(claim.value)
        others = (one for one in effects.open.values() if one.action == claim.action)
        return next(
            (one for one in others if str(one.params.get(claim.exclusive_by, "")) == claim.value), None
        )

    async def record(self, drafts: Sequence[Draft], append: Append | None = None) -> Sequence[Event]:
        """Record the daemon's own drafts together, reserving their claims meanwhile; append: how, if not as the log does."""
        done = asyncio.Event()
        claimed = all_claims(drafts)
        self._under_way.update(dict.fromkeys(claimed, done))
        # Cancelling the caller does not undo its commit, so the claims are reserved until that has ended.
        commit = asyncio.ensure_future((append or self.log.append)(*drafts))
        self._commits.add(commit)

        def ended(commit: "asyncio.Future[Sequence[Event]]") -> None:
            self._commits.discard(commit)
            for claim in claimed:
                self._under_way.pop(claim, None)
            done.set()
            if not commit.cancelled():
                commit.exception()  # retrieved, even if nobody awaits it any more

        commit.add_done_callback(ended)
        return await asyncio.shield(commit)

    async def _check(self, role: Role, draft: Draft) -> None:
        payload = draft.payload
        check_subject(draft)
        if payload.by > role:
            raise Refused(
                f"{payload.kind!r} may be recorded by {ROLE_NAMES[payload.by]} only, not by {ROLE_NAMES[role]}"
            )
        if isinstance(payload, Effect):
            if forged := [name for name in RULE_FIELDS if getattr(payload, name)]:
                raise Refused(f"{', '.join(forged)}: only a rule's effect says that; leave it out")
            check_executable(self.executors, payload)
        elif check := CHECKS.get(payload.kind):
            try:
                check(draft, role, self.current_state(), self.settings())
            except PulseError:
                if not await self._is_recorded(draft):  # asked again, after the answer was lost
                    raise

    def _open(self, draft: Draft) -> Event | None:
        if not isinstance(draft.payload, Effect):
            return None
        effect = self.current_state().effects.by_key(draft.payload.key)
        if effect and effect.event.seq > self.log.head.seq:
            raise LogUnavailable(
                f"the effect with the key {draft.payload.key!r} is not on disk yet; ask again"
            )
        return effect.event if effect and effect.id != draft.id and not _gives_way(effect, draft) else None


def _gives_way(before: OpenEffect, draft: Draft) -> bool:
    return isinstance(draft.payload, Effect) and gives_way(before, draft.payload)


def check_executable(executors: Mapping[str, Executor], effect: Effect) -> None:
    """Raise PulseError with the reason if none of the executors can carry out this effect."""
    executor = executors.get(effect.action)
    if executor is None:
        raise UnknownName("executor", effect.action, executors)
    try:
        executor.check(parsed_params(executor.params, effect))
    except PulseError:
        raise
    except Exception as error:  # params that can't be judged are wrong, whatever is wrong with them
        raise Refused(f"params of {effect.action}: {describe_error(error)}") from error
