"""A transport whose messages arrive in a list, or don't, as a test says."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pulse_core.ports.transport import OutgoingMessage


@dataclass
class MemoryTransport:
    """Implements `pulse_core.ports.Transport`.

    lost: why messages to a URL do not arrive, by the URL; seconds: how long it takes; arrived: what did, in order;
    asked: how often it was sent out.
    """

    lost: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.5
    arrived: list[OutgoingMessage] = field(default_factory=list)
    asked: int = 0

    async def deliver(self, messages: Sequence[OutgoingMessage]) -> Sequence[str]:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        answers = [self.lost.get(message.url, "") for message in messages]
        self.arrived += [message for message, error in zip(messages, answers, strict=True) if not error]
        return answers
