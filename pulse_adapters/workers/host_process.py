"""A worker that runs authors' code, which may hang: its stack can be dumped, and it shows which unit runs."""

import asyncio
import fcntl
import os
import signal
import site
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from pulse_adapters.workers.descriptors import MARK, SHARED, WHERE
from pulse_adapters.workers.environment import ROOT, selected_variables
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.host_messages import encode
from pulse_adapters.workers.messages import LIMITS, Limits, decode
from pulse_adapters.workers.source_locations import Places, roots_of_plugins, with_place
from pulse_adapters.workers.worker import Program, Worker, duplicate_descriptor, module_program, pipe
from pulse_core.ports.engine import EngineFault

T = TypeVar("T")

_CHUNK = 256 * 1024
_PAGE = 4096
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_OPTIONS = ("-P", "-s")
"""Of Python: no packages of a user's own either."""
_LAST = 0.3
"""Seconds in which it is known how a host ended that has closed its pipe."""
_WORDS = 200
_KILLED = "ended by SIGKILL"
_WAY_OUT = "if the engine in force has ended it, whose user it has: upulse engine disable, then ask again"
ENGINE = "engine"
"""Whose a fault is that is no unit's."""


def host_program(module: str, env: Mapping[str, str], limits: Limits = LIMITS) -> Program:
    """A host's program."""
    return module_program(module, options=_OPTIONS, env=env)._replace(limits=limits)


def with_way_out(words: str) -> str:
    """Why something of an author's can't be run, and what to do if others of its user don't let it."""
    return f"{words}; {_WAY_OUT}" if _KILLED in words else words


class HostProcess(Worker):
    """A running host. Whatever is wrong with an answer ends it, as `WorkerFault` does with every worker.

    title: the host in the words of a fault; places: where the authors' code lies.
    """

    title = "its host"

    def __init__(self, program: Program, *, keeps_number: bool = False) -> None:
        self.places = Places({})
        self._requests_sent = 0
        self._unanswered: dict[int, tuple[type[Any], asyncio.Future[Any]]] = {}
        self._end_fault: EngineFault | None = None
        super().__init__(program, self._take_answer, self._end_requests, keeps_number=keeps_number)

    def _given(self, theirs: ExitStack) -> Mapping[int, int]:
        self._where, where = pipe(self._ours, theirs)
        self._shared = duplicate_descriptor(
            os.memfd_create("mark", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), self._ours
        )
        os.truncate(self._shared, _PAGE)
        fcntl.fcntl(self._shared, fcntl.F_ADD_SEALS, _SEALS)
        for end in (self._where, where):
            os.set_blocking(end, False)
        return {SHARED: self._shared, WHERE: where}

    def _blocked(self) -> Sequence[signal.Signals]:
        return (signal.SIGUSR1,)  # until it knows what to do about it

    @property
    def alive(self) -> bool:
        """Whether it can answer."""
        return self._is_open

    def send(self, message: Mapping[str, object]) -> None:
        """Send a request, which may hold values of the core."""
        self.write(encode(message))

    def request(self, message: Message, kind: type[T]) -> "tuple[int, asyncio.Future[T | None]]":
        """Send a request that is answered; its number, and the answer: None when there will be none."""
        self._requests_sent += 1
        answer: asyncio.Future[T | None] = self._loop.create_future()
        self._unanswered[self._requests_sent] = kind, answer
        self.send({**message, "id": self._requests_sent})
        return self._requests_sent, answer

    def _take_answer(self, message: Message) -> None:
        number = message.pop("id", None)
        if type(number) is not int or number not in self._unanswered:
            raise WorkerFault("an answer that nobody asked for")
        kind, answer = self._unanswered[number]
        answer.set_result(decode(kind, message))
        del self._unanswered[number]

    def _end_requests(self) -> None:
        for _, answer in self._unanswered.values():
            answer.set_result(None)
        self._unanswered.clear()

    def ask_where(self) -> None:
        """Request a stack dump, which works even if the host hangs."""
        if not (self.has_ended or self._is_closed):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGUSR1)

    def where(self) -> str:
        """The place in the stack dump, and the dump is taken."""
        with suppress(BlockingIOError):
            return self.places.of_dump(os.read(self._where, _CHUNK).decode("utf-8", "replace"))
        return ""

    def mark(self) -> int:
        """The number of the running unit, 0 for none; untrusted, since the host can write anything there."""
        return int.from_bytes(os.pread(self._shared, MARK, 0), "little")

    def culprit(self) -> EngineFault:
        """Whose code is running, and where that is defined."""
        return EngineFault(ENGINE, "")

    def blame(self, words: str, place: str = "", culprit: EngineFault | None = None) -> None:
        """Remember why it ends, and whose fault that is; the first reason counts."""
        # The unit that wrote garbage may have finished meanwhile, and another be under way.
        whose, defined = EngineFault(ENGINE, "") if self.fault else culprit or self.culprit()
        fault = EngineFault(whose, with_place(words, "" if self.fault else place or defined))
        self._end_fault = self._end_fault or fault

    async def reason_of_end(self) -> EngineFault:
        """Why it ended, and whose fault that was."""
        await asyncio.wait([self.dead], timeout=_LAST)
        if self._end_fault is None:
            words = f"{self.title} said {self.fault}" if self.fault else f"{self.title} {self.end()}"
            last = self.last_words()[-_WORDS:]
            self.blame(f"{words}; it printed: {last}" if last else words, self.where())
        assert self._end_fault is not None
        return self._end_fault


def host_environment(plugins: Mapping[str, str], **more: str) -> Mapping[str, str]:
    """All that a host gets: where it finds Pulse and the plugins, little of ours, and these variables."""
    found = (os.path.dirname(path) for path in roots_of_plugins(plugins))
    needed = [path for path in dict.fromkeys((ROOT, *found)) if path not in site.getsitepackages()]
    return {
        **selected_variables("PATH", "LANG"),
        "PYDANTIC_DISABLE_PLUGINS": "__all__",  # looking for some takes longer than all the rest
        **more,
        **({"PYTHONPATH": os.pathsep.join(needed)} if needed else {}),
    }
