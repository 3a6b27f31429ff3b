"""The child's own end of the pipes, and how it stands before it does anything else."""

import faulthandler
import mmap
import os
import signal
import sys
from collections.abc import Iterator
from typing import NoReturn

from pulse_adapters.child.frames import LARGEST_REQUEST, Frames, Message, packed
from pulse_adapters.child.given import REPLIES, REQUESTS, SHARED, WHERE

_CHUNK = 256 * 1024


def prepare(all_threads: bool) -> None:
    """Nothing of the parent's is open, and a hang can be asked about; all_threads: in each of them."""
    os.closerange(max(REPLIES, SHARED, WHERE, REQUESTS) + 1, 1 << 20)
    for given in (REPLIES, SHARED, WHERE, REQUESTS):
        os.set_inheritable(given, False)
    sys.dont_write_bytecode = True
    faulthandler.enable(WHERE, all_threads=all_threads)
    faulthandler.register(signal.SIGUSR1, WHERE, all_threads=all_threads)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR1,))


def shared() -> mmap.mmap:
    """The memory in which the daemon reads what is under way, even of a child that hangs."""
    memory = mmap.mmap(SHARED, mmap.PAGESIZE)
    os.close(SHARED)
    return memory


def requests(frames: Frames | None = None) -> Iterator[Message]:
    """What is asked, until the daemon hangs up."""
    frames = frames or listening()
    while raw := heard():
        yield from frames.take(raw)


def heard() -> bytes:
    """The next bytes of requests; none when the daemon has hung up."""
    return os.read(REQUESTS, _CHUNK)


def listening() -> Frames:
    """Frames for what the daemon asks."""
    return Frames(LARGEST_REQUEST)


def send(message: Message) -> None:
    """Say it, whole."""
    say(packed(message))


def say(frame: bytes) -> None:
    """Say what is packed already."""
    while frame:
        frame = frame[os.write(REPLIES, frame) :]


def leave(status: int) -> NoReturn:
    """End here: whatever the authors' code has registered for the exit is not run, and no thread is waited for."""
    os._exit(status)
