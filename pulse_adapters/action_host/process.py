"""The daemon's side of an action host's process: sends calls, tracks those under way, and ends it with its whole tree."""

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_json

from pulse_adapters.action_host.replies import MOST_BYTES, CallReply
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.environment import HANDS_MARK, selected_variables
from pulse_adapters.workers.framing import MOST_COMMAS, Message
from pulse_adapters.workers.host_groups import HostGroup
from pulse_adapters.workers.host_process import ENGINE, HostProcess, host_environment, host_program
from pulse_adapters.workers.messages import Limits
from pulse_adapters.workers.users import find_user
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import EngineFault

T = TypeVar("T")

LIMITS = Limits(size=256 * 1024, brackets=20_000, commas=MOST_COMMAS)
GRACE = 0.5
"""Seconds beyond its time that a call is given to end, before everything is ended."""
_STEP, _ASKING = 0.005, 0.1
_NO_GROUP = HostGroup()


class CallLost(Exception):
    """The child ended while a call was under way. fault: why; is_own: whether this call caused it."""

    def __init__(self, fault: EngineFault, is_own: bool) -> None:
        super().__init__(fault.message)
        self.fault, self.is_own = fault, is_own


@dataclass
class PendingCall:
    """A call under way. due: loop time by which it should have ended; until: when it is ended, later if others blocked

    it meanwhile; is_heard: whether a caller still waits for the result.
    """

    whose: str
    seconds: float
    began: float
    due: float
    until: float
    answer: "asyncio.Future[Any]"
    is_heard: bool = True


