"""What goes over the socket: one JSON object a line.

Request: `{"v": 1, "op": NAME, …}`. For each, in order: any number of `{"item": {…}}`, then `{"end": true}` or
`{"error": {"type": NAME, "message": WORDS, …}}`. While a request is being worked on and nothing else is said,
`{"alive": true}` is, so that a caller can tell slow from hung. Who closes its sending side gets the answers to what it
asked. Who comes when there is no room is told `Crowded`, and may come again.
A `follow` has no end, and there is room for so many; one that only waits for its answer says `"brief": true`.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import read_json

VERSION = 1
BEAT = 3.0
"""Seconds of silence after which a working daemon says that it is alive."""

END = b'{"end": true}\n'
ALIVE = b'{"alive": true}\n'


class BadRequest(PulseError):
    """A line that is no request."""


class NewerProtocol(PulseError):
    """The caller speaks a newer protocol than this daemon."""


class NotWelcome(PulseError):
    """The caller may not use this socket, or not now."""


class Crowded(NotWelcome):
    """There is no room for another caller now, and will be soon."""


class InternalError(PulseError):
    """The daemon failed at a request; the fault is its own."""


@contextmanager
def short_socket_path(path: Path) -> Iterator[str]:
    """A short name for a socket's path, valid inside: the kernel takes 107 bytes, and homes can lie deep."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def fileless_address(path: Path) -> str:
    """Where a daemon answers that can make no file at this path: a name of the kernel's, after the path's directory."""
    found = os.stat(path.parent)
    return f"\0pulse-{found.st_dev:x}-{found.st_ino:x}"


def request(line: bytes) -> dict[str, Any]:
    """A request read from its line, or BadRequest, or NewerProtocol."""
    try:
        found = read_json(line.decode())
    except ValueError as error:
        raise BadRequest(
            f'no JSON ({error}); a request is one line, as {{"v": 1, "op": "status"}}'
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("op"), str):
        raise BadRequest('no request; one is an object with "v" and "op", as {"v": 1, "op": "status"}')
    _check_version(found.get("v"))
    return found


def has_no_end(asked: Mapping[str, Any]) -> bool:
    """Whether who asks this means to stay and listen."""
    return asked["op"] == "follow" and asked.get("brief") is not True


def item(value: Mapping[str, Any]) -> bytes:
    """One piece of an answer as a line."""
    return json.dumps({"item": value}).encode() + b"\n"


def error_line(error: PulseError) -> bytes:
    """An error as a line: its class by name, its sentence, and what plain values it carries."""
    carried = {name: value for name, value in vars(error).items() if _plain(value)}
    told = {**carried, "type": type(error).__name__, "message": str(error)}
    return json.dumps({"error": told}).encode() + b"\n"


def error_from(told: Mapping[str, Any]) -> PulseError:
    """The error that was told, as the class of that name, or as a PulseError if the name is not known here."""
    kind = next((kind for kind in _family(PulseError) if kind.__name__ == told.get("type")), PulseError)
    error = kind.__new__(kind, told.get("message", "the daemon gave no reason"))
    vars(error).update({name: value for name, value in told.items() if name not in ("type", "message")})
    return error


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadRequest(f'"v" is {version!r}; this daemon speaks version {VERSION}, as {{"v": {VERSION}}}')
    if version > VERSION:
        raise NewerProtocol(
            f"the request speaks protocol {version}, this daemon only {VERSION}: it runs an older Pulse "
            "than the caller; restart it with the new one (upulse daemon restart)"
        )


def _plain(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _family(kind: type[PulseError]) -> Iterator[type[PulseError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)
