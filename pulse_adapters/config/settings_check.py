"""Validates parsed TOML strictly into settings."""

import grp
import json
import os
import pwd
import re
from functools import partial
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import expand_path
from pulse_core.composition import Settings
from pulse_core.model.errors import hint
from pulse_core.settings.engine import USER_CHECK
from pulse_core.settings.groups import AS_WRITTEN, PATTERN_CHECK
from pulse_core.settings.resources import TREE_CHECK
from pulse_core.settings.settings import GROUP_CHECK


def validate(data: dict[str, Any], *, to_start: bool = False, home: Path | None = None) -> Settings:
    """Validate as JSON, where a list may become a tuple but no text a number; raises pydantic's ValidationError.

    to_start: accept what must not prevent the daemon's start: a group or user that is not on this machine, and a pattern
    that Python's `re` has and RE2 has not; home: Pulse's own directory, in which nothing may be deleted, if it is known.
    """
    text = json.dumps(data, default=lambda _: [None])  # a date or time, which no setting takes
    context = {**AS_WRITTEN}
    if to_start:
        context[PATTERN_CHECK] = demand_python_pattern
    else:
        context |= {GROUP_CHECK: demand_group, USER_CHECK: demand_user}
    if home is not None:
        context[TREE_CHECK] = partial(demand_elsewhere, os.path.realpath(home))
    return Settings.model_validate_json(text, strict=True, context=context)


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
    try:
        grp.getgrnam(name)
    except KeyError:
        known = [group.gr_name for group in grp.getgrall()]
        raise ValueError(f"there is no group {name!r} on this machine{hint(name, known)}") from None


def demand_user(name: str) -> None:
    """Raise ValueError for a user that this machine does not have, with the nearest one that it has, and for root."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        known = [user.pw_name for user in pwd.getpwall()]
        raise ValueError(f"there is no user {name!r} on this machine{hint(name, known)}") from None
    if uid == 0:
        raise ValueError(f"{name!r} is root, to whom nothing is closed; name a user without rights")
