"""Reads `config.toml` and `conf.d/*.toml`: the settings, or every fault in them at once.

What words a fault is imported when there is one: it would stay with every daemon.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pulse_adapters.config.included import NAME, SettingsText, read_settings
from pulse_adapters.config.settings_check import validate
from pulse_adapters.config.toml_file import failures_as_faults
from pulse_core.composition import Settings
from pulse_core.model.errors import SettingsRefused

if TYPE_CHECKING:
    from pulse_adapters.config.toml_lines import Path as Place

OWNER_ALONE = "until that is mended and the daemon restarted, the socket is for its owner alone"
NO_ENGINE = "until that is mended, the engine is not run by a daemon that runs as root"
NO_PATTERN = (
    "until that is mended, nothing is searched with it: no process is found by it, and no line of a log"
)
"""What it means that the socket's group is gone, or the engine's user, or that RE2 does not support a pattern with which
an earlier version searched."""


def load(path: Path) -> Settings:
    """The settings of this file. Raises SettingsRefused with each fault as `FILE:LINE: KEY: what is wrong`."""
    return _load(path, read_settings(path))


def load_to_start(path: Path) -> tuple[Settings, tuple[str, ...]]:
    """The settings to start with, and the faults that must not prevent the daemon's start.

    These are a group or user that is gone, and a pattern that RE2 does not support but an earlier version did.

    Raises SettingsRefused, as `load` does, if there is any other fault; then with all of them.
    """
    file = read_settings(path)
    try:
        return _load(path, file), ()
    except SettingsRefused as refused:
        with failures_as_faults(path):
            try:
                settings = _validated(path, file.data, to_start=True)
            except ValidationError:
                raise refused from None
        means = {": engine.user: ": NO_ENGINE, ": socket.group: ": OWNER_ALONE, "": NO_PATTERN}
        firsts = (next(words for key, words in means.items() if key in fault) for fault in refused.faults)
        return settings, tuple(
            f"{fault}; {words}" for fault, words in zip(refused.faults, firsts, strict=True)
        )


def _load(path: Path, file: SettingsText) -> Settings:
    with failures_as_faults(path):
        try:
            return _validated(path, file.data)
        except ValidationError as error:
            from pulse_adapters.config.errors import faults

            found = faults(file.text, file.data, error) or [(1, str(error))]
            others = dict(file.same_names()) if len(file.files) > 1 else {}
            told = (
                f"{file.at(line)}: {words}{f'; the first one is at {file.at(others[line])}' if line in others else ''}"
                for line, words in found
            )
            raise SettingsRefused([*told]) from error


def faults_found_later(path: Path, found: "Mapping[Place, str]") -> SettingsRefused:
    """What was found in settings after they were loaded, each fault with the line of its key."""
    from pulse_adapters.config.errors import path_text
    from pulse_adapters.config.toml_lines import locate, nearest

    lines, data = locate((file := read_settings(path)).text), file.data
    return SettingsRefused(
        [f"{file.at(nearest(lines, key))}: {path_text(data, key)}: {words}" for key, words in found.items()]
    )


def _validated(path: Path, data: dict[str, Any], *, to_start: bool = False) -> Settings:
    return validate(data, to_start=to_start, home=path.parent if path.name == NAME else None)
