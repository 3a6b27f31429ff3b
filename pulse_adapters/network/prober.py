"""The daemon's side of network probes: a child that is started for the first request."""

import asyncio
from dataclasses import dataclass

from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.message_types import Seq
from pulse_adapters.workers.messages import decode
from pulse_adapters.workers.worker import Worker, module_program
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble

MARGIN_S = 5.0
"""Seconds beyond its timeout after which a question is given up, and the child with it: that hangs. Its start, of
half a second on a quiet machine, is part of that."""

IDLE_S = 900.0
"""Seconds without a question after which the child is ended."""

TRIES = 2
"""How often a question is put to a child that dies of it, or by chance."""


PROBE = "pulse_adapters.network.probe"


@dataclass
class _OpenRequest:
    """A request that waits for its answer."""

    question: ProbeRequest
    answer: asyncio.Future[ProbeResult]
    overdue: asyncio.TimerHandle
    tries: int = 0


class ChildProber:
    """Implements `pulse_core.ports.Prober`. Without requests there is no child."""

    def __init__(self) -> None:
        self._child: Worker | None = None
        self._lives: list[Worker] = []
        self._open: dict[int, _OpenRequest] = {}
        self._number = 0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return self._child.pid if self._child else None

    def ask(self, question: ProbeRequest) -> asyncio.Future[ProbeResult]:
        """Send a request to the child."""
        loop = asyncio.get_running_loop()
        self._number += 1
        patience = question.timeout_us / US_PER_SECOND + MARGIN_S
        overdue = loop.call_later(patience, self._on_timeout, self._number)
        self._open[self._number] = _OpenRequest(question, loop.create_future(), overdue)
        answer = self._open[self._number].answer
        self._send(self._number)
        if self._idle:
            self._idle.cancel()
        self._idle = loop.call_later(IDLE_S, self._stop_idle)
        return answer

    def _stop_idle(self) -> None:
        """End the child after a long time without requests."""
        if not self._open:
            self._give_up()

    def _send(self, number: int) -> None:
        entry = self._open[number]
        entry.tries += 1
        try:
            child = self._child or self._start()
        except OSError as error:
            self._settle(number, not_asked(f"the process that asks could not be started: {error.strerror}"))
            return
        child.send({"id": number, **entry.question._asdict()})

    def _start(self) -> Worker:
        child = self._child = Worker(module_program(PROBE), self._on_answer, lambda: self._on_exit(child))
        self._lives = [*(one for one in self._lives if not one.has_ended), child]
        return child

    def _on_answer(self, message: Message) -> None:
        number = decode(Seq, message.pop("id", None))
        self._settle(number, decode(ProbeResult, message))

    def _settle(self, number: int, answer: ProbeResult) -> None:
        entry = self._open.pop(number, None)
        if entry is None:
            return
        entry.overdue.cancel()
        if not entry.answer.done():
            entry.answer.set_result(answer)

    def _on_timeout(self, number: int) -> None:
        """Restart a child that did not keep its own deadline."""
        self._settle(number, not_asked("the process that asks hung, and was ended"))
        self._give_up()
        self._resend()

    def _on_exit(self, child: Worker) -> None:
        if self._child is child:
            self._give_up()
            self._resend()

    def _resend(self) -> None:
        """Send the open requests to a new child."""
        for number in list(self._open):
            if number not in self._open:
                continue
            if self._open[number].tries >= TRIES:
                self._settle(number, not_asked("the process that asks died, and another one after it"))
            else:
                self._send(number)

    def _give_up(self) -> None:
        child, self._child = self._child, None
        if child:
            child.dismiss()

    def close(self) -> None:
        """End the child; open requests get the result that nothing was probed."""
        if self._idle:
            self._idle.cancel()
        for number in list(self._open):
            self._settle(number, not_asked("Pulse ends"))
        self._child = None
        for child in self._lives:
            child.end_now()


def not_asked(words: str) -> ProbeResult:
    """A result that says nothing about the target."""
    return ProbeResult(Trouble.UNASKED, words)
