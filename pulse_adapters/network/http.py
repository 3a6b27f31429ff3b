"""Fetches a page: a whole answer within one deadline, or why it did not come."""

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
import time
import urllib.request
from collections.abc import Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Any

import certifi
import httpcore
import httpx

from pulse_adapters.network.probe_failure import ProbeFailed, causes, library_words, seconds_text
from pulse_core.model.pattern import SearchPattern
from pulse_core.model.shortages import shortage
from pulse_core.ports.prober import ProbeRequest

HEADERS = {"User-Agent": "upulse", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
ERRNOS: Mapping[int, tuple[str, str]] = {
    errno.ECONNREFUSED: ("refused", "the connection is refused"),
    errno.ENETUNREACH: ("unreachable", "there is no way to its network"),
    errno.EHOSTUNREACH: ("unreachable", "its host cannot be reached"),
    errno.ENETDOWN: ("unreachable", "the network interface is down"),
    errno.ETIMEDOUT: ("timeout", "the connection timed out"),
    errno.ECONNRESET: ("closed", "it closed the connection without an answer"),
    errno.EPIPE: ("closed", "it closed the connection without an answer"),
}


HOUR = 3_600.0
REDIRECTS = 20
httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = 1_024
"""Bytes that are taken up before others have their turn: what they hold is parsed at once, and may be of a byte each."""
_receive_event: Any = getattr(httpcore.AsyncHTTP11Connection, "_receive_event", None)
"""The library has no setting for what follows, and a later version may have no such method."""


async def _receive_in_turn(connection: httpcore.AsyncHTTP11Connection, timeout: float | None = None) -> Any:
    """Of what TLS has decrypted the next bytes are there at once: nobody else had a turn, nor the deadline."""
    await asyncio.sleep(0)
    return await _receive_event(connection, timeout)


if _receive_event:
    httpcore.AsyncHTTP11Connection._receive_event = _receive_in_turn  # type: ignore[method-assign,assignment]
EXPIRED, NOT_YET = 10, 9
"""Verification codes of OpenSSL. It says only the first fault it finds: of one that signed itself, that it did."""


class FetchProgress:
    """The progress of a fetch, for the message of a timeout."""

    def __init__(self) -> None:
        self.step, self.status, self.received, self.body = "lookup", 0, 0, bytearray()

    async def trace(self, name: str, _info: Mapping[str, object]) -> None:
        """Called by httpx at each step, as `connection.connect_tcp.started`."""
        if not name.endswith(".failed"):  # where it failed is said by the step before
            self.step = name

    def overdue(self, timeout: float) -> ProbeFailed:
        """The failure if nothing more came within the timeout."""
        within = f"within {seconds_text(timeout)}"
        if self.status:
            words = f"it answered {self.status}, but did not come to an end {within} ({self.received} bytes)"
            return ProbeFailed("endless", words, self.status)
        if self.step == "lookup":
            return ProbeFailed("unresolved", f"its name could not be looked up {within}")
        if self.step == "connection.connect_tcp.started":
            return ProbeFailed("timeout", f"no connection came about {within}")
        if self.step == "connection.start_tls.started":
            return ProbeFailed("stalled", f"it took the connection, but agreed on no TLS {within}")
        return ProbeFailed("stalled", f"it took the connection, but did not answer {within}")


LOOKUPS: dict[str, asyncio.Task[str]] = {}
"""Those under way, by name. Each is in a thread, which may block for long: at most one for each name."""


async def check_name(host: str) -> None:
    """Raise ProbeFailed if the system has no address for this name."""
    task = LOOKUPS.get(host)
    if task is None:
        task = LOOKUPS[host] = asyncio.create_task(_look_up(host), name=f"look up {host}")
        task.add_done_callback(lambda _: LOOKUPS.pop(host))
    if words := await asyncio.shield(task):
        raise ProbeFailed("unresolved", words)


async def _look_up(host: str) -> str:
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return f"its name cannot be resolved: {getattr(error, 'strerror', None) or error}"
    return ""


def trusted_context() -> ssl.SSLContext:
    """A TLS context with the certificates that this machine trusts; read again every hour, since they change."""
    return _trust(int(time.monotonic() // HOUR))


@lru_cache(maxsize=1)
def _trust(_hour: int) -> ssl.SSLContext:
    paths = ssl.get_default_verify_paths()
    has_own = paths.cafile or (paths.capath and os.listdir(paths.capath))
    return ssl.create_default_context(cafile=None if has_own else certifi.where())


async def fetch(asked: ProbeRequest, timeout: float) -> tuple[int, str]:
    """The status of a page that was received whole within `timeout` seconds, and its body; raises ProbeFailed."""
    progress = FetchProgress()
    try:
        async with asyncio.timeout(timeout):
            status = await _fetch(asked, progress)
    except TimeoutError as error:
        raise progress.overdue(timeout) from error
    except (httpx.HTTPError, ssl.SSLError, OSError) as error:
        raise probe_failure(error) from error
    if asked.body and not SearchPattern(asked.body).finds(bytes(progress.body)):
        raise ProbeFailed("body", f"it answered {status}, and {asked.body!r} is not in its body", status)
    return status, progress.body.decode(errors="replace")


async def _fetch(asked: ProbeRequest, progress: FetchProgress) -> int:
    url, follows = httpx.URL(asked.target), asked.follows
    proxied = not asked.local and is_proxied(url)
    if not (proxied or is_address(url.host)):
        await check_name(url.host)
    needs_tls = (
        proxied or follows or url.scheme == "https"
    )  # else no certificates are read, which takes 20 ms
    verify = trusted_context() if needs_tls and not asked.local else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if asked.local:
        verify.check_hostname, verify.verify_mode = False, ssl.CERT_NONE
    token = os.environ.get(asked.bearer) if asked.bearer else None
    headers = {**HEADERS, "Authorization": f"Bearer {token}"} if token else HEADERS
    async with httpx.AsyncClient(verify=verify, trust_env=proxied, timeout=None) as client:
        request = client.build_request("GET", url, headers=headers, extensions={"trace": progress.trace})
        for _ in range(REDIRECTS + 1):
            async with aclosing(await client.send(request, stream=True)) as response:
                progress.status = response.status_code
                if follows and (onward := response.next_request):  # what it says besides is not read
                    request = onward
                    continue
                await _receive(response, asked, progress)
                return response.status_code
    raise ProbeFailed("broken", f"it leads on more than {REDIRECTS} times")


async def _receive(response: httpx.Response, asked: ProbeRequest, progress: FetchProgress) -> None:
    """Read an answer to its end, as far as it may be long."""
    async for chunk in response.aiter_raw():
        progress.received += len(chunk)
        if progress.received > asked.largest:
            words = (
                f"it answered {response.status_code}, and did not come to an end after {asked.largest} bytes"
            )
            raise ProbeFailed("endless", words, response.status_code)
        if asked.body or asked.keeps:
            progress.body += chunk
        await asyncio.sleep(0)  # others are asked meanwhile, however small its pieces are


def is_address(host: str) -> bool:
    """Whether this is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_proxied(url: httpx.URL) -> bool:
    """Whether the environment names a proxy for it. This machine itself is always connected to directly."""
    if url.host == "localhost" or (is_address(url.host) and ipaddress.ip_address(url.host).is_loopback):
        return False
    proxies = urllib.request.getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    return bool(named) and not urllib.request.proxy_bypass(url.host, proxies)


def probe_failure(error: BaseException) -> ProbeFailed:
    """Translate an error of httpx, or of a layer below it."""
    for cause in causes(error):
        match cause:
            case ssl.SSLCertVerificationError(verify_code=code) if code == EXPIRED:
                return ProbeFailed("tls-expired", "its certificate has expired")
            case ssl.SSLCertVerificationError(verify_code=code) if code == NOT_YET:
                words = "its certificate is not valid yet; is the clock of this machine right?"
                return ProbeFailed("tls-untrusted", words)
            case ssl.SSLCertVerificationError():
                words = f"its certificate is not to be trusted: {cause.verify_message}"
                return ProbeFailed("tls-untrusted", words)
            case ssl.SSLError():
                return ProbeFailed("tls", f"it does not speak TLS as expected: {cause.reason or cause}")
            case socket.gaierror():
                return ProbeFailed("unresolved", f"its name cannot be resolved: {cause.strerror}")
            case OSError(errno=int(number)) if number in ERRNOS:
                return ProbeFailed(*ERRNOS[number])
    # After these: of a name with several addresses, what one of them says counts, and not that another can't be asked.
    for cause in causes(error):
        if lacking := shortage(cause):
            return ProbeFailed("unasked", lacking)
    if isinstance(error, httpx.RemoteProtocolError) and "disconnected" in str(error):
        return ProbeFailed("closed", "it closed the connection without an answer")
    if isinstance(error, httpx.RemoteProtocolError) and "closed" in str(error):
        return ProbeFailed("closed", "it closed the connection in the middle of its answer")
    if isinstance(error, httpx.NetworkError):
        return ProbeFailed("closed", f"the connection broke: {library_words(error)}")
    return ProbeFailed("broken", f"that is no HTTP: {library_words(error)}")
