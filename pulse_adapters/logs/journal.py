"""Follows a unit's messages through its own `journalctl --follow`, which is restarted if it ends."""

import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from pulse_adapters.logs.rotated_files import subject_name
from pulse_adapters.workers.journal_entry import field_text
from pulse_adapters.workers.syscalls import prctl
from pulse_core.model.backoff import Backoff, Restarts

FIELDS = "MESSAGE,MESSAGE_ID,N_DROPPED,_TRANSPORT"
DROPPED = "a596d6fe7bfa4994828e72309e95d61e"
"""The MESSAGE_ID of journald's own word that it suppressed messages of a unit."""
BACKOFF = Backoff(1.0, 300.0)
LONGEST = 256 * 1024
LINES = 50
"""Lines that are read together, or those of one message: the position is behind a message."""
LONGEST_ENTRY = 2 << 20
"""Bytes that journalctl writes of one message: whoever logs decides how many, up to hundreds of mebibytes."""
_ROOM = 256 * 1024
_DEATH_SIGNAL = 1

Tell = Callable[[str, str], None]


class JournalUnit:
    """One followed unit. dropped: how many messages journald reported as suppressed.

    program: the program to run, with arguments that go before ours.
    """

    def __init__(
        self,
        unit: str,
        user: bool,
        rules: Sequence[int],
        tell: Tell,
        program: Sequence[str] = ("journalctl",),
    ) -> None:
        self.unit, self.user, self.rules, self.tell, self.program = unit, user, tuple(rules), tell, program
        self.name = subject_name(f"user:{unit}" if user else unit)
        self.cursor = ""
        self.since = time.time_ns() // 1000
        self.total = time.time_ns()
        self.dropped = 0
        self.file: int | None = None
        self._restarts = Restarts(BACKOFF, BACKOFF.longest)
        self._pid = 0
        self._said = -1
        self._rest = b""
        self._entries: deque[bytes] = deque()
        self._is_too_long = False

    @property
    def has_more(self) -> bool:
        """Whether more messages have come than were read."""
        return bool(self._entries)

    @property
    def due(self) -> float:
        """When journalctl is started again (monotonic seconds)."""
        return self._restarts.due

    def place(self) -> dict[str, Any]:
        """The reader's position: after a cursor, or at a time (UTC microseconds) if nothing came since."""
        where = {"cursor": self.cursor} if self.cursor else {"since": self.since}
        return {"total": self.total, **where}

    def restore(self, place: Mapping[str, Any]) -> None:
        """Resume at a stored position."""
        try:
            total, since = int(place["total"]), int(place.get("since", self.since))
        except (KeyError, TypeError, ValueError):
            return  # of another version: as if there were none
        self.total, self.since, self.cursor = total, since, str(place.get("cursor", ""))

    def argv(self) -> list[str]:
        """The command line."""
        whose = f"--user-unit={self.unit}" if self.user else f"--unit={self.unit}"
        since = f"--since=@{self.since // 10**6}.{self.since % 10**6:06}"
        begin = f"--after-cursor={self.cursor}" if self.cursor else since
        plain = ["--follow", "--no-tail", "--all", "--output=json", f"--output-fields={FIELDS}"]
        return [*self.program, *plain, whose, begin]

    def start(self) -> int | None:
        """Start journalctl, which ends with this process. Returns the descriptor that becomes readable; None if it can't be
        started now, which is tried again."""
        try:
            self.file = self._begin()
        except OSError as error:  # there are no more processes, or descriptors
            self._restarts.failed(time.monotonic())
            self.tell(self.name, f"journalctl can't be started ({error.strerror}), which is tried again")
            return None
        self._rest, self._is_too_long = b"", False
        self._entries.clear()
        self._restarts.started(time.monotonic())
        return self.file

    def _begin(self) -> int:
        argv, environment = self.argv(), {**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"}
        with ExitStack() as ours, ExitStack() as theirs:
            pipe, out = os.pipe2(os.O_CLOEXEC)
            ours.callback(os.close, pipe)
            theirs.callback(os.close, out)
            ours.callback(os.close, said := os.memfd_create("journalctl", os.MFD_CLOEXEC))
            if not (pid := os.fork()):
                _exec_journalctl(argv, environment, out, said)
            ours.pop_all()
        os.set_blocking(pipe, False)
        self._pid, self._said = pid, said
        return pipe

    def read(self) -> bytes:
        """The lines of the next messages; empty if there are none now, or if journalctl has ended."""
        if not self._entries:
            self._receive()
        lines = b""
        while self._entries and lines.count(b"\n") < LINES:
            lines += self._lines(self._entries.popleft())
        return lines

    def _receive(self) -> None:
        assert self.file is not None
        try:
            raw = os.read(self.file, _ROOM)
        except BlockingIOError:
            return
        if not raw:
            self._ended()
            return
        *entries, self._rest = (self._rest + raw).split(b"\n")
        if entries and self._is_too_long:
            del entries[0]  # its end
            self._is_too_long = False
        if len(self._rest) > LONGEST_ENTRY:
            self._rest, self._is_too_long = b"", True
            self.tell(self.name, f"a message of more than {LONGEST_ENTRY >> 20} MiB was passed over")
        self._entries.extend(filter(None, entries))

    def _lines(self, entry: bytes) -> bytes:
        """The lines of one message, each with its newline; journald's own reports of suppressed messages are counted."""
        try:
            fields = json.loads(entry)
        except ValueError:
            return b""  # a hint for people, no message
        self.cursor, self.total = str(fields.get("__CURSOR", self.cursor)), self.total + 1
        # Who logs gives any MESSAGE_ID; the transport is what journald says itself.
        if fields.get("MESSAGE_ID") == DROPPED and fields.get("_TRANSPORT") == "driver":
            number = str(fields.get("N_DROPPED", ""))
            self.dropped += int(number) if number.isdecimal() else 1
            advice = "see RateLimitBurst= in journald.conf(5)"
            self.tell(self.name, f"journald suppressed messages of it, and nobody can read them; {advice}")
            return b""
        text = field_text(fields.get("MESSAGE"))[:LONGEST]
        return b"".join(line + b"\n" for line in text.split(b"\n") if line)

    def report_errors(self) -> None:
        """Report journalctl's error output."""
        if self.file is not None and (words := self._words()):
            os.ftruncate(self._said, 0)
            self.tell(self.name, f"journalctl says: {words}")

    def _words(self) -> str:
        text = os.pread(self._said, 2_000, 0).decode("utf-8", "replace")
        return " ".join(text.replace("\0", " ").split())[-500:]

    def _ended(self) -> None:
        _, status = os.waitpid(self._pid, 0)
        words, code = self._words(), os.waitstatus_to_exitcode(status)
        self.close()
        self._restarts.ended(time.monotonic())
        how = f"status {code}" if code >= 0 else f"signal {-code}"
        self.tell(self.name, f"journalctl ended ({how}) and is begun again{f': {words}' if words else ''}")

    def close(self) -> None:
        """Close the pipe; journalctl ends by SIGPIPE."""
        if self.file is not None:
            os.close(self.file)
            os.close(self._said)
        self.file = None


def _exec_journalctl(argv: Sequence[str], environment: Mapping[str, str], out: int, said: int) -> None:
    """In the child: exec journalctl, killed when the parent ends. Never returns."""
    try:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(said, 2)
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        os.write(said, f"{argv[0]} cannot be run: {error.strerror}; is it installed?".encode())
    finally:
        os._exit(127)
