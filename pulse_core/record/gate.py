"""The gate: checks a draft against its caller's role and the state of the log, then has it recorded."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from pulse_core.model.errors import LogUnavailable, PulseError, Refused, UnknownName
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import Role, describe
from pulse_core.ports import EventLog, Executor
from pulse_core.projections import CurrentState
from pulse_core.projections.processes import RESTART
from pulse_core.record.admission import CHECKS, COMPLETES
from pulse_core.settings import Settings

ONLY_RULES = ("rule", "tick", "samples", "survival")


class RecordedDraft(NamedTuple):
    """The event that stands for a draft, and whether it was there before."""

    event: Event
    existing: bool = False


class Gate:
    """The one way into the log. Keys stay unique even among effects whose commit is still under way."""

    def __init__(
        self,
        log: EventLog,
        facts: CurrentState,
        settings: Callable[[], Settings],
        executors: Mapping[str, Executor],
    ) -> None:
        self.log, self.facts, self.settings, self.executors = log, facts, settings, executors
        self._under_way: dict[str, asyncio.Event] = {}
        self._commits: set[asyncio.Future[Sequence[Event]]] = set()

    async def append(self, role: Role, actor: str, drafts: Sequence[Draft]) -> Sequence[RecordedDraft]:
        """Record what a caller from outside asks for; raises Refused with the reason, recording nothing."""
        for draft in drafts:
            self._check(role, draft)
        await self._others(drafts)
        open_ = [self._open(draft) for draft in drafts]
        if len(drafts) == 1 and open_[0] is not None:
            return [RecordedDraft(open_[0], existing=True)]
        keys = [draft.payload.key for draft in drafts if isinstance(draft.payload, Effect)]
        if doubled := {key for key in keys if keys.count(key) > 1}:
            raise Refused(f"the key {doubled.pop()!r} is wished twice at once; a key has one open effect")
        if taken := [event.subject for event in open_ if event]:
            raise Refused(f"the key {taken[0]!r} is open already; add its effect by itself to be told its id")
        signed = [self._signed(draft, actor) for draft in drafts]
        return [RecordedDraft(event) for event in await self.record(signed)]

    def news(self, drafts: Iterable[Draft]) -> Sequence[Draft]:
        """Of a rule's effects, those whose key is neither open nor on its way to be."""
        keys = self.facts().effects.keys
        fresh = {draft.subject: draft for draft in reversed(tuple(drafts)) if draft.subject not in keys}
        return [draft for key, draft in reversed(fresh.items()) if key not in self._under_way]

    async def record(self, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record together what the daemon itself has to say, keeping keys unique meanwhile."""
        done = asyncio.Event()
        keys = [draft.subject for draft in drafts if isinstance(draft.payload, Effect)]
        self._under_way.update(dict.fromkeys(keys, done))
        # A caller that hangs up does not undo its commit, so the keys are held until that has ended.
        commit = asyncio.ensure_future(self.log.append(*drafts))
        self._commits.add(commit)

        def ended(commit: "asyncio.Future[Sequence[Event]]") -> None:
            self._commits.discard(commit)
            for key in keys:
                self._under_way.pop(key, None)
            done.set()
            if not commit.cancelled():
                commit.exception()  # seen, even if nobody waits for it any more

        commit.add_done_callback(ended)
        return await asyncio.shield(commit)

    async def _others(self, drafts: Sequence[Draft]) -> None:
        """Wait until nobody else is having one of these keys recorded, so that what is open can be told."""
        keys = [draft.payload.key for draft in drafts if isinstance(draft.payload, Effect)]
        while under_way := [self._under_way[key] for key in keys if key in self._under_way]:
            await under_way[0].wait()

    def _signed(self, draft: Draft, actor: str) -> Draft:
        """The draft with what only the writer can say: who asks, and what was left to the settings."""
        complete = COMPLETES.get(draft.payload.kind)
        whole = complete(draft, self.settings()) if complete else draft
        return replace(whole, actor=actor, moment=None)

    def _check(self, role: Role, draft: Draft) -> None:
        payload = draft.payload
        if payload.by > role:
            raise Refused(f"{payload.kind!r} may be recorded by {_who(payload.by)} only, not by {_who(role)}")
        if isinstance(payload, Effect):
            self._check_effect(payload)
        elif check := CHECKS.get(payload.kind):
            check(draft, self.facts(), self.settings())

    def _check_effect(self, effect: Effect) -> None:
        if forged := [name for name in ONLY_RULES if getattr(effect, name)]:
            raise Refused(f"{', '.join(forged)}: only a rule's effect says that; leave it out")
        executor = self.executors.get(effect.action)
        if executor is None:
            raise UnknownName("executor", effect.action, self.executors)
        executor.check(parsed(executor, effect))
        self._check_alone(effect)

    def _check_alone(self, effect: Effect) -> None:
        """Two restarts of one process at a time would leave two of it."""
        if effect.action != RESTART or self.facts().effects.by_key(effect.key):
            return
        for id_, name in self.facts().processes.restarting.items():
            if name == effect.params.get("process"):
                raise Refused(f"a restart of {name!r} is under way already: effect {id_}")

    def _open(self, draft: Draft) -> Event | None:
        if not isinstance(draft.payload, Effect):
            return None
        effect = self.facts().effects.by_key(draft.payload.key)
        if effect and effect.event.seq > self.log.head.seq:
            raise LogUnavailable(
                f"the effect with the key {draft.payload.key!r} is not on disk yet; ask again"
            )
        return effect.event if effect and effect.id != draft.id else None


def parsed(executor: Executor, effect: Effect) -> Any:
    """The effect's params as its executor's model; raises Refused with what is wrong in them."""
    return held_against(executor.params, effect)


def held_against(model: type[BaseModel], effect: Effect) -> Any:
    """The effect's params as this model; raises Refused with what is wrong in them."""
    try:
        return model.model_validate(effect.params)
    except ValidationError as error:
        raise Refused(f"params of {effect.action}: {describe(error)}") from error


def sound(executors: Mapping[str, Executor], effect: Effect) -> str | None:
    """Why a rule's effect can't be carried out by anybody, or None if it can."""
    executor = executors.get(effect.action)
    if executor is None:
        return str(UnknownName("executor", effect.action, executors))
    try:
        executor.check(parsed(executor, effect))
    except PulseError as error:
        return str(error)
    return None


def _who(role: Role) -> str:
    words = {
        Role.DAEMON: "the daemon",
        Role.PERSON: "the owner or root",
        Role.AGENT: "agents",
        Role.NOBODY: "a stranger",
    }
    return words[role]
