"""The daemon answers over its socket: answers, streams, errors, places."""

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.peer import group_id
from pulse_adapters.ipc.protocol import BadRequest, InternalError, NewerProtocol, fileless_address
from pulse_adapters.ipc.server import SocketUnusable, serve_without_file
from pulse_adapters.ipc.wire import WireLimits
from pulse_core.model.errors import HomeBusy, NotAnswering, Refused, UnknownName
from tests.conftest import ROOT
from tests.integration.ipc.ipc_desk import Desk
from tests.processes import child_of_test


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "pulse.sock"


async def asked(path: Path, call: Callable[[Client], Any], timeout: float = 10.0) -> Any:
    def work() -> Any:
        with Client(path, timeout) as client:
            return call(client)

    return await asyncio.to_thread(work)


async def test_a_question_gets_its_answer_and_a_stream_all_of_them(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path):
        assert (await asked(path, lambda client: client.ask("echo", text="ü\n", n=[1])))["text"] == "ü\n"
        assert [item["n"] for item in await asked(path, lambda c: list(c.stream("count", upto=5)))] == [
            *range(5)
        ]
        assert await asked(path, lambda client: client.ask("nothing")) == {}
    assert request_handler.peers[0].pid == os.getpid()


async def test_one_connection_takes_many_questions_in_order(path: Path) -> None:
    def work(client: Client) -> list[Any]:
        return [client.ask("echo", n=n)["n"] for n in range(50)]

    async with Desk().serve(path):
        assert await asked(path, work) == [*range(50)]


async def test_errors_arrive_as_what_they_are_and_the_connection_goes_on(path: Path) -> None:
    request_handler = Desk()

    def work(client: Client) -> None:
        with pytest.raises(HomeBusy, match="held by process 42") as busy:
            client.ask("busy")
        assert busy.value.pid == 42
        with pytest.raises(Refused, match="not you") as refused:
            client.ask("refuse")
        assert vars(refused.value)["event"] == {"id": "x"}
        with pytest.raises(InternalError, match=r"failed at 'break' \(KeyError\)"):
            client.ask("break")
        assert client.ask("echo", n=1)["n"] == 1

    async with request_handler.serve(path):
        await asked(path, work)
    assert [repr(error) for error in request_handler.errors] == ["KeyError('secret')"]


async def test_a_newer_caller_is_told_to_restart_the_older_daemon(path: Path) -> None:
    async with Desk().serve(path):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b'{"v": 2, "op": "echo"}\n{"op": "echo"}\n{"v": 1, "op": "echo"}\n')
        told = [(await reader.readline()).decode() for _ in range(3)]
        writer.close()
    assert NewerProtocol.__name__ in told[0]
    assert "upulse daemon restart" in told[0]
    assert BadRequest.__name__ in told[1]
    assert "item" in told[2]


@pytest.mark.wall_clock
async def test_a_slow_answer_shows_signs_of_life_and_only_the_whole_question_times_out(path: Path) -> None:
    async with Desk().serve(path, WireLimits(beat=0.02)):
        slow = await asked(path, lambda client: list(client.stream("slow")), timeout=0.8)
        assert slow == [{"slow": True}]
        with pytest.raises(NotAnswering, match=r"has not answered for 0\.8 s"):
            await asked(path, lambda client: client.ask("slow"), timeout=0.8)


@pytest.mark.parametrize(
    "call", [lambda c: c.ask("status"), lambda c: list(c.stream("status"))], ids=["ask", "stream"]
)
def test_an_answer_that_drips_is_not_waited_for_beyond_the_time(
    path: Path, call: Callable[[Client], object]
) -> None:
    """Each byte comes in good time, and the line never ends."""
    over = threading.Event()

    def drip(peer: socket.socket) -> None:
        connection, _ = peer.accept()
        with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while not over.wait(0.1):
                connection.sendall(b" ")

    with socket.socket(socket.AF_UNIX) as peer:
        peer.bind(str(path))
        peer.listen()
        peer.settimeout(60)
        thread = threading.Thread(target=drip, args=(peer,))
        thread.start()
        began = time.monotonic()
        try:
            with Client(path, timeout=0.5) as client, pytest.raises(NotAnswering, match=r"for 0\.5 s"):
                call(client)
            assert 0.4 < time.monotonic() - began < 20
        finally:
            over.set()
            thread.join(60)


async def test_who_leaves_in_mid_stream_ends_it(path: Path) -> None:
    request_handler = Desk()

    def work(client: Client) -> None:
        for _ in client.stream("for-ever"):
            break

    async with request_handler.serve(path):
        await asked(path, work)
        async with asyncio.timeout(60):
            while not request_handler.ended:
                await asyncio.sleep(0.001)
        assert (await asked(path, lambda client: client.ask("echo", n=1)))["n"] == 1


async def test_leaving_the_server_hangs_up_and_removes_the_socket(path: Path) -> None:
    request_handler = Desk()

    def work(client: Client) -> None:
        with pytest.raises(NotAnswering, match="hung up"):
            list(client.stream("for-ever"))

    async with request_handler.serve(path):
        call = asyncio.ensure_future(asked(path, work))
        async with asyncio.timeout(60):
            while not request_handler.peers:
                await asyncio.sleep(0.001)
    await call
    assert request_handler.ended == ["for-ever"]
    assert not path.exists()
    with pytest.raises(NotAnswering, match="upulse daemon start"):
        await asked(path, lambda client: client.ask("echo"))


