"""TLS trust, and what is wrong with a certificate."""

import os
import ssl
import time
from functools import lru_cache

import certifi

from pulse_adapters.network.probe_failure import ProbeFailed
from pulse_adapters.network.validity import server_expiry

HOUR = 3_600.0
EXPIRED, NOT_YET = 10, 9
"""Verification codes of OpenSSL. It says only the first fault it finds: of one that signed itself, that it did."""


def trusted_context() -> ssl.SSLContext:
    """A TLS context with the certificates that this machine trusts; read again every hour, since they change."""
    return _trust(int(time.monotonic() // HOUR))


@lru_cache(maxsize=1)
def _trust(_hour: int) -> ssl.SSLContext:
    paths = ssl.get_default_verify_paths()
    has_own = paths.cafile or (paths.capath and os.listdir(paths.capath))
    return ssl.create_default_context(cafile=None if has_own else certifi.where())


@lru_cache(maxsize=1)
def untrusted_context() -> ssl.SSLContext:
    """A TLS context without certificates, for pages without TLS: reading them takes 20 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def certificate_fault(error: ssl.SSLCertVerificationError, host: str, port: int) -> ProbeFailed:
    """What is wrong with this server's certificate. It connects once more, to see when it expires."""
    last = await server_expiry(host, port)
    expired = last is not None and last < time.time()
    if error.verify_code == EXPIRED or expired:
        when = f" on {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(last))} UTC" if last is not None else ""
        more = "" if error.verify_code == EXPIRED else f" (and: {error.verify_message})"
        return ProbeFailed("tls-expired", f"its certificate has expired{when}{more}")
    if error.verify_code == NOT_YET:
        return ProbeFailed(
            "tls-untrusted", "its certificate is not valid yet; is the clock of this machine right?"
        )
    return ProbeFailed("tls-untrusted", f"its certificate is not to be trusted: {error.verify_message}")
