"""The file into which a daemon in the background logs: its last lines, and those that come."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LOOK = 0.25
MOST = 1 << 22
"""Bytes from the end that are read at most: the file is rotated at 5 MiB."""


def lines(path: Path, count: int, follow: bool) -> Iterator[str]:
    """The last lines of a log, and then what comes, if that is wanted."""
    place = path.stat().st_size if path.exists() else 0
    yield from last_lines(path, count, upto=place)
    if follow:
        yield from follow_lines(path, place)


def last_lines(path: Path, count: int, after: int = 0, upto: int | None = None) -> list[str]:
    """The last lines of a log, between two places in it (bytes); none if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2) if upto is None else upto
            start = max(after if after <= size else 0, size - MOST)
            file.seek(start)
            content = file.read(size - start)
    except FileNotFoundError:
        return []
    found = content.decode("utf-8", "replace").splitlines()
    return found[len(found) - min(count, len(found)) :]


def follow_lines(path: Path, place: int) -> Iterator[str]:
    """Lines that are written after this place, for ever; goes on in the new file when the log is rotated."""
    file, rest = None, b""
    try:
        while True:
            file = file or _opened(path, place)
            if file and (piece := file.read(MOST)):
                *whole, rest = (rest + piece).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
            elif file and _is_another(path, file):
                file.close()
                file, place = None, 0
            else:
                time.sleep(LOOK)
    finally:
        if file:
            file.close()


def _opened(path: Path, place: int) -> BinaryIO | None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    file.seek(place)
    return file


def _is_another(path: Path, file: BinaryIO) -> bool:
    """Whether the log is another file by now, or was begun anew."""
    try:
        found = path.stat()
    except FileNotFoundError:  # between two files
        return False
    return found.st_ino != os.fstat(file.fileno()).st_ino or found.st_size < file.tell()
