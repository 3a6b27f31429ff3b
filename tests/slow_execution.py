"""A program whose execution does not get on: a page that it begins with comes from a server that does not answer."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.dead_mount import dead

_SERVER = """
import os, struct, sys
ASKED, ANSWER, PART = struct.Struct("<IIQQ16x"), struct.Struct("<IiQ"), struct.Struct("<IIQQQQQQ")
LOOKUP, FORGET, GETATTR, OPEN, READ, INTERRUPT, BATCH_FORGET, ENOSYS = 1, 2, 3, 14, 15, 36, 42, 38
FAR = 1 << 20   # more than the kernel reads ahead
with open(sys.executable, "rb") as own:
    kind = own.read(20)
program = kind[:16] + struct.pack("<H", 2) + kind[18:]
program += struct.pack("<IQQQIHHHHHH", 1, 1 << 22, 64, 0, 0, 64, 56, 2, 0, 0, 0)
program += PART.pack(1, 5, 0, 1 << 22, 1 << 22, 4096, 4096, 1 << 16)
program += PART.pack(1, 6, FAR, 1 << 23, 1 << 23, 16, 32, 1 << 16)   # the kernel writes zeros behind its 16 bytes

def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100755, FAR + 4096)
    return struct.pack("<6Q10I", node, size, *[0] * 7, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)

while True:
    asked = os.read(0, 1 << 17)
    _, what, number, node = ASKED.unpack_from(asked)
    error, answer = 0, b""
    if what == LOOKUP:
        answer = struct.pack("<4Q2I", 2, 0, 1 << 20, 1 << 20, 0, 0) + attributes(2)
    elif what == GETATTR:
        answer = struct.pack("<Q2I", 1 << 20, 0, 0) + attributes(node)
    elif what == OPEN:
        answer = struct.pack("<Q2I", 0, 0, 0)
    elif what == READ:
        begin, size = struct.unpack_from("<8xQI", asked, ASKED.size)
        if begin + size > FAR:
            continue
        answer = program.ljust(begin + size, bytes(1))[begin : begin + size]
    elif what in (FORGET, INTERRUPT, BATCH_FORGET):
        continue
    else:
        error = -ENOSYS
    os.write(0, ANSWER.pack(ANSWER.size + len(answer), error, number) + answer)
"""


@contextmanager
def being_executed(place: Path, env: dict[str, str]) -> Iterator[int]:
    """The pid of a process with this environment that is being executed all the time. Skips where nobody can mount."""
    with dead(place, reads=True, reader=[sys.executable, "-c", _SERVER]) as fail:
        child = subprocess.Popen([place / "program"], env=env)
        try:
            yield child.pid
        finally:
            fail()  # who waits for an answer ends with it
            child.wait(60)
