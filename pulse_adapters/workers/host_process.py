"""A worker that runs authors' code, which may hang: it can dump its stack, and shows which unit runs."""

import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from pulse_adapters.workers.descriptors import MARK, SHARED, WHERE
from pulse_adapters.workers.host_messages import encode
from pulse_adapters.workers.worker import Worker, duplicate_descriptor, pipe

_CHUNK = 256 * 1024
_PAGE = 4096
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
OPTIONS = ("-P", "-s")
"""Of Python: no packages of a user's own either."""


class HostProcess(Worker):
    """A running host."""

    def _given(self, theirs: ExitStack) -> Mapping[int, int]:
        self._where, where = pipe(self._ours, theirs)
        self._shared = duplicate_descriptor(
            os.memfd_create("mark", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), self._ours
        )
        os.truncate(self._shared, _PAGE)
        fcntl.fcntl(self._shared, fcntl.F_ADD_SEALS, _SEALS)
        for end in (self._where, where):
            os.set_blocking(end, False)
        return {SHARED: self._shared, WHERE: where}

    def _blocked(self) -> Sequence[signal.Signals]:
        return (signal.SIGUSR1,)  # until it knows what to do about it

    def send(self, message: Mapping[str, object]) -> None:
        """Send a request, which may hold values of the core."""
        self.write(encode(message))

    def ask_where(self) -> None:
        """Request a stack dump, which works even if the host hangs."""
        if not self.has_ended:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGUSR1)

    def where(self) -> str:
        """The stack dump."""
        with suppress(BlockingIOError):
            return os.read(self._where, _CHUNK).decode("utf-8", "replace")
        return ""

    def mark(self) -> int:
        """The number of the running unit, 0 for none; untrusted, since the host can write anything there."""
        return int.from_bytes(os.pread(self._shared, MARK, 0), "little")
