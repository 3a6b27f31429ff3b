"""HOME/shadow.jsonl: what a shadow run did, a line each. It is recorded nowhere else, in particular not in the log."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pulse_adapters.workers.plain_file import open_plain
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import iso

NAME = "shadow.jsonl"
LARGEST = 10 * 1024 * 1024
"""Bytes after which a new file is begun; one older file is kept."""

Line = Mapping[str, Any]


class FileShadowLog:
    """Implements `ShadowLog`; only the shadow writes it.

    After a rotation the new file repeats the shadow's first line.
    """

    def __init__(self, home: Path, largest: int = LARGEST) -> None:
        self.path, self.largest = home / NAME, largest
        self._begun = ""

    def begin(self, **said: Any) -> None:
        """Start the file for a new shadow. Raises PulseError where that can't be written: what follows would pass for the
        last one's."""
        said = {"pid": os.getpid(), **said}
        try:
            self._append("\n" + _line("begun", said))  # the line before may have been broken off
        except OSError as error:
            raise PulseError(f"{self.path} can't be written: {error.strerror}") from error
        self._begun = _line("begun", {**said, "again": True})

    def write(self, what: str, **said: Any) -> None:
        """Append a line; one that the disk does not take is lost, without an error."""
        line = _line(what, said)
        with suppress(OSError):
            self._append(line)

    def _append(self, line: str) -> None:
        if self.path.exists() and self.path.stat().st_size + len(line) > self.largest:
            os.replace(self.path, previous_file(self.path))
            line = self._begun + line
        with open(self.path, "a", encoding="utf-8", opener=_open_private) as file:
            file.write(line)


def shadow_lines(home: Path) -> Iterator[Line]:
    """The lines that the last shadow wrote, as far as they are kept; a garbled one is skipped."""
    found: list[Line] = []
    for path in (previous_file(home / NAME), home / NAME):
        for line in _read(path):
            if line["what"] == "begun" and not line.get("again"):
                found.clear()
            found.append(line)
    yield from found


def previous_file(path: Path) -> Path:
    """The rotated file before this one."""
    return path.with_name(f"{path.name}.1")


def _read(path: Path) -> Iterator[Line]:
    try:
        with open(open_plain(path), encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return
    except OSError as error:
        raise PulseError(f"{path} can't be read: {error.strerror}") from error
    for line in text.splitlines():
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and "what" in said:
                yield said


def _line(what: str, said: Line) -> str:
    return json.dumps({"what": what, "written": iso(time.time_ns() // 1000), **said}) + "\n"


def _open_private(path: str, flags: int) -> int:
    return open_plain(path, flags)
