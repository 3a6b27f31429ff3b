"""Resolves a name by querying DNS servers, one after the other, and reports what each of them did."""

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Any, NamedTuple

import dns.asyncquery
import dns.exception
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.resolver

from pulse_adapters.network.probe_failure import ProbeFailed, library_words, seconds_text

PORT = 53
LARGEST = 4_096
"""Bytes of an answer at most: one of 64 KiB takes seconds to parse, and all other probes wait for that."""
ADDRESSES = (dns.rdatatype.A, dns.rdatatype.AAAA)
FINAL = frozenset({"nxdomain", "no-address"})
"""What one server says for all of them: the others are asked only if this one has no answer."""


_parse = dns.message.from_wire


def parse_answer(wire: bytes, **options: Any) -> dns.message.Message:
    """As dnspython parses it; raises FormError if it is too long."""
    if len(wire) > LARGEST:
        words = f"it has {len(wire):,} bytes; at most {LARGEST:,} are read"
        raise dns.exception.FormError(words)  # type: ignore[no-untyped-call]  # as the library does
    return _parse(wire, **options)


dns.message.from_wire = parse_answer  # type: ignore[assignment]  # the library has no setting for it


class DnsServer(NamedTuple):
    """A DNS server."""

    address: str
    port: int = PORT

    def __str__(self) -> str:
        return self.address if self.port == PORT else f"{self.address}#{self.port}"


async def resolve(name: str, servers: Sequence[str], timeout: float) -> list[str]:
    """The addresses of a name (IPv4, or IPv6 if it has no others), within `timeout` seconds; raises ProbeFailed."""
    until = asyncio.get_running_loop().time() + timeout
    asked = [server_of(text) for text in servers] or system_servers()
    try:
        question = dns.name.from_text(name)
    except dns.exception.DNSException as error:
        raise ProbeFailed("unasked", f"{name!r} is no domain name: {error}") from error
    failures: list[ProbeFailed] = []
    for number, server in enumerate(asked):
        left = until - asyncio.get_running_loop().time()
        try:
            return await _addresses(question, server, left / (len(asked) - number))
        except ProbeFailed as failed:
            if failed.trouble in FINAL:
                raise
            failures.append(failed)
    raise ProbeFailed(failures[-1].trouble, "; ".join(failed.words for failed in failures))


def server_of(text: str) -> DnsServer:
    """Parse a server as the settings spell it."""
    address, _, port = text.partition("#")
    try:
        return DnsServer(str(ipaddress.ip_address(address)), int(port or PORT))
    except ValueError as error:
        raise ProbeFailed("unasked", f"{text!r} is no DNS server: {error}") from error


def system_servers() -> list[DnsServer]:
    """The servers of /etc/resolv.conf, as it is now."""
    try:
        servers = [DnsServer(str(one)) for one in dns.resolver.Resolver().nameservers]
    except (dns.resolver.NoResolverConfiguration, OSError, ValueError) as error:
        raise ProbeFailed("unreachable", f"/etc/resolv.conf names no DNS server: {error}") from error
    if not servers:
        raise ProbeFailed("unreachable", "/etc/resolv.conf names no DNS server")
    return servers


async def _addresses(name: dns.name.Name, server: DnsServer, timeout: float) -> list[str]:
    try:
        async with asyncio.timeout(timeout):
            for kind in ADDRESSES:
                if addresses := await _of_kind(name, kind, server):
                    return addresses
    except TimeoutError as error:
        raise ProbeFailed("timeout", f"{server} did not answer within {seconds_text(timeout)}") from error
    raise ProbeFailed("no-address", f"{server} knows the name, and no address of it")


async def _of_kind(name: dns.name.Name, kind: dns.rdatatype.RdataType, server: DnsServer) -> list[str]:
    answer = await _answer(name, kind, server)
    match answer.rcode():
        case dns.rcode.NOERROR:
            return [data.to_text() for rrset in answer.answer if rrset.rdtype == kind for data in rrset]
        case dns.rcode.NXDOMAIN:
            raise ProbeFailed("nxdomain", f"{server} says that there is no such name (NXDOMAIN)")
        case dns.rcode.REFUSED:
            raise ProbeFailed("refused", f"{server} refuses to answer (REFUSED)")
        case code:
            raise ProbeFailed("servfail", f"{server} cannot answer ({dns.rcode.to_text(code)})")


async def _answer(
    name: dns.name.Name, kind: dns.rdatatype.RdataType, server: DnsServer
) -> dns.message.Message:
    question = dns.message.make_query(name, kind)
    try:
        answer, _ = await dns.asyncquery.udp_with_fallback(
            question, server.address, port=server.port, ignore_unexpected=True
        )
    except dns.query.BadResponse as error:
        raise ProbeFailed("broken", f"{server} answered something else than was asked") from error
    except dns.exception.DNSException as error:
        raise ProbeFailed("broken", f"{server} answered what is no DNS: {library_words(error)}") from error
    except (OSError, EOFError) as error:
        raise ProbeFailed("unreachable", f"{server} cannot be asked: {error}") from error
    return answer
