"""Has `requests` read no more of an answer than it may cost: servers answer without end, or with what unpacks to that.

What is sent is sent whole or not at all: where a server moves a POST elsewhere, `requests` would ask there by GET, without
what was to be sent, and take that answer for its own.

A worker whose libraries ask by `requests` calls `bound_answers` before they do.
"""

import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter

LARGEST_ANSWER = 1 << 20
"""Bytes, unpacked, of an answer of which the rest is not read: whether it was accepted is said by its status."""
BODY_S = 10.0
_PIECE = 1_024
_MOVED = (301, 302)
"""Statuses after which `requests` goes on by GET; 303 says that what was sent was taken, 307 and 308 have it sent again."""


class BoundedAdapter(HTTPAdapter):
    """Cuts the content of an answer off that is too long, or takes too long, and ends a POST that is moved."""

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, *rest: Any, **options: Any
    ) -> requests.Response:
        """Send it, and read the content of its answer as far as that is allowed."""
        response = super().send(request, True, *rest, **options)
        if request.method == "POST" and response.status_code in _MOVED:
            response.headers.pop("Location", None)  # so that nobody goes on, and the status is the answer
        if not stream:
            response._content = _content(response)
        return response


def _content(response: requests.Response) -> bytes:
    content, until = bytearray(), time.monotonic() + BODY_S
    for piece in response.iter_content(_PIECE):
        content += piece
        if len(content) > LARGEST_ANSWER or time.monotonic() > until:
            response.close()
            break
    return bytes(content[:LARGEST_ANSWER])


def bound_answers() -> None:
    """Have every session that is made from now on in this process bound its answers."""
    requests.sessions.HTTPAdapter = BoundedAdapter  # type: ignore[attr-defined]  # what sessions make
