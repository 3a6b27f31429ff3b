"""The worker's own end of the pipes. Only what every worker needs is imported here: several live as long as the daemon.

A worker calls `begin` before all else. Its requests end when the daemon does, however that ends: then it ends, too.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from pulse_adapters.workers.descriptors import FIRST_OTHER, REPLIES, REQUESTS
from pulse_adapters.workers.framing import LARGEST_REQUEST, Frames, Message, encode
from pulse_core.model.errors import PulseError

_CHUNK = 64 * 1024
MEMORY = 256 << 20
"""Bytes of memory that a worker may take which speaks with others outside, who decide how much they say."""
_STACK = 1 << 20


def begin(nice: int = 0, memory: int = 0) -> None:
    """Have nothing of the daemon's open, hand none of the pipes on, and give way to others by so much.

    memory: bytes beyond what it has now, if they are limited.
    """
    os.closerange(FIRST_OTHER, 1 << 20)
    for given in (REPLIES, REQUESTS):
        os.set_inheritable(given, False)
    if nice:
        os.nice(nice)
    if memory:
        import threading  # which most workers don't need

        threading.stack_size(_STACK)  # all of a stack counts, and one of 8 MiB is usual
        limit_memory(memory)


def limit_memory(memory: int) -> None:
    """Allow this process so many bytes beyond what it has, and no core dump. Raises OSError.

    Not RLIMIT_AS: programs that it starts inherit it, and some reserve much that they never use.
    """
    with open("/proc/self/statm") as told:
        data = int(told.read().split()[5]) * resource.getpagesize()
    for what, most in {resource.RLIMIT_DATA: data + memory, resource.RLIMIT_CORE: 0}.items():
        resource.setrlimit(what, (within_hard_limit(what, most),) * 2)


def within_hard_limit(what: int, most: int) -> int:
    """As much of a resource as may still be had."""
    hard = resource.getrlimit(what)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def join_group(path: str | None) -> None:
    """Move this process into a control group, if there is one, before it loads anybody's code. Raises OSError."""
    if path:
        with open(f"{path}/cgroup.procs", "w") as members:
            members.write("0")


def requests() -> Iterator[Message]:
    """The requests, until the daemon closes the pipe."""
    frames = Frames(LARGEST_REQUEST)
    while raw := receive_bytes():
        yield from map(json.loads, frames.take(raw))


def receive_bytes() -> bytes:
    """The next bytes of requests; none when the daemon has hung up."""
    return os.read(REQUESTS, _CHUNK)


def send(message: Mapping[str, Any]) -> None:
    """Send a whole message; several threads may send at a time if theirs take no more than 4 KiB."""
    write(encode(message))


def write(frame: bytes) -> None:
    """Send a message that is already encoded."""
    while frame:
        frame = frame[os.write(REPLIES, frame) :]


def answer_once(work: Callable[[Message], Mapping[str, Any]], nice: int = 0) -> NoReturn:
    """Handle the one request, answer with its result or with the message of a PulseError, and exit."""
    begin(nice)
    for request in requests():
        try:
            reply: Mapping[str, Any] = {"answer": work(request)}
        except PulseError as error:
            reply = {"error": str(error), "kind": type(error).__name__}
        with suppress(BrokenPipeError):  # nobody waits for it any more
            send(reply)
        break
    exit_at_once(0)


def exit_at_once(status: int) -> NoReturn:
    """Exit at once, without exit handlers, and without waiting for threads."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)
