"""Which user of the machine is whose engine's: a name for each home, recorded where no second home can take it.

The record is the settings file by which systemd makes the user again where /etc/passwd is begun anew: it names the home.
A name is given by linking a file that is whole, which fails if somebody was there first.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from pulse_adapters.workers.plain_file import replace_plain
from pulse_adapters.workers.users import find_user
from pulse_core.model.errors import PulseError

SHARED = "pulse-engine"
"""The user that the engines of all homes had before each got one of its own; the beginning of those names, too."""
SYSUSERS = Path("/etc/sysusers.d")
TOLD = "engine of Pulse"
_WRITTEN = "# Written by upulse"
_ID = 8


class NoAccount(PulseError):
    """The user that is meant can't be the engine's."""


def recorded_name(home: Path) -> str | None:
    """The user that was recorded for this home's engine."""
    here = _first_line(home)
    return next((file.stem for file in sorted(_records()) if _first_line_of(file) == here), None)


def free_name(home: Path) -> str:
    """The user that this home's engine would get now: no other home's, and none that this machine knows."""
    return next(name for name in _names(home) if not (_record(name).exists() or find_user(name)))


def record_name(home: Path) -> str:
    """The user of this home's engine, recorded now if it was not before. Raises NoAccount."""
    while (name := recorded_name(home)) is None:
        write_record(free_name(home), _first_line(home))
    return name


def write_record(name: str, first: str = f"{_WRITTEN}.") -> Path:
    """Write the settings file of a user, unless there is one. Raises NoAccount."""
    file = _record(name)
    try:
        with suppress(FileExistsError):
            SYSUSERS.mkdir()
            SYSUSERS.chmod(0o755)  # it is the machine's, and the umask is Pulse's
        with suppress(FileExistsError):
            replace_plain(file, f'{first}\nu {name} - "{TOLD}"\n'.encode(), 0o644, keep=True)
    except OSError as error:
        raise NoAccount(f"{file} can't be written: {error.strerror}") from error
    return file


def is_ours(name: str) -> bool:
    """Whether we made this user, by its settings file."""
    return _first_line_of(_record(name)).startswith(_WRITTEN)


def remove_record(name: str) -> None:
    """Forget whose the user is."""
    _record(name).unlink(missing_ok=True)


def _record(name: str) -> Path:
    return SYSUSERS / f"{name}.conf"


def _records() -> Iterator[Path]:
    return SYSUSERS.glob(f"{SHARED}-*.conf")


def _names(home: Path) -> Iterator[str]:
    """The names that a home may get, in order: short, and the same whenever they are derived."""
    for number in count():
        key = f"{os.path.realpath(home)}\0{number or ''}"
        yield f"{SHARED}-{hashlib.sha256(os.fsencode(key)).hexdigest()[:_ID]}"


def _first_line(home: Path) -> str:
    return f"{_WRITTEN} for the home {json.dumps(os.path.realpath(home))}."


def _first_line_of(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return next(iter(file.read_text().splitlines()), "")
    return ""
