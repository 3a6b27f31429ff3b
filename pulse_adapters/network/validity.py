"""Reads the expiry of a server's certificate, also of an untrusted one, for which the ssl module gives none."""

import asyncio
import calendar
import ssl
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

PATIENCE_S = 2.0
VERSION, UTC_TIME = 0xA0, 0x17
VALIDITY = 3
"""Where it stands in a certificate, after serial number, signature algorithm and issuer (RFC 5280, 4.1)."""


class DerField(NamedTuple):
    """One field of DER: its tag and content."""

    tag: int
    content: bytes


async def server_expiry(host: str, port: int) -> int | None:
    """Seconds since 1970 at which the server's certificate expires, or None if that can't be determined quickly."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(
                host, port, ssl=_any_certificate(), server_hostname=host
            )
            shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.transport.abort()
            return not_after(shown)
    except (OSError, ValueError, LookupError):
        return None


@lru_cache(maxsize=1)
def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def not_after(certificate: bytes) -> int:
    """Seconds since 1970 at which a certificate in DER expires; raises ValueError or LookupError if it is none."""
    whole, *_ = der_fields(certificate)
    signed, *_ = der_fields(whole.content)
    inside = [field for field in der_fields(signed.content) if field.tag != VERSION]
    _, last = der_fields(inside[VALIDITY].content)
    text = last.content.decode()
    if last.tag == UTC_TIME:  # two digits of the year: 1950 to 2049
        text = ("19" if text[:2] >= "50" else "20") + text
    return calendar.timegm(time.strptime(text, "%Y%m%d%H%M%SZ"))


def der_fields(der: bytes) -> Iterator[DerField]:
    """The consecutive fields of DER data."""
    place = 0
    while place < len(der):
        tag, length, start = der[place], der[place + 1], place + 2
        if length & 0x80:  # the length of the length
            start += length & 0x7F
            length = int.from_bytes(der[place + 2 : start])
        yield DerField(tag, der[start : start + length])
        place = start + length
