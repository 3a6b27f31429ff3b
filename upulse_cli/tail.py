"""The daemon's log for people: its last lines, and those that come."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from upulse_cli.moments import local
from upulse_cli.speech import clean

LOOK = 0.25
MOST = 1 << 22
"""Bytes from the end that are read at most: the file is rotated at 5 MiB."""


def spoken(line: str) -> str:
    """A line of JSON as the daemon's log has it, as words; any other line as it is."""
    try:
        told = json.loads(line)
        words = f"{local(told['at'])} {told['message']}"
    except (ValueError, TypeError, KeyError):
        return clean(line)
    loud = told.get("level", "info") not in ("info", "debug")
    trace = f"\n{told['traceback']}" if told.get("traceback") else ""
    return clean(f"{words if not loud else words.replace(' ', ' ' + told['level'].upper() + ' ', 1)}{trace}")


def last_lines(path: Path, count: int, after: int = 0) -> list[str]:
    """The last lines of a log as words, those before byte `after` left out; none if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = max(after if after <= size else 0, size - MOST)
            file.seek(start)
            content = file.read()
    except FileNotFoundError:
        return []
    lines = content.decode("utf-8", "replace").splitlines()
    return [spoken(line) for line in lines[len(lines) - min(count, len(lines)) :]]


def coming_lines(path: Path) -> Iterator[str]:
    """Lines that are written from now on, for ever; goes on in the new file when the log is rotated."""
    place, inode, rest = _end(path)
    while True:
        try:
            found = path.stat()
            if found.st_ino != inode or found.st_size < place:
                place, inode, rest = 0, found.st_ino, b""
            with path.open("rb") as file:
                file.seek(place)
                piece = file.read(MOST)
        except FileNotFoundError:
            piece = b""
        place += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from (spoken(line.decode("utf-8", "replace")) for line in lines)
        if not piece:
            time.sleep(LOOK)


def lines(path: Path, count: int, follow: bool) -> Iterator[str]:
    """The last lines of a log, and then what comes, if that is wanted."""
    yield from last_lines(path, count)
    if follow:
        yield from coming_lines(path)


def journal(user: bool, count: int, follow: bool) -> Iterator[str]:
    """The same from the journal of our unit, the system's or this user's."""
    import subprocess

    from pulse_adapters.systemd import UNIT_NAME
    from pulse_core.model.errors import PulseError

    command = ["journalctl", "--user-unit" if user else "-u", UNIT_NAME, "-o", "cat", "--no-pager"]
    command += ["-n", str(count), *(["--follow"] if follow else [])]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as reader:
            yield from (spoken(line.rstrip("\n")) for line in reader.stdout or ())
    except FileNotFoundError as error:
        raise PulseError("there is no journalctl on this machine") from error
    if reader.returncode:
        raise PulseError(f"journalctl ended with exit {reader.returncode}")


def _end(path: Path) -> tuple[int, int, bytes]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0, b""
    return found.st_size, found.st_ino, b""