async def test_an_error_in_the_body_comes_out_as_it_is(path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Desk().serve(path):
            raise ValueError("mine")
    assert not path.exists()


async def test_a_stale_socket_makes_room_and_a_file_does_not(path: Path) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with pytest.raises(NotAnswering, match="upulse daemon start"):
        await asked(path, lambda client: client.ask("echo"))
    async with Desk().serve(path):
        assert await asked(path, lambda client: client.ask("echo"))
    path.write_text("precious")
    with pytest.raises(SocketUnusable, match="in the way and no socket"):
        async with Desk().serve(path):
            pass
    assert path.read_text() == "precious"


async def test_a_home_may_lie_deeper_than_a_socket_address_is_long(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-directory-name"] * 12, "run", "pulse.sock")
    async with Desk().serve(deep):
        assert len(str(deep)) > 300
        assert (await asked(deep, lambda client: client.ask("echo", n=1)))["n"] == 1
    assert not deep.exists()


async def test_the_socket_is_for_its_owner_alone(path: Path) -> None:
    path.parent.chmod(0o755)
    async with Desk().serve(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_directory_shared_with_others_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o777)
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "shared" / "theirs").touch()
    with pytest.raises(SocketUnusable, match=r"holds other things \('theirs'\)"):
        async with Desk().serve(tmp_path / "shared" / "pulse.sock"):
            pass
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o1777


async def test_a_daemon_that_can_make_no_file_is_found_by_those_who_know_the_place(path: Path) -> None:
    async with serve_without_file(path, Desk(), owner=os.getuid(), on_error=print):
        assert (await asked(path, lambda client: client.ask("echo", n=1)))["n"] == 1
        with pytest.raises(SocketUnusable, match="another one answers"):
            async with serve_without_file(path, Desk(), owner=os.getuid(), on_error=print):
                pass
    with pytest.raises(NotAnswering, match="no daemon answers"):
        await asked(path, lambda client: client.ask("echo"))


@pytest.mark.skipif(os.getuid() != 0, reason=ROOT)
def test_nobody_is_asked_who_has_taken_a_daemons_name_as_another_user(path: Path) -> None:
    squat = (
        "import os, socket, sys; taken = socket.socket(socket.AF_UNIX); taken.bind(chr(0) + sys.argv[1])\n"
        "os.setuid(65534); taken.listen(); print('taken', flush=True); sys.stdin.read()"
    )
    name = fileless_address(path)[1:]
    argv = [sys.executable, "-c", squat, name]
    with child_of_test(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as other:
        assert other.stdout
        assert other.stdout.readline() == b"taken\n"
        with pytest.raises(NotAnswering, match="no daemon answers"):
            Client(path).ask("echo")


def test_an_unknown_group_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'daemon'"):
        group_id("deamon")


def test_who_finds_no_socket_of_a_home_that_is_held_is_not_told_to_start_a_daemon(path: Path) -> None:
    with HomeLock(path.with_name("lock"), "0.1.0"):
        with pytest.raises(NotAnswering, match=f"process {os.getpid()} holds the home: try again") as refused:
            Client(path).ask("echo")
        assert "daemon start" not in str(refused.value)


async def test_a_sign_leads_to_a_socket_elsewhere(path: Path, tmp_path: Path) -> None:
    async with Desk().serve(tmp_path / "elsewhere" / "pulse.sock", sign=path):
        assert (await asked(path, lambda client: client.ask("echo", n=1)))["n"] == 1
    assert not path.is_symlink()


def half_closed(path: Path, *requests: bytes) -> list[bytes]:
    """What a caller hears who sends these requests and closes its sending side."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(30)
        caller.connect(str(path))
        caller.sendall(b"".join(requests))
        caller.shutdown(socket.SHUT_WR)
        return caller.makefile("rb").readlines()


async def test_who_closes_its_sending_side_gets_the_answers_to_what_it_asked(path: Path) -> None:
    async with Desk().serve(path):
        slow, echo = b'{"v": 1, "op": "slow"}\n', b'{"v": 1, "op": "echo", "n": 1}\n'
        heard = await asyncio.to_thread(half_closed, path, slow, echo)
        assert [b"slow" in heard[0], b'"n": 1' in heard[2], *heard[1::2]] == [
            True,
            True,
            *[b'{"end": true}\n'] * 2,
        ]
        assert await asyncio.to_thread(half_closed, path) == []
        assert await asyncio.to_thread(half_closed, path, echo[:5]) == []


async def test_who_listens_with_its_sending_side_closed_and_then_goes_is_missed(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, WireLimits(beat=0.02)):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(30)
            caller.connect(str(path))
            caller.sendall(b'{"v": 1, "op": "follow"}\n')
            caller.shutdown(socket.SHUT_WR)
            assert b"begun" in await asyncio.to_thread(caller.recv, 1_000)
            assert b"alive" in await asyncio.to_thread(caller.recv, 1_000)
            assert not request_handler.ended
        async with asyncio.timeout(60):
            while not request_handler.ended:
                await asyncio.sleep(0.001)
