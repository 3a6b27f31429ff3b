"""A control group of the run's own, in which all that tests start makes its groups; it is ended and removed with the run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.workers.control_group import (
    DELEGATED,
    LEAF,
    ControlGroup,
    NoControlGroups,
    is_left_over,
    maker_prefix,
    own_group,
    parent_of_groups,
)

_PATIENCE_S, _NAME = 10.0, "pulse-tests"
_HOW = "to have it tested: systemd-run --pty --same-dir -p Delegate=yes -p DelegateSubgroup=daemon make test"
NO_GROUPS = f"no control groups that may be used; {_HOW}"
NO_CONTROLLERS = f"control groups without the pids controller; {_HOW}"


@contextmanager
def group_of_run() -> Iterator[None]:
    """Move this process into a leaf of a new group for the length of a block, and end all that is left there then."""
    try:
        before = own_group()
        parent = parent_of_groups(before)
        if parent != before:
            parent.enable_controllers()
        for earlier in list(parent.children()):
            if earlier.name.endswith(_NAME) and is_left_over(earlier):  # of a run that was killed
                earlier.end(_PATIENCE_S)
        group = parent.child(maker_prefix() + _NAME)
        os.setxattr(group.path, DELEGATED, b"1")
        group.child(LEAF).add(0)
    except (NoControlGroups, OSError):
        yield
        return
    try:
        yield
    finally:
        before.add(0)
        group.end(_PATIENCE_S)


def skip_without_groups() -> ControlGroup:
    """The group that this process is in, if groups can be made in it; else the test is skipped."""
    try:
        group = own_group()
        probe = group.child("probe")
    except (NoControlGroups, OSError):
        pytest.skip(NO_GROUPS)
    if not probe.remove():
        pytest.skip(NO_GROUPS)
    return group


@contextmanager
def where_none_can_be_made(before: ControlGroup) -> Iterator[None]:
    """Be in a control group below which no other one can be made, for the length of a block, as what is started there.

    before: the group that this process is in. Raises OSError.
    """
    group = before.child("without")
    (Path(group.path) / "cgroup.max.descendants").write_text("0")
    group.add(0)
    try:
        yield
    finally:
        before.add(0)
        group.remove()
