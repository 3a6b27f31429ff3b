"""A courier whose letters arrive in a list, or don't, at the test's word."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pulse_core.ports import OutgoingMessage


@dataclass
class MemoryTransport:
    """Implements `pulse_core.ports.Courier`.

    lost: why letters to a URL do not arrive, by the URL; seconds: how long it takes; arrived: what did, in order;
    asked: how often it was sent out.
    """

    lost: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.5
    arrived: list[OutgoingMessage] = field(default_factory=list)
    asked: int = 0

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        answers = [self.lost.get(letter.url, "") for letter in letters]
        self.arrived += [letter for letter, error in zip(letters, answers, strict=True) if not error]
        return answers
