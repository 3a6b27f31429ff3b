"""Fetching a page: a whole answer within one deadline, or what kept it from coming."""

import asyncio
import errno
import ipaddress
import socket
import ssl
import urllib.request
from collections.abc import Mapping

import httpx

from pulse_adapters.network import certificates
from pulse_adapters.network.failed import Failed, causes, seconds

LONGEST = 1 << 20
"""Bytes of a page: what sends more is taken for one that never ends."""

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


class FetchProgress:
    """How far a fetch has come, for what is said when its time is over."""

    def __init__(self) -> None:
        self.step, self.status, self.received = "lookup", 0, 0

    async def trace(self, name: str, _info: Mapping[str, object]) -> None:
        """Called by httpx at each step, as `connection.connect_tcp.started`."""
        if not name.endswith(".failed"):  # where it failed is said by the step before
            self.step = name

    def overdue(self, timeout: float) -> Failed:
        """What is wrong when nothing more came within the timeout."""
        within = f"within {seconds(timeout)}"
        if self.status:
            words = f"it answered {self.status}, but did not come to an end {within} ({self.received} bytes)"
            return Failed("endless", words)
        if self.step == "lookup":
            return Failed("unresolved", f"its name could not be looked up {within}")
        if self.step == "connection.connect_tcp.started":
            return Failed("timeout", f"no connection came about {within}")
        if self.step == "connection.start_tls.started":
            return Failed("stalled", f"it took the connection, but agreed on no TLS {within}")
        return Failed("stalled", f"it took the connection, but did not answer {within}")


class Lookups:
    """Looks names up in threads, which may hang for long: for each name at most one of them."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def check(self, host: str) -> None:
        """Raise Failed if the system has no address for this name."""
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.create_task(_looked_up(host), name=f"look up {host}")
            task.add_done_callback(lambda _: self._under_way.pop(host))
        if words := await asyncio.shield(task):
            raise Failed("unresolved", words)


async def _looked_up(host: str) -> str:
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return f"its name cannot be resolved: {getattr(error, 'strerror', None) or error}"
    return ""


LOOKUPS = Lookups()


async def fetch(url: str, timeout: float) -> int:
    """The status of a page that came whole within `timeout` seconds; raises Failed."""
    progress = FetchProgress()
    try:
        async with asyncio.timeout(timeout):
            return await _fetched(httpx.URL(url), progress)
    except TimeoutError as error:
        raise progress.overdue(timeout) from error
    except (httpx.HTTPError, ssl.SSLError, OSError) as error:
        distrust = next((one for one in causes(error) if isinstance(one, ssl.SSLCertVerificationError)), None)
        if distrust is None:
            raise translated(error) from error
        where = httpx.URL(url)
        raise await certificates.fault(distrust, where.host, where.port or 443) from error


async def _fetched(url: httpx.URL, progress: FetchProgress) -> int:
    proxied = is_proxied(url)
    if not (proxied or is_address(url.host)):
        await LOOKUPS.check(url.host)
    verify = certificates.trust() if proxied or url.scheme == "https" else certificates.no_trust()
    async with (
        httpx.AsyncClient(verify=verify, trust_env=proxied, timeout=None) as client,
        client.stream("GET", url, headers=HEADERS, extensions={"trace": progress.trace}) as response,
    ):
        progress.status = response.status_code
        async for chunk in response.aiter_raw():
            progress.received += len(chunk)
            if progress.received > LONGEST:
                words = (
                    f"it answered {response.status_code}, and did not come to an end after {LONGEST} bytes"
                )
                raise Failed("endless", words)
    return response.status_code


def is_address(host: str) -> bool:
    """Whether this is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_proxied(url: httpx.URL) -> bool:
    """Whether the environment names a proxy for it. This machine itself is always asked directly."""
    if url.host == "localhost" or (is_address(url.host) and ipaddress.ip_address(url.host).is_loopback):
        return False
    proxies = urllib.request.getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    return bool(named) and not urllib.request.proxy_bypass(url.host, proxies)


def translated(error: BaseException) -> Failed:
    """What an error of httpx, or of what is below it, says of the target."""
    for cause in causes(error):
        match cause:
            case ssl.SSLError():
                return Failed("tls", f"it does not speak TLS as expected: {cause.reason or cause}")
            case socket.gaierror():
                return Failed("unresolved", f"its name cannot be resolved: {cause.strerror}")
            case OSError(errno=int(number)) if number in ERRNOS:
                return Failed(*ERRNOS[number])
    if isinstance(error, httpx.RemoteProtocolError) and "disconnected" in str(error):
        return Failed("closed", "it closed the connection without an answer")
    if isinstance(error, httpx.RemoteProtocolError) and "closed" in str(error):
        return Failed("closed", "it closed the connection in the middle of its answer")
    if isinstance(error, httpx.NetworkError):
        return Failed("closed", f"the connection broke: {error or type(error).__name__}")
    return Failed("broken", f"that is no HTTP: {error or type(error).__name__}")
