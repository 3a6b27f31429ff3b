"""Who calls is what the kernel says: owner and root are persons, members of the group agents, the rest nobody."""

import asyncio
import grp
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipc_desk import Desk

from pulse_adapters.ipc.wire import Limits
from pulse_core.model.payload import Role

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")

STRANGER = 65534
GROUP = grp.getgrnam("daemon")
CALL = """
import os, socket, sys
groups, gid, uid = eval(sys.argv[2])
os.setgroups(groups); os.setgid(gid); os.setuid(uid)
with socket.socket(socket.AF_UNIX) as caller:
    caller.connect(sys.argv[1])
    try: caller.sendall(b'{"v": 1, "op": "echo"}\\n')
    except BrokenPipeError: pass
    print(caller.makefile().readline())
"""


@pytest.fixture
def path() -> Iterator[Path]:
    """A place that others can reach; pytest's own directory is closed to them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory) / "run" / "pulse.sock"


async def call(path: Path, groups: list[int], gid: int, uid: int) -> dict[str, Any]:
    command = [sys.executable, "-c", CALL, str(path), repr((groups, gid, uid))]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await child.communicate()
    return dict(json.loads(said or b"{}"))


def opened(path: Path) -> None:
    """Let everybody as far as the door, so that the daemon itself must turn them away."""
    path.parent.chmod(0o755)
    path.chmod(0o666)


async def test_a_stranger_is_nobody_and_gets_no_further_than_the_door(path: Path) -> None:
    desk = Desk()
    async with desk.serve(path, group=GROUP.gr_name):
        opened(path)
        told = await call(path, [], STRANGER, STRANGER)
    assert told["error"]["type"] == "NotWelcome"
    assert f"user {STRANGER} may not talk" in told["error"]["message"]
    assert not desk.peers


async def test_files_alone_keep_a_stranger_out(path: Path) -> None:
    async with Desk().serve(path):
        assert await call(path, [], STRANGER, STRANGER) == {}


@pytest.mark.parametrize(("groups", "gid"), [([], GROUP.gr_gid), ([GROUP.gr_gid], STRANGER)])
async def test_a_member_of_the_group_is_an_agent_and_reaches_the_socket(
    path: Path, groups: list[int], gid: int
) -> None:
    desk = Desk()
    async with desk.serve(path, group=GROUP.gr_name):
        found, directory = path.stat(), path.parent.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, GROUP.gr_gid)
        assert (stat.S_IMODE(directory.st_mode), directory.st_gid) == (0o750, GROUP.gr_gid)
        assert "item" in await call(path, groups, gid, STRANGER)
    assert (desk.peers[0].uid, desk.peers[0].gid, desk.peers[0].role) == (STRANGER, gid, Role.AGENT)


async def test_the_owner_and_root_are_persons(path: Path) -> None:
    from pulse_adapters.ipc.server import serve

    desk = Desk()
    async with serve(path, desk, owner=STRANGER, on_error=desk.errors.append):
        assert path.stat().st_uid == STRANGER
        assert "item" in await call(path, [], STRANGER, STRANGER)
        assert "item" in await call(path, [], 0, 0)
    assert [(peer.uid, peer.role) for peer in desk.peers] == [(STRANGER, Role.PERSON), (0, Role.PERSON)]


async def test_agents_can_not_lock_the_owner_out(path: Path) -> None:
    async with Desk().serve(path, limits=Limits(connections=3, agents=0), group=GROUP.gr_name):
        assert "try again later" in (await call(path, [], GROUP.gr_gid, STRANGER))["error"]["message"]
        assert "item" in await call(path, [], 0, 0)
