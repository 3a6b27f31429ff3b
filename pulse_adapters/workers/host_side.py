"""The worker's side for hosts of authors' code, which may hang: a stack dump can be requested."""

import faulthandler
import mmap
import os
import signal
import sys
from collections.abc import Iterator

from pydantic_core import from_json

from pulse_adapters.workers import child_side
from pulse_adapters.workers.descriptors import SHARED, WHERE
from pulse_adapters.workers.framing import Frames, Message
from pulse_adapters.workers.host_messages import encode


def begin(all_threads: bool) -> None:
    """As every worker; besides, a hang can be asked about; all_threads: in each of them."""
    child_side.begin()
    for given in (SHARED, WHERE):
        os.set_inheritable(given, False)
    sys.dont_write_bytecode = True
    faulthandler.enable(WHERE, all_threads=all_threads)
    faulthandler.register(signal.SIGUSR1, WHERE, all_threads=all_threads)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR1,))


def shared() -> mmap.mmap:
    """The shared memory in which the daemon reads what runs, even if the child hangs."""
    memory = mmap.mmap(SHARED, mmap.PAGESIZE)
    os.close(SHARED)
    return memory


def requests(frames: Frames) -> Iterator[Message]:
    """The requests, until the daemon closes the pipe."""
    while raw := child_side.receive_bytes():
        yield from map(from_json, frames.take(raw))


def send(message: Message) -> None:
    """Send a whole message."""
    child_side.write(encode(message))
