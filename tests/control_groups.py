"""A control group of the run's own, in which all that tests start makes its groups; it is ended and removed with the run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pulse_adapters.workers.control_group import ControlGroup, NoControlGroups, own_group

_PATIENCE_S = 10.0
REASON = "no control groups that may be used; to have it tested: where cgroup2 can be written, as in a unit with Delegate=yes"


@contextmanager
def group_of_run() -> Iterator[None]:
    """Move this process into a new group for the length of a block, and end all that is left there then."""
    try:
        before = own_group()
        group = before.child(f"pulse-tests-{os.getpid()}")
        group.add(0)
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
        pytest.skip(REASON)
    if not probe.remove():
        pytest.skip(REASON)
    return group
