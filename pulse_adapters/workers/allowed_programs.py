"""Which programs may be run by name or path, compared by their real path."""

import os
import shutil
from collections.abc import Iterable, Mapping

from pulse_core.model.errors import Refused

SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "busybox"})
"""Programs that run whatever they are told: to allow one of them allows every command."""


def allowed_programs(allow: Iterable[str]) -> Mapping[str, str]:
    """The real path of what may be run, by the paths that name it: as the setting has it, and its real one."""
    real = {entry: os.path.realpath(entry) for entry in allow if os.path.isabs(entry)}
    return {**{path: path for path in real.values()}, **real}


def allowed_program(name: str, allowed: Mapping[str, str], where: str = "") -> str:
    """The real path of a program that may be run: the path that was compared is the one to run. Raises Refused.

    where: what `found_program` says of a name that is no path, if it was asked. A path that a rule made up is compared as a
    text: to follow it could take long, and this is done in the loop.
    """
    if os.path.isabs(name):
        real, where = allowed.get(name), name
    else:
        where = where or found_program(name)
        real = where if where in allowed.values() else None
    if real is None and os.path.basename(where) in SHELLS:
        raise Refused(
            f"{name!r} may not be run, and to allow it would allow every command; write what it is to do into a script, and"
            " add that to `allow` under [executors.run-command] in config.toml"
        )
    if real is None:
        raise Refused(
            f'{name!r} may not be run; to allow it, add "{where}" to `allow` under [executors.run-command]'
            " in config.toml"
        )
    return real


def found_program(name: str) -> str:
    """The real path of a program in PATH. Raises Refused."""
    if "/" in name:
        raise Refused(f"{name!r} is a relative path; give an absolute one, or a name that is in PATH")
    if found := shutil.which(name):
        return os.path.realpath(found)
    raise Refused(f"there is no program {name!r} in PATH ({os.environ.get('PATH', '')})")
