"""Probes of DNS names and web pages."""

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from asyncio import Future


class Trouble(StrEnum):
    """Why a target did not answer as it should; the values stand in samples.

    Of a name: NXDOMAIN, NO_ADDRESS, SERVFAIL, LIE. Of a page: UNRESOLVED, CLOSED, STALLED, ENDLESS, the three
    of TLS, STATUS, BODY. Of both: TIMEOUT (nothing came back), REFUSED, UNREACHABLE, BROKEN. UNASKED says nothing
    about the target: the probe could not be sent.
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
    BODY = "body"
    UNASKED = "unasked"


class ProbeRequest(NamedTuple):
    """A name to resolve, or a URL to fetch, within a timeout in microseconds.

    servers: the DNS servers for a name, as `127.0.0.1` or `127.0.0.1#5353`; none: the system's; follows: redirects;
    local: of a process on this machine, without a proxy, and whoever signed its certificate; largest: bytes of a page,
    of which more is taken for one that never ends; body: a pattern that its body must hold; keeps: its body is wanted;
    bearer: the environment variable with the token that it is asked with.
    """

    about: Literal["dns", "http"]
    target: str
    timeout_us: int
    servers: tuple[str, ...] = ()
    follows: bool = False
    local: bool = False
    largest: int = 1 << 20
    body: str = ""
    keeps: bool = False
    bearer: str = ""


class ProbeResult(NamedTuple):
    """The result of a probe: no trouble if the answer was complete, whatever it says.

    detail: words about the trouble; took_ms: until the answer was whole, or given up; status: of a page;
    addresses: of a name; body: of a page, if it was wanted.
    """

    trouble: Trouble | None = None
    detail: str = ""
    took_ms: float = 0.0
    status: int | None = None
    addresses: tuple[str, ...] = ()
    body: str = ""


class Prober(Protocol):
    """Sends probes. Many may be under way at the same time."""

    def ask(self, question: ProbeRequest) -> "Future[ProbeResult]":
        """A future with the answer, done soon after the probe's timeout at the latest. It never holds an exception."""
