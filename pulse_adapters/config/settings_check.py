"""Validates parsed TOML strictly into settings."""

import json
import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import expand_path
from pulse_adapters.workers.file_systems import mount_point
from pulse_adapters.workers.users import find_group, find_user, group_names, user_names
from pulse_core.composition import Settings
from pulse_core.model.errors import PulseError, hint
from pulse_core.settings.engine import USER_CHECK
from pulse_core.settings.groups import AS_WRITTEN, PATTERN_CHECK
from pulse_core.settings.resources import TREE_CHECK
from pulse_core.settings.settings import GROUP_CHECK
from pulse_core.settings.telemetry import ANCHOR_CHECK


def validate(data: dict[str, Any], *, to_start: bool = False, home: Path | None = None) -> Settings:
    """Validate as JSON, where a list may become a tuple but no text a number; raises pydantic's ValidationError.

    to_start: accept what must not prevent the daemon's start: a group or user that is not on this machine, and a pattern
    that Python's `re` has and RE2 has not; home: Pulse's own directory, in which nothing may be deleted, and for which
    nothing in it vouches, and whose file system is watched, if it is known.
    """
    if home is not None:
        data = with_disk_of(os.path.realpath(home), data)
    text = json.dumps(data, default=lambda _: [None])  # a date or time, which no setting takes
    context = {**AS_WRITTEN}
    if to_start:
        context[PATTERN_CHECK] = demand_python_pattern
    else:
        context |= {GROUP_CHECK: demand_group, USER_CHECK: demand_user}
    if home is not None:
        context[TREE_CHECK] = partial(demand_elsewhere, os.path.realpath(home))
        context[ANCHOR_CHECK] = partial(demand_outside, os.path.realpath(home))
    return Settings.model_validate_json(text, strict=True, context=context)


def with_disk_of(home: str, data: dict[str, Any]) -> dict[str, Any]:
    """The settings with a bound for the file system that the home is on, if none of their bounds is for that.

    By the mount table alone: to ask one of the paths could take for ever.
    """
    resources = data.get("resources", {})
    disks = resources.get("disk", {}) if isinstance(resources, dict) else None
    listed = [disks] if isinstance(disks, dict) else disks
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return data  # which the validation says
    points = mount_points()
    covered = {_mount_point(str(expand_path(path)), points) for path in _paths(listed)}
    if _mount_point(home, points) in covered:
        return data
    return {**data, "resources": {**resources, "disk": [*listed, {"path": home}]}}


def mount_points() -> set[str]:
    """Where file systems are mounted."""
    with open("/proc/self/mounts", "rb") as table:
        return {mount_point(line.split(b" ", 2)[1]) for line in table}


def _paths(bounds: list[dict[str, Any]]) -> list[str]:
    paths = [bound.get("path", "/") for bound in bounds]
    return [path for path in paths if isinstance(path, str) and path.startswith(("/", "~/"))]


def _mount_point(path: str, points: set[str]) -> str:
    return next((place for place in (path, *map(str, Path(path).parents)) if place in points), "/")


def demand_outside(home: str, path: str) -> None:
    """Raise ValueError for a file in Pulse's home: whoever forges that would forge it, too."""
    if f"{os.path.normpath(expand_path(path))}/".startswith(f"{home}/"):
        raise ValueError(f"{path!r} lies in the home that it is to vouch for ({home}); name a file elsewhere")


def demand_elsewhere(home: str, tree: str) -> None:
    """Raise ValueError for a directory that is Pulse's home, lies in it, or holds it."""
    place = os.path.normpath(expand_path(tree))
    if f"{place}/".startswith(f"{home}/") or f"{home}/".startswith(f"{place}/"):
        raise ValueError(f"{tree!r} holds Pulse's own files ({home}); name another directory")


def demand_python_pattern(text: str) -> None:
    """Raise ValueError for what is no regular expression of Python's `re` either, which earlier versions used."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error


def demand_group(name: str) -> None:
    """Raise ValueError for a group that this machine does not have, with the nearest one that it has."""
    with suppress(PulseError):  # the machine does not say it, and may have it
        if find_group(name) is None:
            raise ValueError(f"there is no group {name!r} on this machine{hint(name, group_names())}")


def demand_user(name: str) -> None:
    """Raise ValueError for a user that this machine does not have, with the nearest one that it has, and for root."""
    try:
        user = find_user(name)
        known = () if user else user_names()
    except PulseError:
        return  # the machine does not say it, and may have it
    if user is None:
        raise ValueError(f"there is no user {name!r} on this machine{hint(name, known)}")
    if user.uid == 0:
        raise ValueError(f"{name!r} is root, to whom nothing is closed; name a user without rights")
