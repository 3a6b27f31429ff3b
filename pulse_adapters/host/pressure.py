"""Pressure stall information (PSI): how much work waits for CPU, memory or the disk, and triggers on it."""

import asyncio
import os
import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from pulse_adapters.workers.proc import read_proc_file
from pulse_core.model.json_types import Json

RESOURCES = ("cpu", "memory", "io")
# Unprivileged triggers need windows that are multiples of 2 s. Microseconds of stall in two seconds: memory
# that stalls a tenth of the time is about to thrash, disks and CPUs are often busy to a half in good health.
TRIGGERS: Mapping[str, str] = {
    "memory": "some 200000 2000000",
    "io": "some 1000000 2000000",
    "cpu": "some 1000000 2000000",
}
_APART_S = 2.0


def pressure() -> dict[str, Json]:
    """For each resource the share of the last 10 s in which `some` or all (`full`) work was stalled, 0 to 1."""
    said = ((name, read_proc_file(f"/proc/pressure/{name}")) for name in RESOURCES)
    return {name: _averages(text) for name, text in said if text}


def _averages(text: bytes) -> dict[str, Json]:
    """`some avg10=1.50 avg60=…` in percent, line by line."""
    fields = (line.split(b" ", 2) for line in text.splitlines())
    return {field[0].decode(): round(float(field[1][6:]) / 100, 4) for field in fields}


class PsiTriggers:
    """Calls back with a resource's name when it comes under pressure, at most once in two seconds.

    asyncio waits for reading and writing only, and the kernel signals pressure as priority data: so each
    trigger sits in an epoll of its own, which itself becomes readable.
    """

    def __init__(self, fired: Callable[[str], None], triggers: Mapping[str, str] = TRIGGERS) -> None:
        self._fired = fired
        self._triggers = triggers
        self._open: list[tuple[int, select.epoll]] = []
        self._last = -_APART_S

    def open(self) -> tuple[str, ...]:
        """Register with the kernel; returns the resources registered (old kernels lack PSI, containers may forbid it)."""
        return tuple(name for name, trigger in self._triggers.items() if self._register(name, trigger))

    def _register(self, name: str, trigger: str) -> bool:
        try:
            file = os.open(f"/proc/pressure/{name}", os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(file, trigger.encode() + b"\0")
        except OSError:
            os.close(file)
            return False
        told = select.epoll()
        told.register(file, select.EPOLLPRI)
        asyncio.get_running_loop().add_reader(told.fileno(), self._told, name, told)
        self._open.append((file, told))
        return True

    def _told(self, name: str, told: select.epoll) -> None:
        # Being asked whether it is readable has consumed the event already: the list may be empty here.
        told.poll(0)
        now = time.monotonic()
        if now - self._last >= _APART_S:
            self._last = now
            self._fired(name)

    def close(self) -> None:
        """Remove the triggers."""
        for file, told in self._open:
            with suppress(RuntimeError):  # the loop may be closed already
                asyncio.get_running_loop().remove_reader(told.fileno())
            told.close()
            os.close(file)
        self._open.clear()
