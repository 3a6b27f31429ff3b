"""A directory whose file system never answers, as one of a lost file server; or which fails, once nobody serves it."""

import ctypes
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.workers import file_systems

_IN, _OUT = struct.Struct("<IIQ"), struct.Struct("<IiQ")
_INIT = struct.Struct("<IIIIHHIIHH7I")
_PATIENCE_S = 2.0
"""The usual one, for a test that waits for it to be over: `conftest` has given all others more."""


@contextmanager
def dead(
    place: Path, *, reads: bool = False, reader: Sequence[str] = ("cat",)
) -> Iterator[Callable[[], None]]:
    """The directory does not answer inside; what is given back makes it fail instead. Skips where nobody can mount.

    reads: whether its server takes each question, so that no signal ends who waits for the answer; reader: what
    takes them from its stdin, and may answer there.
    """
    try:
        server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    served, readers = [server], list[subprocess.Popen[bytes]]()

    def fail() -> None:
        while readers:
            (reader := readers.pop()).kill()
            reader.wait(60)
        while served:
            os.close(served.pop())

    options = f"fd={server},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options.encode()):
        fail()
        pytest.skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        asked = _IN.unpack_from(os.read(server, 1 << 17))[2]
        answer = _INIT.pack(7, 31, 1 << 16, 0, 12, 10, 1 << 16, 1, 256, 0, *(7 * [0]))
        os.write(server, _OUT.pack(_OUT.size + len(answer), 0, asked) + answer)
        if reads:
            readers.append(subprocess.Popen(reader, stdin=server, stdout=subprocess.DEVNULL))
        usual, file_systems.PATIENCE_S = file_systems.PATIENCE_S, _PATIENCE_S
        try:
            yield fail
        finally:
            file_systems.PATIENCE_S = usual
    finally:
        fail()
        subprocess.run(["umount", "-l", str(place)], check=True, timeout=60)
