"""The daemon's side of asking the network: a child that is started when there is something to ask."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.messages import CutTo, Seq, decode
from pulse_adapters.workers.worker import Worker, module_program
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports import ProbeRequest, ProbeResult, Trouble

MARGIN_S = 5.0
"""Seconds beyond its timeout after which a question is given up, and the child with it: that hangs. Its start, of
half a second on a quiet machine, is part of that."""

IDLE_S = 900.0
"""Seconds without a question after which the child is ended."""

TRIES = 2
"""How often a question is put to a child that dies of it, or by chance."""


PROBE = "pulse_adapters.network.probe"


class _Reply(NamedTuple):
    """What the child answers to the question of this number."""

    id: Seq
    took_ms: float
    trouble: Trouble | None = None
    detail: Annotated[str, CutTo(1_000)] = ""
    status: int | None = None
    addresses: tuple[str, ...] = ()


@dataclass
class _OpenRequest:
    """A question that waits for its answer."""

    question: ProbeRequest
    answer: asyncio.Future[ProbeResult]
    overdue: asyncio.TimerHandle
    tries: int = 0


class ChildProber:
    """Implements `pulse_core.ports.Prober`. Without questions there is no child."""

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
        """Put a question to the child."""
        loop = asyncio.get_running_loop()
        self._number += 1
        patience = question.timeout_us / US_PER_SECOND + MARGIN_S
        overdue = loop.call_later(patience, self._hangs, self._number)
        self._open[self._number] = _OpenRequest(question, loop.create_future(), overdue)
        answer = self._open[self._number].answer
        self._put(self._number)
        self._stay(loop)
        return answer

    def _stay(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._idle:
            self._idle.cancel()
        self._idle = loop.call_later(IDLE_S, self._rest)

    def _rest(self) -> None:
        """Nobody has asked for long."""
        if not self._open:
            self._give_up()

    def _put(self, number: int) -> None:
        entry = self._open[number]
        entry.tries += 1
        try:
            child = self._child or self._born()
        except OSError as error:
            self._settle(number, not_asked(f"the process that asks could not be started: {error.strerror}"))
            return
        child.send(_request(number, entry.question))

    def _born(self) -> Worker:
        child = self._child = Worker(module_program(PROBE), self._said, lambda: self._gone(child))
        self._lives = [*(one for one in self._lives if not one.has_ended), child]
        return child

    def _said(self, message: Message) -> None:
        said = decode(_Reply, message)
        self._settle(
            said.id, ProbeResult(said.trouble, said.detail, said.took_ms, said.status, said.addresses)
        )

    def _settle(self, number: int, answer: ProbeResult) -> None:
        entry = self._open.pop(number, None)
        if entry is None:
            return
        entry.overdue.cancel()
        if not entry.answer.done():
            entry.answer.set_result(answer)

    def _hangs(self, number: int) -> None:
        """The child has its own deadline, and did not keep it."""
        self._settle(number, not_asked("the process that asks hung, and was ended"))
        self._give_up()
        self._again()

    def _gone(self, child: Worker) -> None:
        if self._child is child:
            self._give_up()
            self._again()

    def _again(self) -> None:
        """Put to a new child what the last one has left open."""
        for number in list(self._open):
            if number not in self._open:
                continue
            if self._open[number].tries >= TRIES:
                self._settle(number, not_asked("the process that asks died, and another one after it"))
            else:
                self._put(number)

    def _give_up(self) -> None:
        child, self._child = self._child, None
        if child:
            child.dismiss()

    def close(self) -> None:
        """End the child; what is open is told that nothing was asked."""
        if self._idle:
            self._idle.cancel()
        for number in list(self._open):
            self._settle(number, not_asked("Pulse ends"))
        self._child = None
        for child in self._lives:
            child.end_now()


def not_asked(words: str) -> ProbeResult:
    """The answer that says nothing about the target."""
    return ProbeResult(Trouble.UNASKED, words)


def _request(number: int, question: ProbeRequest) -> Message:
    return {
        "id": number,
        "about": question.about,
        "target": question.target,
        "timeout": question.timeout_us / US_PER_SECOND,
        "servers": question.servers,
    }
