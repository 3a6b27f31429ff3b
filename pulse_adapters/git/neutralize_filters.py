"""Overrides filters and merge drivers of a repository's own settings, so that git runs no such program for Pulse.

Attributes that are kept beside the files choose a filter or a way to merge; which program that is, `.git/config` says,
and no option of git's switches all of them off. So what is set there is asked for, and each one overruled by name:
a filter by nothing (the file stays as it is), a way to merge by git's own.
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import NamedTuple, Protocol

from pulse_adapters.git.errors import GitFailed

_HARMLESS: Mapping[tuple[str, str], str] = {
    ("filter", "clean"): "",
    ("filter", "smudge"): "",
    ("filter", "process"): "",
    ("filter", "required"): "false",
    ("merge", "driver"): "git merge-file --marker-size=%L %A %O %B",
}


class GitOutput(Protocol):
    """What git answered."""

    @property
    def text(self) -> str: ...


class FilterOverrides(NamedTuple):
    """The environment that overrules what was set, and which state of the settings' files that was."""

    files: tuple[object, ...]
    overruling: Mapping[str, str]


def filter_overrides(
    seen: MutableMapping[Path, FilterOverrides], at: Path, folder: Path, ask: Callable[..., GitOutput]
) -> Mapping[str, str]:
    """The environment in which git, run at this place, runs none of them; asked for anew when the settings changed."""
    now = (_state(folder / "config"), *map(_state, sorted(folder.glob("worktrees/*/config.worktree"))))
    if at in seen and seen[at].files == now:
        return seen[at].overruling
    names = [name for name in ask("config", "--list", "--null", "--name-only").text.split("\0") if name]
    if "core.worktree" in names:
        raise GitFailed(
            f"{folder / 'config'} sets core.worktree, which sends git elsewhere; remove that line"
        )
    overruling = _overruling(names)
    if not any(name.startswith(("include.", "includeif.")) for name in names):
        seen[at] = FilterOverrides(now, overruling)
    return overruling


def _overruling(names: list[str]) -> Mapping[str, str]:
    """Git takes pairs from its environment whatever signs a name holds; as an option it would end at the first `=`."""
    pairs = {name: value for name in names if (value := _HARMLESS.get(_kind(name))) is not None}
    told = {"GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}
    for number, (name, value) in enumerate(pairs.items()):
        told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return told


def _kind(name: str) -> tuple[str, str]:
    return name.partition(".")[0], name.rpartition(".")[2]


def _state(path: Path) -> object:
    """What differs when a file was written anew."""
    try:
        now = os.stat(path)
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
