"""One life of a child: sends calls, tracks those under way, and records why it ended."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from pulse_adapters.action_host.process import ActionProcess
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.source_locations import Places, with_place
from pulse_core.ports import EngineFault

GRACE = 0.5
"""Seconds beyond its time that a call is given to end, before everything is ended."""
ENGINE = "engine"
_STEP, _ASKING, _LAST = 0.005, 0.1, 0.3


class CallLost(Exception):
    """The child ended while a call was under way. fault: why; is_own: whether this call caused it."""

    def __init__(self, fault: EngineFault, is_own: bool) -> None:
        super().__init__(fault.message)
        self.fault, self.is_own = fault, is_own


@dataclass
class PendingCall:
    """A call under way. until: loop time; is_heard: whether a caller still waits for the result."""

    whose: str
    seconds: float
    until: float
    answer: "asyncio.Future[Message | None]"
    is_heard: bool = True


class ChildSession:
    """One child. sent: the newest sample that the child knows, by watcher; defined: source places by name in faults."""

    def __init__(self, env: Mapping[str, str], mark: str, places: Places, uid: int | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, PendingCall] = {}
        self._number = 0
        self._fault: EngineFault | None = None
        self._whose = ENGINE
        self._endings: set[asyncio.Task[None]] = set()
        self.places = places
        self.sent: dict[str, int] = {}
        self.defined: Mapping[str, str] = {}
        self.gone = asyncio.Event()
        self.told: frozenset[str] = frozenset()
        self.idle = asyncio.Event()
        self.idle.set()
        self.process = ActionProcess(env, mark, uid, self._said, self._gone)

    async def ask(self, message: Message, whose: str, seconds: float = math.inf) -> Message:
        """The answer. Raises CallLost; when cancelled, it returns once the call or the child has ended."""
        if self.gone.is_set():
            raise CallLost(await self.reason_of_end(), False)
        self._number += 1
        number, answer = self._number, self._loop.create_future()
        call = self._open[number] = PendingCall(whose, seconds, self._loop.time() + seconds + GRACE, answer)
        self._count()
        self.process.send({**message, "id": number, "seconds": None if math.isinf(seconds) else seconds})
        try:
            return await self._answered(call)
        except asyncio.CancelledError:
            call.is_heard = False
            await asyncio.shield(self._cancel_call(number, call))
            raise

    def _cancel_call(self, number: int, call: PendingCall) -> "asyncio.Task[None]":
        self.process.send({"do": "cancel", "call": number})
        call.until = self._loop.time() + GRACE
        ending = self._loop.create_task(self._ended(call), name=f"calling {call.whose} off")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending

    async def _ended(self, call: PendingCall) -> None:
        try:
            await self._answered(call)
        except CallLost:
            return

    async def _answered(self, call: PendingCall) -> Message:
        while not call.answer.done():
            left = call.until - self._loop.time()
            if left <= 0:
                await self._overdue(call)
            else:
                await asyncio.wait([call.answer], timeout=None if math.isinf(left) else left)
        if (answer := call.answer.result()) is None:
            fault = await self.reason_of_end()
            raise CallLost(fault, fault.whose == call.whose)
        return answer

    async def _overdue(self, call: PendingCall) -> None:
        """Let the call wait for one that blocks it and has time left; else kill the child."""
        now = self._loop.time()
        blocking = self._open.get(self.process.mark())
        if blocking and blocking is not call and blocking.until > now:
            call.until = blocking.until + GRACE
            return
        self.process.ask_where()
        place, until = "", now + _ASKING
        while not call.answer.done() and not place and self._loop.time() < until:
            await asyncio.wait([call.answer], timeout=_STEP)
            place = self.places.of_dump(self.process.where())
        if not call.answer.done():
            culprit = blocking or call
            self._record_fault(EngineFault(culprit.whose, with_place(_overran_message(culprit), place)))
            self.process.kill()

    def _said(self, message: Message) -> None:
        number = message.get("id")
        call = self._open.pop(number, None) if isinstance(number, int) else None
        if call is None:
            self.process.spoil("an answer that nobody asked for")
        elif not call.answer.done():
            call.answer.set_result(message)
        self._count()

    def _count(self) -> None:
        if any(call.whose != ENGINE for call in self._open.values()):
            self.idle.clear()
        else:
            self.idle.set()

    def _gone(self) -> None:
        if last := self._open.get(self.process.mark()):
            self._whose = last.whose
        self.told = frozenset(call.whose for call in self._open.values() if call.is_heard)
        for call in self._open.values():
            if not call.answer.done():
                call.answer.set_result(None)
        self._open.clear()
        self._count()
        self.gone.set()

    def _record_fault(self, fault: EngineFault) -> EngineFault:
        place = self.defined.get(fault.whose, "")
        if not fault.message.endswith(")"):
            fault = fault._replace(message=with_place(fault.message, place))
        self._fault = self._fault or fault
        return self._fault

    async def reason_of_end(self) -> EngineFault:
        """Why the child ended, and whose fault that was."""
        process = self.process
        await asyncio.wait([process.dead], timeout=_LAST)
        if self._fault is None:
            words = (
                f"the action host said {process.fault}"
                if process.fault
                else f"the action host {process.end()}"
            )
            whose = ENGINE if process.fault else self._whose
            self._record_fault(EngineFault(whose, with_place(words, self.places.of_dump(process.where()))))
        return self._record_fault(EngineFault(ENGINE, ""))

    def spoil(self, words: str) -> None:
        """Kill the child, since it sent something invalid."""
        self.process.spoil(words)

    async def close(self, seconds: float) -> None:
        """Let it end by itself, kill it after these seconds, and end what is left of its tree."""
        self._record_fault(EngineFault(ENGINE, "the action host was told to end"))
        self.process.hang_up()
        _, late = await asyncio.wait([self.process.dead], timeout=seconds)
        self.process.kill()
        await self.process.clear(is_orderly=not late)

    async def clear(self) -> bool:
        """End what is left of a dead child's tree; whether nothing is left."""
        return await self.process.clear(is_orderly=False)


def _overran_message(call: PendingCall) -> str:
    if call.whose == ENGINE:
        return f"it was not loaded within {call.seconds:g} s"
    return f"did not end within {call.seconds:g} s, nor when told to; the action host was ended"
