"""One daemon of a log: the other one is that of a copied home."""

import asyncio
import os
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from pulse_adapters.ipc.log_name import hold_name, holder_begun_at, is_held
from pulse_core.model.errors import PulseError
from tests.processes import child_of_test

NOBODY = 65_534


async def test_a_second_daemon_of_the_same_log_is_refused_until_the_first_one_has_ended() -> None:
    log = str(uuid.uuid4())
    first = await hold_name("/first", log, 0)
    (await hold_name("/other", str(uuid.uuid4()), 0)).close()
    with pytest.raises(PulseError, match=f"/copy is a copy .* process {os.getpid()},"):
        await hold_name("/copy", log, 0)
    first.close()
    (await hold_name("/copy", log, 0)).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
async def test_a_daemon_that_has_no_number_here_is_said_to_be_elsewhere() -> None:
    log = str(uuid.uuid4())
    first = await hold_name("/first", log, 0)
    code = (
        "import asyncio, sys; from pulse_adapters.ipc.log_name import hold_name;"
        " asyncio.run(hold_name('/copy', sys.argv[1], 0))"
    )
    argv = ["unshare", "--pid", "--fork", sys.executable, "-c", code, log]
    ended = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=60)
    first.close()
    assert "/copy is a copy of a home whose daemon runs, in another PID namespace," in ended.stderr


def test_a_daemon_that_was_begun_for_this_place_is_found_by_its_log_alone() -> None:
    log, home = str(uuid.uuid4()), Path("/not-mounted/home")
    code = (
        "import asyncio, sys; from pulse_adapters.ipc.log_name import hold_name;"
        " held = asyncio.run(hold_name('/home', sys.argv[1], 0)); print(flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, log, "--home", str(home)]
    with child_of_test(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as daemon:
        assert daemon.stdout
        daemon.stdout.readline()
        assert holder_begun_at(home, log) == daemon.pid
        assert holder_begun_at(Path("/copy"), log) is None
        assert holder_begun_at(home, str(uuid.uuid4())) is None
    assert holder_begun_at(home, log) is None


async def test_lines_of_the_kernels_that_another_user_forges_are_no_names() -> None:
    log = str(uuid.uuid4())
    for begin in ("", "0: 1 1 1 0001 01 \udcff", "x" * 40):
        with socket.socket(socket.AF_UNIX) as forged:
            forged.bind(os.fsencode(f"\0x\n{begin} @pulse-{os.geteuid()}-{log}"))
            (await hold_name("/home", log, 0)).close()
            assert not is_held(log)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_who_is_another_user_keeps_nobody_from_starting_and_a_copy_is_refused_all_the_same() -> None:
    log = str(uuid.uuid4())
    squatter = await hold_name("/squatter", log, 0)
    os.seteuid(NOBODY)
    try:
        squatter.listen()  # the kernel says that whoever listened last holds it
    finally:
        os.seteuid(0)
    first = await hold_name("/home", log, 0)
    assert is_held(log)
    with pytest.raises(PulseError, match=f"/copy is a copy .* process {os.getpid()},"):
        await hold_name("/copy", log, 0)
    squatter.close()
    with pytest.raises(PulseError, match=f"/copy is a copy .* process {os.getpid()},"):
        await hold_name("/copy", log, 0)
    first.close()
    assert not is_held(log)
    (await hold_name("/copy", log, 0)).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network namespace")
@pytest.mark.parametrize("user", [0, NOBODY], ids=["this user", "another one"])
async def test_a_daemon_in_another_network_namespace_keeps_the_copy_of_its_home_from_starting(
    user: int,
) -> None:
    log = str(uuid.uuid4())
    code = (
        "import os, socket, sys; one = socket.socket(socket.AF_UNIX); one.bind(sys.argv[1].replace('@', chr(0)));"
        f" one.listen(); os.setresuid({user}, {user}, {user}); print(flush=True); sys.stdin.read()"
    )
    argv = ["unshare", "--net", sys.executable, "-c", code, f"@pulse-0-{log}"]
    there = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert there.stdout
    try:
        assert there.stdout.readline()
        if user == 0:
            with pytest.raises(PulseError, match=f"/copy is a copy .* process {there.pid},"):
                await hold_name("/copy", log, 0)
        else:
            (await hold_name("/copy", log, 0)).close()
    finally:
        there.communicate(timeout=60)
    (await hold_name("/copy", log, 0)).close()