class ActionChild(HostProcess):
    """A running action host. It is reaped only after its tree is ended, so that no other session gets its pid meanwhile.

    user: that it takes on, and nobody else uses; group: it joins that before it loads anybody's code; sent: the
    newest sample that it knows, by watcher; defined: source places by name in faults; told: whose calls were under way
    when it ended.
    """

    title = "the action host"

    def __init__(
        self, plugins: Mapping[str, str], user: tuple[int, int] | None, group: HostGroup = _NO_GROUP
    ) -> None:
        self._mark, self._user, self._group = secrets.token_hex(8), user, group
        self._calls: dict[int, PendingCall] = {}
        self._frozen_since: float | None = None
        self._last = EngineFault(ENGINE, "")
        self._endings: set[asyncio.Task[None]] = set()
        self.sent: dict[str, int] = {}
        self.defined: dict[str, str] = {}
        self.told: frozenset[str] = frozenset()
        self.gone = asyncio.Event()
        env = host_environment(plugins, **_home(user), **{HANDS_MARK: self._mark})
        program = host_program("pulse_adapters.action_host.child", env, LIMITS)
        super().__init__(program._replace(is_heard=False), keeps_number=True)

    async def call(self, message: Message, whose: str, seconds: float = math.inf) -> CallReply:
        """What a call came to. Raises CallLost; when cancelled, it returns once the call or the child has ended."""
        reply = await self.ask(message, CallReply, whose, seconds)
        if (
            reply.data and len(to_json(reply.data)) > 2 * MOST_BYTES
        ):  # numbers may be spelled at greater length
            self.spoil(f"data of more than {MOST_BYTES:,} bytes")
            raise CallLost(await self.reason_of_end(), False)
        return reply

    async def ask(self, message: Message, kind: type[T], whose: str, seconds: float) -> T:
        """The answer to any request, likewise."""
        if not self.alive:
            raise CallLost(await self.reason_of_end(), False)
        limit = None if math.isinf(seconds) else seconds
        number, answer = self.request({**message, "seconds": limit}, kind)
        due = (began := self._loop.time()) + seconds + GRACE
        call = PendingCall(whose, seconds, began, due, due, answer)
        self._calls[number] = call
        answer.add_done_callback(lambda _: self._calls.pop(number))
        try:
            await self._ended(call)
        except asyncio.CancelledError:
            call.is_heard = False
            await asyncio.shield(self._cancel_call(number, call))
            raise
        reply = answer.result()
        if reply is None:
            fault = await self.reason_of_end()
            raise CallLost(fault, fault.whose == whose)
        return reply

    def _cancel_call(self, number: int, call: PendingCall) -> "asyncio.Task[None]":
        self.send({"do": "cancel", "call": number})
        call.due = call.until = self._loop.time() + GRACE
        ending = self._loop.create_task(self._ended(call), name=f"calling {call.whose} off")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending

    async def _ended(self, call: PendingCall) -> None:
        """Wait until a call is answered, or the child is ended because it is not."""
        while not call.answer.done():
            left = call.until - self._loop.time()
            if self._frozen_since is not None:
                await asyncio.wait([call.answer], timeout=GRACE)
            elif left <= 0:
                await self._overdue(call)
            else:
                await asyncio.wait([call.answer], timeout=None if math.isinf(left) else left)

    async def _overdue(self, call: PendingCall) -> None:
        """Let the call wait for one that blocks it and has time left; else kill the child.

        The mark may be forged, so no call is put off without end: not by one that has no time to end by, and not by those
        that began when this one should have ended already.
        """
        now = self._loop.time()
        blocking = self._calls.get(self.mark())
        if blocking and blocking.began < call.due and now < blocking.due < math.inf:
            call.until = blocking.due + GRACE
            return
        self.ask_where()
        place, until = "", now + _ASKING
        while not call.answer.done() and not place and self._loop.time() < until:
            await asyncio.wait([call.answer], timeout=_STEP)
            place = self.where()
        if not call.answer.done():
            culprit = blocking if blocking and blocking.due < math.inf else call
            words = (
                f"it was not loaded within {culprit.seconds:g} s"
                if culprit.whose == ENGINE
                else f"did not end within {culprit.seconds:g} s, nor when told to; the action host was ended"
            )
            self.blame(words, place, self._blamed(culprit.whose))
            self.kill()

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Inside, neither it nor what it has begun acts, where it has a control group; calls have that much more time."""
        self._frozen_since = self._loop.time()
        try:
            await self._group.freeze()
            yield
        finally:
            await self._group.thaw()
            lost, self._frozen_since = self._loop.time() - self._frozen_since, None
            for call in self._calls.values():
                call.due, call.until = call.due + lost, call.until + lost

    def _blamed(self, whose: str) -> EngineFault:
        return EngineFault(whose, self.defined.get(whose, ""))

    def culprit(self) -> EngineFault:
        return self._last

    def _end_requests(self) -> None:
        pending = [call for call in self._calls.values() if not call.answer.done()]
        if last := self._calls.get(self.mark()):
            self._last = self._blamed(last.whose)
        self.told = frozenset(call.whose for call in pending if call.is_heard)
        super()._end_requests()
        self.gone.set()

    async def shut_down(self, seconds: float) -> None:
        """Let it end by itself, kill it after these seconds, and end what is left of its tree."""
        self.blame(
            f"{self.title} was told to end, since its commit is run no more", culprit=EngineFault(ENGINE, "")
        )
        self.hang_up()
        is_orderly = await self.ended(seconds)
        self.kill()
        await self.clear(is_orderly)

    async def clear(self, is_orderly: bool = False) -> bool:
        """Kill its descendants once it is dead, and release everything; whether nothing is left.

        is_orderly: without a control group, descendants with a session of their own, as services have, may go on.
        """
        if self._group.group:
            is_gone = await self._group.end() and await self.ended(process_tree.PATIENCE)
            self.reap()
            self.close()
            return is_gone
        if self._is_closed:  # it was reaped: its number may be a stranger's by now
            return self.has_ended
        if not await self.ended(process_tree.PATIENCE):  # it sleeps uninterruptibly
            self.close()
            return False
        chosen = [process_tree.in_session(self.pid)]
        if not is_orderly:  # some may have left the session
            chosen.append(process_tree.marked(f"{HANDS_MARK}={self._mark}"))
            chosen += [process_tree.orphans_of_user(self._user[0])] if self._user else []
        try:
            return await asyncio.to_thread(process_tree.kill_processes, process_tree.any_of(*chosen))
        finally:
            self.reap()
            self.close()


def _home(user: tuple[int, int] | None) -> Mapping[str, str]:
    """Where the user is at home."""
    given = selected_variables("HOME", "TMPDIR")
    if user:
        with suppress(PulseError):
            if found := find_user(user[0]):
                given["HOME"] = found.home
    return given
