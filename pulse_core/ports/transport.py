"""The transport of messages to people."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

Tone = Literal["info", "success", "warning", "failure"]
"""How a service marks a message, by a colour or a sign."""


class OutgoingMessage(NamedTuple):
    """One message to one address (an Apprise URL, with its secrets)."""

    url: str
    title: str
    body: str
    tone: Tone = "warning"


class UnusableAddress(str):
    """Why a message failed, if no other could go to this address either until something is changed on this machine."""


class Transport(Protocol):
    """Delivers messages concurrently; one may take as long as the transport's timeout."""

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        """Deliver; returns for each message, in order, why it failed, or an empty text: an UnusableAddress, if it is that.

        Raises only when it is cancelled, which ends all that it started.
        """
