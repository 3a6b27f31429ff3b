"""The process that judges, for the kernel, calls of the hands that name a thread: whether it is one of the daemon's.

It outlives the hands for as long as anything that came out of them, since the kernel refuses what nobody judges.
"""

import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NoReturn

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_ASKED, _ANSWERED = "=QIIiIQ6Q", "=QqiI"
_EPERM, _GO_ON = -1, 1
_NOT_DUMPABLE = 4
_SINCE = (5, 9)
"""The first kernel that tells a judge when there is nobody left to judge."""
_LARGEST = 1 << 31


def possible() -> bool:
    """Whether this kernel lets a process judge calls of others."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return all(part.isdigit() for part in numbers) and tuple(map(int, numbers)) >= _SINCE


@contextmanager
def begun(spared: int, places: Mapping[int, int]) -> Iterator[tuple[int, Callable[[int], None]]]:
    """A warden's number, and how it is entrusted with a listener; it ends if it is not. Raises OSError.

    It forks: there must be no other thread.
    spared: the process whose threads it guards; places: which argument names a thread, by number of the call.
    """
    ours, theirs = socket.socketpair()
    with ours:
        if (child := os.fork()) == 0:
            _leave(theirs, spared, places)
        theirs.close()
        os.waitpid(child, 0)
        if not (pid := ours.recv(16)):
            raise OSError("the warden did not begin")

        def entrust(listener: int) -> None:
            socket.send_fds(ours, [b"!"], [listener])
            os.close(listener)

        yield int(pid), entrust


def _leave(theirs: socket.socket, spared: int, places: Mapping[int, int]) -> NoReturn:
    """Be nobody's child, so that no author's code waits for it, in a session of its own, and a program of its own."""
    try:
        if os.fork() == 0:
            os.setsid()
            theirs.send(str(os.getpid()).encode())
            os.dup2(theirs.fileno(), 0)
            words = (str(spared), json.dumps([*places.items()]))
            os.execv(
                sys.executable, (sys.executable, "-I", "-S", __file__, *words)
            )  # what is inherited takes memory
    finally:
        os._exit(0)


def main(spared: str, places: str) -> None:
    """Serve with the listener that comes by the socket on descriptor 0."""
    os.closerange(3, 1 << 20)
    ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)  # nobody of the same user writes into its memory
    with socket.socket(fileno=0) as ours:
        listeners = socket.recv_fds(ours, 1, 1)[1]
    if listeners:
        judge(listeners[0], int(spared), dict(json.loads(places)))


def judge(listener: int, spared: int, places: Mapping[int, int]) -> None:
    """Answer until nobody is left who could ask."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        if any(event & select.POLLHUP for _, event in poll.poll()):
            return
        with suppress(OSError):  # who asked has ended meanwhile
            asked = bytearray(struct.calcsize(_ASKED))
            fcntl.ioctl(listener, _RECEIVE, asked)
            id_, _, _, number, _, _, *arguments = struct.unpack(_ASKED, asked)
            refused = _names(arguments[places[number]] & 0xFFFFFFFF, spared)
            answer = (id_, 0, _EPERM, 0) if refused else (id_, 0, 0, _GO_ON)
            fcntl.ioctl(listener, _ANSWER, struct.pack(_ANSWERED, *answer))


def _names(number: int, spared: int) -> bool:
    """Whether this is a thread of that process, at this moment."""
    return number < _LARGEST and os.path.lexists(f"/proc/{spared}/task/{number}")


if __name__ == "__main__":
    main(*sys.argv[1:])
