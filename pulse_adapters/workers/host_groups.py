"""A control group for each host: what it may have together with all that it starts, and how that ends with it."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.control_group import (
    ControlGroup,
    GroupLimits,
    NoControlGroups,
    end_left_over,
    home_groups,
    maker_prefix,
    own_group,
    parent_of_groups,
    remove_groups_of_gone_homes,
)
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import CONTROL_GROUP, GROUP_LIMITS

PATIENCE_S = 2.0
"""Seconds for what is killed to be gone; what takes longer is held by the kernel itself."""
MIB = 1024 * 1024
RULES, ACTIONS, TOOLS = "rules", "actions", "tools"


class _Share(NamedTuple):
    """pids: processes and threads; spare: MiB besides what its processes may have; processes: that may have that much."""

    pids: int
    spare: int
    processes: int
    cpu_weight: int


_SHARES: Mapping[str, _Share] = {
    RULES: _Share(64, 256, 1, 50),  # it has a deadline; what is guarded goes first all the same
    ACTIONS: _Share(512, 512, 4, 20),
    TOOLS: _Share(256, 512, 1, 20),
}


class HostGroup(NamedTuple):
    """The control group of one host; or why it has none, or why its limits have no effect."""

    group: ControlGroup | None = None
    missing: str = "none was asked for"
    unlimited: str = ""

    @property
    def parts(self) -> Mapping[str, str]:
        """Its parts in the words of a sandbox, each with the reason why it is missing, or nothing."""
        return {CONTROL_GROUP: self.missing} | ({GROUP_LIMITS: self.unlimited} if self.group else {})

    @property
    def path(self) -> str | None:
        """The group's folder, for `child_side.join_group`."""
        return self.group.path if self.group else None

    def end_now(self) -> bool:
        """End all that is in it, and remove it; whether nothing is left. Blocks: for threads."""
        try:
            return self.group is None or self.group.end(PATIENCE_S)
        except OSError:
            return False

    async def end(self) -> bool:
        """The same from the event loop."""
        return self.group is None or await asyncio.to_thread(self.end_now)

    async def freeze(self) -> None:
        """Have all that is in it stand still, as far as there is a group."""
        with suppress(OSError):  # it is gone
            if self.group:
                await asyncio.to_thread(self.group.freeze, PATIENCE_S)

    async def thaw(self) -> None:
        """Have it go on."""
        with suppress(OSError):
            if self.group:
                await asyncio.to_thread(self.group.thaw)


MakeGroup = Callable[[str, int], HostGroup]
"""Makes a group for a host of this kind; the other is MiB that one of its processes may have. Blocks."""


def no_host_group(_kind: str, _memory: int) -> HostGroup:
    """For hosts of no home."""
    return HostGroup()


def host_group(home: Path, kind: str, memory: int) -> HostGroup:
    """A new group for a host of this home, as far as there can be one."""
    share = _SHARES[kind]
    limits = GroupLimits(share.pids, (share.spare + share.processes * memory) * MIB, share.cpu_weight)
    try:
        name = f"{maker_prefix()}{kind}-{secrets.token_hex(4)}"
        group = home_groups(home).child(name, limits)
        return HostGroup(group, "", group.missing_limits(parent_of_groups(own_group())))
    except NoControlGroups as error:
        return HostGroup(missing=str(error))
    except OSError as error:
        return HostGroup(missing=f"no control group can be made: {error.strerror}")


def end_hosts_left_over(home: Path) -> None:
    """End what hosts of an earlier daemon, or of a command that was killed, have left. Raises PulseError. Blocks.

    And remove empty groups: of the home, and of homes that are gone.
    """
    remove_groups_of_gone_homes()
    try:
        left = end_left_over(home, PATIENCE_S)
    except OSError as error:
        raise PulseError(f"what earlier hosts have left can't be ended: {error}") from error
    if left:
        raise PulseError(f"what earlier hosts have left does not end: {', '.join(left)}")
