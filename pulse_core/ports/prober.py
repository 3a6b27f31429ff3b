"""Whoever asks names and pages of the network, and tells what came back."""

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from asyncio import Future


class Trouble(StrEnum):
    """Why a target did not answer as it should; the values stand in samples.

    Of a name: NXDOMAIN, NO_ADDRESS, SERVFAIL, LIE. Of a page: UNRESOLVED, CLOSED, STALLED, ENDLESS, the three
    of TLS, STATUS. Of both: TIMEOUT (nothing came back), REFUSED, UNREACHABLE, BROKEN. UNASKED says nothing
    about the target: the question could not be put.
    """

    NXDOMAIN = "nxdomain"
    NO_ADDRESS = "no-address"
    SERVFAIL = "servfail"
    LIE = "lie"
    UNRESOLVED = "unresolved"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CLOSED = "closed"
    STALLED = "stalled"
    ENDLESS = "endless"
    BROKEN = "broken"
    TLS_EXPIRED = "tls-expired"
    TLS_UNTRUSTED = "tls-untrusted"
    TLS = "tls"
    STATUS = "status"
    UNASKED = "unasked"


class ProbeRequest(NamedTuple):
    """A name to resolve, or a URL to fetch, within so many microseconds all in all.

    servers: whom to ask about a name, as `127.0.0.1` or `127.0.0.1#5353`; none: the system's.
    """

    about: Literal["dns", "http"]
    target: str
    timeout_us: int
    servers: tuple[str, ...] = ()


class ProbeResult(NamedTuple):
    """What came back: no trouble if it was a whole answer, whatever it says.

    detail: words about the trouble; took_ms: until the answer was whole, or given up; status: of a page;
    addresses: of a name.
    """

    trouble: Trouble | None = None
    detail: str = ""
    took_ms: float = 0.0
    status: int | None = None
    addresses: tuple[str, ...] = ()


class Prober(Protocol):
    """Asks. Many questions may be under way at the same time."""

    def ask(self, question: ProbeRequest) -> "Future[ProbeResult]":
        """The answer to come, soon after the question's timeout at the latest. It never holds an exception."""
        ...
