"""Whoever takes messages to people outside."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class OutgoingMessage(NamedTuple):
    """One message to one address (an Apprise URL, with its secrets). good: it brings good news."""

    url: str
    title: str
    body: str
    good: bool = False


class Transport(Protocol):
    """Takes letters where they go, all at once; a lost one may hang for as long as the courier's patience."""

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        """Why each letter did not arrive, in their order; nothing for one that did.

        Never raises but when it is cancelled, which ends all that it began.
        """
        ...
