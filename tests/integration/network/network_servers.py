"""DNS and HTTP servers on loopback that do what a test wants: answer, lie, stall, dribble, hang up."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

CERTIFICATES = Path(__file__).with_name("certificates")
Reply = Callable[[bytes], bytes | None]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def addresses(*texts: str, code: int = dns.rcode.NOERROR) -> Reply:
    """Answer each question with those of these addresses that are of its kind."""

    def reply(packet: bytes) -> bytes:
        question = dns.message.from_wire(packet)
        answer = dns.message.make_response(question)
        answer.set_rcode(dns.rcode.Rcode(code))
        asked = question.question[0]
        kind = asked.rdtype.name
        fitting = [text for text in texts if {4: "A", 6: "AAAA"}[ip_address(text).version] == kind]
        if fitting:
            answer.answer.append(dns.rrset.from_text(asked.name, 60, "IN", kind, *fitting))
        return answer.to_wire()

    return reply


def truncated(packet: bytes) -> bytes:
    """Answer nothing but that the answer is too long for UDP."""
    answer = dns.message.make_response(dns.message.from_wire(packet))
    answer.flags |= dns.flags.TC
    return answer.to_wire()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, reply: Reply, asked: list[bytes]) -> None:
        self.reply, self.asked = reply, asked

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked.append(data)
        if (answer := self.reply(data)) is not None:
            self.transport.sendto(answer, addr)


@asynccontextmanager
async def name_server(
    reply: Reply, by_tcp: Reply | None = None, asked: list[bytes] | None = None
) -> AsyncIterator[str]:
    """A DNS server; its address as the settings spell it."""

    async def over_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        answer = (by_tcp or reply)(await reader.readexactly(length)) or b""
        writer.write(struct.pack("!H", len(answer)) + answer)

    async with page_server(over_tcp) as port:
        loop = asyncio.get_running_loop()
        seen = asked if asked is not None else []
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(reply, seen), local_addr=("127.0.0.1", port)
        )
        try:
            yield f"127.0.0.1#{port}"
        finally:
            transport.close()


@asynccontextmanager
async def page_server(serve: Serve, certificate: str = "") -> AsyncIterator[int]:
    """A server that treats each connection so, over TLS if a certificate is named; its port."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await serve(reader, writer)
                await writer.drain()
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=_tls(certificate))
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.sleep(0)


def _tls(certificate: str) -> ssl.SSLContext | None:
    if not certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{certificate}.pem", CERTIFICATES / f"{certificate}.key")
    return context


def says(*parts: bytes, then: Serve | None = None) -> Serve:
    """Wait for a request, and say these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
        if then:
            await then(reader, writer)

    return serve


async def stalls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing more, and stay."""
    await asyncio.Event().wait()


async def dribbles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say a byte every now and then, for ever."""
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say as much as is taken, for ever."""
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"
