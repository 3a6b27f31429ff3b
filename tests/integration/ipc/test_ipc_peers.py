"""Who calls is what the kernel says: owner and root are persons, members of the group agents, the rest nobody."""

import asyncio
import grp
import json
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.ipc.wire import WireLimits
from pulse_core.model.payload import Role
from tests.integration.ipc.ipc_desk import Desk

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

HOLD = """
import os, select, socket, sys
groups, gid, uid = eval(sys.argv[2])
os.setgroups(groups); os.setgid(gid); os.setuid(uid)
callers = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[3]))]
for caller in callers:
    caller.connect(sys.argv[1])
    caller.sendall(b'{"v": 1, "op": "nothing"}\\n')
    assert caller.recv(1000) == b'{"end": true}\\n'
print("held", flush=True)
for line in sys.stdin:
    print(sum(select.select([caller], [], [], 0)[0] != [] for caller in callers), flush=True)
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
    request_handler = Desk()
    async with request_handler.serve(path, group=GROUP.gr_gid):
        opened(path)
        told = await call(path, [], STRANGER, STRANGER)
    assert told["error"]["type"] == "NotWelcome"
    assert f"user {STRANGER} may not talk" in told["error"]["message"]
    assert not request_handler.peers


async def test_files_alone_keep_a_stranger_out(path: Path) -> None:
    async with Desk().serve(path):
        assert await call(path, [], STRANGER, STRANGER) == {}


@pytest.mark.parametrize(("groups", "gid"), [([], GROUP.gr_gid), ([GROUP.gr_gid], STRANGER)])
async def test_a_member_of_the_group_is_an_agent_and_reaches_the_socket(
    path: Path, groups: list[int], gid: int
) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, group=GROUP.gr_gid):
        found, directory = path.stat(), path.parent.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, GROUP.gr_gid)
        assert (stat.S_IMODE(directory.st_mode), directory.st_gid) == (0o750, GROUP.gr_gid)
        assert "item" in await call(path, groups, gid, STRANGER)
    assert (request_handler.peers[0].uid, request_handler.peers[0].gid, request_handler.peers[0].role) == (
        STRANGER,
        gid,
        Role.AGENT,
    )


async def test_the_owner_and_root_are_persons(path: Path) -> None:
    from pulse_adapters.ipc.server import serve

    request_handler = Desk()
    async with serve(path, request_handler, owner=STRANGER, on_error=request_handler.errors.append):
        assert path.stat().st_uid == STRANGER
        assert "item" in await call(path, [], STRANGER, STRANGER)
        assert "item" in await call(path, [], 0, 0)
    assert [(peer.uid, peer.role) for peer in request_handler.peers] == [
        (STRANGER, Role.PERSON),
        (0, Role.PERSON),
    ]


@asynccontextmanager
async def holding(path: Path, uid: int, count: int) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """A member of the group with so many connections that ask for nothing; called, it says how many it lost."""
    command = [sys.executable, "-c", HOLD, str(path), repr(([], GROUP.gr_gid, uid)), str(count)]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    asked, said = child.stdin, child.stdout
    assert asked
    assert said
    assert await said.readline() == b"held\n"

    async def lost() -> int:
        asked.write(b"?\n")
        return int(await said.readline())

    yield lost
    asked.close()
    await child.wait()


async def test_the_user_who_holds_most_makes_room_by_however_many_processes(path: Path) -> None:
    limits = WireLimits(connections=6, agents=5)
    async with (
        Desk().serve(path, limits=limits, group=GROUP.gr_gid),
        asyncio.timeout(60),
        holding(path, 2, 2) as modest,
        holding(path, STRANGER, 1) as one,
        holding(path, STRANGER, 1) as two,
        holding(path, STRANGER, 1) as three,
    ):
        assert "item" in await call(path, [], GROUP.gr_gid, 3)
        assert (await modest(), await one(), await two(), await three()) == (0, 1, 0, 0)


async def test_an_agent_takes_the_place_of_an_agent_even_if_the_owner_holds_more(path: Path) -> None:
    limits = WireLimits(connections=10, agents=2)
    async with (
        Desk().serve(path, limits=limits, group=GROUP.gr_gid),
        asyncio.timeout(60),
        holding(path, 0, 5) as owner,
        holding(path, 2, 1) as one,
        holding(path, 3, 1) as two,
    ):
        assert "item" in await call(path, [], GROUP.gr_gid, STRANGER)
        assert (await owner(), await one(), await two()) == (0, 1, 0)


async def test_agents_can_not_lock_the_owner_out(path: Path) -> None:
    async with Desk().serve(path, limits=WireLimits(connections=3, agents=0), group=GROUP.gr_gid):
        assert "try again later" in (await call(path, [], GROUP.gr_gid, STRANGER))["error"]["message"]
        assert "item" in await call(path, [], 0, 0)
