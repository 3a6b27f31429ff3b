"""Reads `config.toml`: the settings, or every fault in it at once."""

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pulse_adapters.config.errors import faults
from pulse_adapters.config.settings_check import validate
from pulse_core.composition import Settings
from pulse_core.model.errors import NoHome, SettingsRefused

NAME = "config.toml"
"""The name of the file in a home: it lies beside what must not be deleted."""

LARGEST = 1 << 20
OWNER_ALONE = "until that is mended and the daemon restarted, the socket is for its owner alone"
NO_ENGINE = "until that is mended, the engine is not run by a daemon that runs as root"
NO_PATTERN = (
    "until that is mended, nothing is searched with it: no process is found by it, and no line of a log"
)
"""What it means that the socket's group is gone, or the engine's user, or that RE2 does not support a pattern with which
an earlier version searched."""

_SAID_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_PLAINLY = {
    "Cannot overwrite a value": "this key is there twice",
    "Unclosed array": "a list is not closed; a ']' is missing",
}


def load(path: Path) -> Settings:
    """The settings of this file. Raises SettingsRefused with each fault as `FILE:LINE: KEY: what is wrong`."""
    text = _read(path)
    data = _parse(path, text)
    try:
        return _validated(path, data)
    except ValidationError as error:
        raise SettingsRefused(
            [f"{path}:{line}: {words}" for line, words in faults(text, data, error)]
        ) from error


def load_to_start(path: Path) -> tuple[Settings, tuple[str, ...]]:
    """The settings to start with, and the faults that must not prevent the daemon's start.

    These are a group or user that is gone, and a pattern that RE2 does not support but an earlier version did.

    Raises SettingsRefused, as `load` does, if there is any other fault; then with all of them.
    """
    try:
        return load(path), ()
    except SettingsRefused as refused:
        try:
            settings = _validated(path, _parse(path, _read(path)), to_start=True)
        except ValidationError:
            raise refused from None
        means = {": engine.user: ": NO_ENGINE, ": socket.group: ": OWNER_ALONE, "": NO_PATTERN}
        firsts = (next(words for key, words in means.items() if key in fault) for fault in refused.faults)
        return settings, tuple(
            f"{fault}; {words}" for fault, words in zip(refused.faults, firsts, strict=True)
        )


def _validated(path: Path, data: dict[str, Any], *, to_start: bool = False) -> Settings:
    return validate(data, to_start=to_start, home=path.parent if path.name == NAME else None)


def _read(path: Path) -> str:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            what = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
            raise _refusal(path, 1, f"this is {what}; the settings must be a file")
        if found.st_size > LARGEST:
            raise _refusal(path, 1, f"this has {found.st_size} bytes; settings have at most {LARGEST}")
        blob = path.read_bytes()
        return blob.decode("utf-8-sig")
    except FileNotFoundError as error:
        if not path.parent.is_dir():
            raise NoHome(str(path.parent)) from error
        raise _refusal(
            path,
            1,
            "there is no such file; an empty one means the defaults, 'upulse init' writes a commented one",
        ) from error
    except UnicodeDecodeError as error:
        line = blob.count(b"\n", 0, error.start) + 1
        raise _refusal(
            path, line, f"byte {blob[error.start]:#04x} is no UTF-8; save it as UTF-8 text"
        ) from error
    except OSError as error:
        raise _refusal(path, 1, f"can't be read: {error.strerror}") from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = _SAID_AT.search(str(error))
        line = int(said[1]) if said and said[1] else text.count("\n") + 1
        words = str(error)[: said.start()] if said else str(error)
        raise _refusal(path, line, f"no valid TOML: {_PLAINLY.get(words, words)}") from error
    except RecursionError as error:
        raise _refusal(path, 1, "no usable TOML: it is nested too deeply") from error


def _refusal(path: Path, line: int, words: str) -> SettingsRefused:
    return SettingsRefused([f"{path}:{line}: {words}"])
