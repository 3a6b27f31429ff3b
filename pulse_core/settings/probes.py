"""What is asked of a live process to know that it serves: the types of these settings, and how they go together."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pulse_core.model.text import count
from pulse_core.model.urls import host_of, is_address
from pulse_core.settings.groups import HttpUrl, RootedPath, text_check

LONGEST_SOCKET = 107
"""Bytes of a Unix socket's path at most: the kernel has room for no more."""

ProbeKind = Literal["http", "exec", "unix", "tcp"]

_STATUS = re.compile(r"[1-5][0-9][0-9](?:-[1-5][0-9][0-9])?")


def _numeric(url: str) -> str:
    if not is_address(host := host_of(url)):
        raise ValueError(
            f"{host!r} is a name, which a DNS server can answer with anything; write the address that the process"
            " listens on, as 'http://127.0.0.1:18080/health' or 'http://[::1]:18080/health'"
        )
    return url


def _status_ranges(text: str) -> str:
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if not _STATUS.fullmatch(part.strip()) or (high and high < low):
            raise ValueError(f"{text!r} names no statuses; write them as '200', '200-299' or '200, 302'")
    return text


def is_status_in(text: str, status: int) -> bool:
    """Whether a status is one of these, as `200-299, 302` has them."""
    parts = (part.strip().partition("-") for part in text.split(","))
    return any(int(low) <= status <= int(high or low) for low, _, high in parts)


HealthUrl = Annotated[HttpUrl, AfterValidator(_numeric)]
"""A URL with an address in place of a name: no DNS server has a say in what follows."""

Statuses = Annotated[str, AfterValidator(_status_ranges)]
"""Statuses of HTTP, and ranges of them, with commas between."""

HTTP_STATUS: Any = Field("200-299", description="statuses that are a good answer", examples=["200, 302"])
HTTP_BODY: Any = Field(
    None,
    description="regular expression that the answer's body must hold; bodies have at most 64 KiB",
    examples=['"status": *"ok"'],
)
"""The settings `http_status` and `http_body` of whatever asks a page."""

SocketPath = Annotated[
    RootedPath,
    text_check(
        lambda text: len(text.encode()) <= LONGEST_SOCKET,
        f"is too long for a socket's path; the kernel takes at most {LONGEST_SOCKET} bytes",
    ),
]


def evidence_words(failed: int, of: int) -> str:
    """That so many of so many probes failed, in words."""
    if failed < of:
        return f"{failed} of the last {count(of, 'probe')} failed"
    return "1 probe failed" if failed == 1 else f"{failed} probes in a row failed"
