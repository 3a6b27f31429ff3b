"""A network in memory: targets that answer, lie, stall or are cut off, and messages that arrive or don't, as a test says."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from pulse_core.ports.transport import OutgoingMessage


@dataclass
class MemoryTransport:
    """Implements `pulse_core.ports.Transport`.

    lost: why messages to a URL do not arrive, by the URL; seconds: how long it takes; hang: how long a URL takes besides;
    arrived: what did, in order; asked: how often it was sent out.
    """

    lost: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.5
    hang: dict[str, float] = field(default_factory=dict)
    arrived: list[OutgoingMessage] = field(default_factory=list)
    asked: int = 0

    async def deliver(self, messages: Sequence[OutgoingMessage]) -> Sequence[str]:
        self.asked += 1
        await asyncio.sleep(
            self.seconds + max((self.hang.get(one.url, 0.0) for one in messages), default=0.0)
        )
        answers = [self.lost.get(message.url, "") for message in messages]
        self.arrived += [message for message, error in zip(messages, answers, strict=True) if not error]
        return answers


GOOD = {
    "dns": ProbeResult(took_ms=5.0, addresses=("192.0.2.1",)),
    "http": ProbeResult(took_ms=5.0, status=200),
}
SILENT = {
    "dns": ProbeResult(Trouble.TIMEOUT, "it did not answer"),
    "http": ProbeResult(Trouble.STALLED, "it took the connection, but did not answer"),
}


@dataclass
class MemoryProber:
    """Implements `pulse_core.ports.Prober`. Every target answers well unless `says` has another answer for it.

    silent: targets that never answer, so that each question ends with its timeout; asked: every question so far.
    """

    says: dict[str, ProbeResult] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: list[ProbeRequest] = field(default_factory=list)

    def ask(self, question: ProbeRequest) -> asyncio.Future[ProbeResult]:
        self.asked.append(question)
        answer = self.says.get(question.target, GOOD[question.about])
        if question.target in self.silent:
            answer = SILENT[question.about]._replace(took_ms=question.timeout_us / 1000)
        return asyncio.ensure_future(asyncio.sleep(answer.took_ms / 1000, answer))
