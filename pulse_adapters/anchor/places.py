"""A line in a file or in the journal: to add one, and to read all."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.workers.plain_file import NotPlain, open_plain
from pulse_core.model.errors import PulseError

JOURNAL = Path("/run/systemd/journal/socket")
NAME = "pulse-anchor"
JOURNAL_PLACE = "journal"
"""How the journal is named where others are named by their paths."""
PATIENCE = 60.0
_LONGEST = 64 * 1024
_MOST = 2**30
"""Bytes of a file that are read at most: an anchor each minute for ten years is less."""


def add_to_file(path: Path, line: str) -> bool:
    """Add the line at the end of the file, on disk when this returns; an append-only file (`chattr +a`) will do.

    Whether it is the first in it.
    """
    handle = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        is_first = os.fstat(handle).st_size == 0
        os.write(handle, f"{line}\n".encode())
        os.fsync(handle)
        return is_first
    finally:
        os.close(handle)


def lines_of_file(path: Path) -> Iterator[str]:
    """The file's lines; raises PulseError if it can't be read, or is larger than any anchor."""
    try:
        with open(open_plain(path), errors="replace") as file:
            if os.fstat(file.fileno()).st_size > _MOST:
                raise PulseError(f"{path} has more than {_MOST // 2**20} MiB, which no anchor has")
            while line := file.readline(_LONGEST):  # what is longer is no anchor, nor are its pieces
                yield line
    except (FileNotFoundError, NotPlain) as error:
        raise PulseError(f"{path} is not there, or is no file") from error
    except OSError as error:
        raise PulseError(f"{path} can't be read: {error.strerror}") from error


def add_to_journal(line: str, address: Path = JOURNAL) -> None:
    """Add the line to the machine's journal."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        speaker.setblocking(False)  # a journal that is stopped must not stop us
        fields = {"MESSAGE": line, "SYSLOG_IDENTIFIER": NAME, "PRIORITY": "6"}
        speaker.sendto(
            "".join(f"{key}={value}\n" for key, value in fields.items()).encode(), os.fspath(address)
        )


def lines_of_journal(program: str = "journalctl") -> Iterator[str]:
    """The lines that `add_to_journal` added, as far as this user may read them; raises PulseError if none can be."""
    argv = [program, "--quiet", "--no-pager", "--output=cat", f"--identifier={NAME}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except FileNotFoundError as error:
        raise PulseError("the journal can't be read: there is no journalctl") from error
    except subprocess.TimeoutExpired as error:
        raise PulseError(f"the journal can't be read: no answer within {PATIENCE:g} s") from error
    if done.returncode:
        raise PulseError(f"the journal can't be read: {' '.join(done.stderr.split())[:200]}")
    yield from done.stdout.splitlines()
