"""Servers that hang in every way, and what each kind of probe says of them within its deadline."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host import listening_ports
from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.health_prober import LARGEST_BODY, LocalHealthProber
from pulse_adapters.host.listening_ports import socket_owners
from pulse_adapters.host.marked_processes import find_bearers
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import is_alive, read_stat, start_time_of
from pulse_adapters.workers.users import find_user
from pulse_core.ports.health import HealthAnswer
from pulse_core.ports.host import ProcessId
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from tests.callback_times import callback_times
from tests.integration.host.host_scene import said, until
from tests.integration.network.network_servers import (
    ENDLESS,
    OK,
    Serve,
    dribbles,
    floods,
    page_server,
    says,
    stalls,
)
from tests.processes import child_of_test

SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=2048)
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    peer.recv(4096)
    peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    peer.close()
"""


def settings(**more: Any) -> ProcessSettings:
    process = {"name": "p", "start": ["p"], "timeout": "1500ms", **more}
    return Settings.model_validate({"process": [process]}).process[0]


def own_id() -> ProcessId:
    seen = read_stat(os.getpid())
    assert seen
    return seen.found


@pytest.fixture
async def prober(spawner: Spawner, tmp_path: Path) -> AsyncIterator[LocalHealthProber]:
    child = ChildProber()
    prober = LocalHealthProber(spawner, child, LocalCommandProber(spawner, str(tmp_path)))
    yield prober
    await prober.close()
    child.close()


@contextmanager
def full_backlog() -> Iterator[int]:
    """A server that has no room for another connection."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hang up the half of the connection on which an answer would come."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write_eof()
    await asyncio.Event().wait()


def redirects(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
    return says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")(
        reader, writer
    )


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


LONG = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGEST_BODY + 1)
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
SERVERS: Mapping[str, tuple[Serve, str]] = {
    "accepts and is silent": (silent, "did not answer within 1.5 s"),
    "slow by bytes in its head": (dribbles, "did not answer within 1.5 s|is no HTTP"),
    "slow by bytes in its body": (says(ENDLESS, then=dribbles), "did not come to an end within 1.5 s"),
    "endless": (says(ENDLESS, then=floods), f"did not come to an end after {LARGEST_BODY} bytes"),
    "too long": (says(LONG, b"x" * (LARGEST_BODY + 1)), f"did not come to an end after {LARGEST_BODY} bytes"),
    "stalls in its body": (says(OK[:-1], then=stalls), "did not come to an end within 1.5 s"),
    "wrong status": (says(BUSY), "it answered 503"),
    "redirects": (redirects, "it answered 302"),
    "half-closed": (resets, "closed the connection without an answer"),
    "closes in its body": (says(OK[:-1]), "closed the connection in the middle"),
    "no HTTP": (says(b"hello\r\n\r\n"), "that is no HTTP"),
}


async def test_a_server_that_hangs_in_any_way_fails_its_probe_within_the_deadline(
    prober: LocalHealthProber, spawner: Spawner, log: Path
) -> None:
    async with AsyncExitStack() as stack:
        asked: dict[str, tuple[ProcessSettings, ProcessId | None, str]] = {}

        def row(
            name: str, port: int, words: str, scheme: str = "http", found: ProcessId | None = None
        ) -> None:
            url = f"{scheme}://127.0.0.1:{port}/health"
            asked[name] = settings(name=name.replace(" ", "-"), http=url), found or own_id(), words

        for name, (serve, words) in SERVERS.items():
            row(name, await stack.enter_async_context(page_server(serve)), words)
        tls_stall = await stack.enter_async_context(page_server(silent))
        row("TLS that stalls", tls_stall, "agreed on no TLS within 1.5 s", "https")
        row("no TLS", await stack.enter_async_context(page_server(says(OK))), "TLS|within", "https")
        row("backlog full", stack.enter_context(full_backlog()), "no connection came about within 1.5 s")
        row("refused", free_port(), "the connection is refused")
        port = free_port()
        stopped = await spawner.start([sys.executable, "-c", SERVER, str(port)], output=log)
        await until(lambda: "ready" in said(log), 60)
        os.kill(stopped.pid, signal.SIGSTOP)
        row("stopped", port, "it took the connection, but did not answer within 1.5 s", found=stopped)

        await asyncio.wait_for(
            prober.ask(settings(http="http://127.0.0.1:1/"), own_id()), 20
        )  # its child starts
        began = time.monotonic()
        answers = await asyncio.gather(*(prober.ask(one, found) for one, found, _ in asked.values()))
        took = time.monotonic() - began
    wrong = {
        name: answer
        for (name, (_, _, words)), answer in zip(asked.items(), answers, strict=True)
        if answer.ok is not False or not re.search(words, answer.detail)
    }
    assert not wrong
    assert took < 20


async def test_a_port_taken_over_by_another_is_said_with_who_holds_it(
    prober: LocalHealthProber, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    mine = await spawner.start(["sleep", "1000"], output=tmp_path / "mine.log")
    port = free_port()
    other = await spawner.start([sys.executable, "-c", SERVER, str(port)], output=log)
    await until(lambda: "ready" in said(log), 60)
    url = f"http://127.0.0.1:{port}/"
    assert await prober.ask(settings(http=url), other) == HealthAnswer(True, f"{url} answers 200")
    answer = await prober.ask(settings(http=url), mine)
    assert answer.ok is False
    name = Path(sys.executable).name
    assert answer.detail == f"127.0.0.1:{port} is held by process {other.pid} ({name}), not by {mine.pid}"
    held = await prober.ask(settings(http=url), None)  # while it is dead
    assert (held.ok, held.detail, held.holder) == (None, *[answer.detail.rpartition(", ")[0]] * 2)
    assert answer.holder == answer.detail
    told = {"p": f"127.0.0.1:{port} is held by process {other.pid} ({name})"}
    for way in ({"http": url}, {"tcp": f"127.0.0.1:{port}"}):
        assert await doubts_of([settings(start=["true"], **way)]) == told
    assert not await doubts_of([settings(start=[sys.executable, "-c", SERVER, str(port)], http=url)])
    by_tcp = settings(tcp=f"127.0.0.1:{port}")
    assert await prober.ask(by_tcp, mine) == answer
    assert await prober.ask(by_tcp, other) == HealthAnswer(True, f"127.0.0.1:{port} answers")


async def test_what_listens_for_a_container_is_no_stranger(
    prober: LocalHealthProber, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    port, docker_run = free_port(), await spawner.start(["sleep", "1000"], output=tmp_path / "mine.log")
    proxy = ["bash", "-c", 'exec -a docker-proxy "$@"', "-", sys.executable, "-c", SERVER, str(port)]
    await spawner.start(proxy, output=log)
    await until(lambda: "ready" in said(log), 60)
    assert (await prober.ask(settings(tcp=f"127.0.0.1:{port}"), docker_run)).ok


async def test_who_comes_after_nobody_held_the_port_is_found(
    prober: LocalHealthProber, spawner: Spawner, log: Path
) -> None:
    port = free_port()
    mine = await spawner.start(["sleep", "9012"], output=log)
    webpage = settings(http=f"http://127.0.0.1:{port}/")
    assert (await prober.ask(webpage, mine)).ok is False  # nobody listens
    other = await spawner.start([sys.executable, "-c", SERVER, str(port)], output=log)
    await until(lambda: "ready" in said(log), 60)
    answer = await prober.ask(webpage, mine)
    assert (answer.ok, f"is held by process {other.pid}" in answer.detail) == (False, True)


MANY = """
import os, time
for _ in range(15_000): os.dup(0)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("way", ["tcp", "http"])
async def test_who_holds_a_port_is_looked_up_beside_the_loop(
    prober: LocalHealthProber, spawner: Spawner, log: Path, tmp_path: Path, way: str
) -> None:
    """On a machine with databases and containers there are tens of thousands of descriptors."""
    logs = [tmp_path / f"many-{number}" for number in range(2)]
    mine, *_ = [await spawner.start([sys.executable, "-c", MANY], output=one) for one in logs]
    await until(lambda: all("ready" in said(one) for one in logs), 60)
    began = time.thread_time()
    socket_owners(frozenset({b"none"}))
    took_ms = (time.thread_time() - began) * 1000
    table = LinuxProcessTable(spawner)
    async with page_server(says(b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        with callback_times() as times:
            if way == "tcp":
                await table.look([settings(tcp=f"127.0.0.1:{port}")], {})
            else:
                await prober.ask(settings(http=f"http://127.0.0.1:{port}/"), mine)
    table.close()
    assert times.worst[0] < took_ms / 3, times.worst


async def test_who_holds_the_ports_of_many_is_looked_up_once(
    prober: LocalHealthProber, spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of them, each asked once a second, took more of the machine than all else."""
    mine, looks, links = (
        await spawner.start(["sleep", "9013"], output=log),
        list[int](),
        listening_ports._links,
    )

    def counted(pid: int) -> Iterator[str]:
        looks.append(pid)
        return links(pid)

    monkeypatch.setattr(listening_ports, "_links", counted)
    async with page_server(says(b"HTTP/1.1 500 No\r\n\r\n")) as port:
        page = settings(http=f"http://127.0.0.1:{port}/")
        answers = await asyncio.gather(*(prober.ask(page, mine) for _ in range(20)))
    assert all("is held by" in answer.detail for answer in answers)
    others = Counter(pid for pid in looks if pid not in (mine.pid, os.getpid()))
    assert max(others.values()) <= 3, others


async def test_a_child_that_listens_for_a_process_is_no_stranger(
    prober: LocalHealthProber, spawner: Spawner, log: Path
) -> None:
    port = free_port()
    shell = await spawner.start(["sh", "-c", f"'{sys.executable}' -c '{SERVER}' {port}; true"], output=log)
    await until(lambda: "ready" in said(log), 60)
    assert (await prober.ask(settings(http=f"http://127.0.0.1:{port}/"), shell)).ok


@pytest.mark.parametrize(
    ("more", "ok"),
    [
        ({}, True),
        ({"http_body": '"status": *"ok"'}, True),
        ({"http_body": "well"}, False),
        ({"http_status": "300-399, 204"}, False),
    ],
)
async def test_a_good_answer_is_one_of_the_status_and_body_asked_for(
    prober: LocalHealthProber, more: dict[str, Any], ok: bool
) -> None:
    body = b'{"status": "ok"}'
    page = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with page_server(says(page), "stranger") as port:  # whoever has signed its certificate
        url = f"https://127.0.0.1:{port}/"
        answer = await prober.ask(settings(http=url, timeout="5s", **more), own_id())
    assert answer.ok is ok, answer
    assert ok or "it answered 200" in answer.detail


@pytest.mark.parametrize("address", ["203.0.113.7", "224.0.0.1", "255.255.255.255", "ff02::1"])
async def test_a_name_that_leads_elsewhere_says_nothing_about_the_process(
    prober: LocalHealthProber, tmp_path: Path, address: str
) -> None:
    fake = tmp_path / "bin" / "getent"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho {address} STREAM app.test\n")
    fake.chmod(0o755)
    lied_to = Spawner()
    lied_to._inherited = {**lied_to._inherited, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    prober._spawner = lied_to
    try:
        answer = await prober.ask(settings(tcp="app.test:80"), own_id())
    finally:
        lied_to.close()
    assert answer.ok is None
    assert f"{address}, which is no address of this machine" in answer.detail


WITHOUT_PORTS = """
import asyncio, fcntl, socket, struct, sys

from tests.integration.host.test_health_probes import ask_without_ports

with socket.socket() as lo:
    fcntl.ioctl(lo, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
asyncio.run(ask_without_ports(sys.argv[1]))
"""


async def ask_without_ports(directory: str) -> None:
    """Print what is said of a server while others hold each port that a connection could come from."""
    ports = range(40_000, 40_008)
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{ports[0]} {ports[-1]}")
    child, spawner = ChildProber(), Spawner()
    prober = LocalHealthProber(spawner, child, LocalCommandProber(spawner, directory))
    with ExitStack() as stack:
        argv = [sys.executable, "-c", SERVER, "80"]
        server = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
        stack.callback(server.kill)
        assert server.stdout
        assert server.stdout.readline()
        stat = read_stat(server.pid)
        assert stat
        for port in ports:
            stack.enter_context(socket.socket()).bind(("0.0.0.0", port))
        table, tcp = LinuxProcessTable(spawner), settings(tcp="127.0.0.1:80")
        for one in (tcp, settings(http="http://127.0.0.1:80/", tcp="127.0.0.1:80")):
            print(await prober.ask(one, stat.found))
        seen = (await table.look((settings(command=["true"], start=[], tcp="127.0.0.1:80"),), {}))["p"]
        print(seen.answering, seen.detail)
        table.close()
    print(await prober.ask(tcp, stat.found))
    await prober.close()
    child.close()
    spawner.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network namespace")
def test_that_no_port_is_left_to_ask_from_says_nothing_about_the_process(tmp_path: Path) -> None:
    argv = ["unshare", "--net", sys.executable, "-c", WITHOUT_PORTS, str(tmp_path)]
    there = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    *unasked, seen, refused = there.stdout.splitlines()
    words = "no local port is free to connect from"
    assert len(unasked) == 2
    assert all("ok=None" in one and words in one for one in unasked), unasked
    assert seen.startswith("True ")
    assert words in seen
    assert "ok=False" in refused


WITHOUT_IPV6 = """
import asyncio, ctypes, fcntl, os, socket, struct, sys
from pathlib import Path

from tests.integration.host.test_health_probes import ask_localhost

if sys.argv[2] == "no addresses":
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
with socket.socket() as lo:
    fcntl.ioctl(lo, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
if sys.argv[2] == "no sockets":
    number = 41 if os.uname().machine == "x86_64" else 198
    steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, socket.AF_INET6)]
    steps += [(0x06, 0, 0, 0x00050000 + 97), (0x06, 0, 0, 0x7FFF0000)]  # EAFNOSUPPORT, else it is allowed
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()  # PR_SET_SECCOMP
asyncio.run(ask_localhost(sys.argv[1]))
"""


async def ask_localhost(directory: str) -> None:
    """Print what is said of a server at `localhost`: when it is asked, when it is searched for, and once it is gone."""
    child, spawner = ChildProber(), Spawner()
    prober = LocalHealthProber(spawner, child, LocalCommandProber(spawner, directory))
    table, tcp = LinuxProcessTable(spawner), settings(command=["true"], start=[], tcp="localhost:80")
    argv = [sys.executable, "-c", SERVER, "80"]
    with child_of_test(subprocess.Popen(argv, stdout=subprocess.PIPE)) as server:
        assert server.stdout
        assert server.stdout.readline()
        stat = read_stat(server.pid)
        assert stat
        print((await prober.ask(tcp, stat.found)).ok)
        print((await table.look((tcp,), {}))["p"].found == (stat.found,))
        server.kill()
    sight = (await table.look((tcp,), {}))["p"]
    print(sight.busy, sight.answering, sight.found)
    table.close()
    await prober.close()
    child.close()
    spawner.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a network namespace")
@pytest.mark.parametrize("how", ["no addresses", "no sockets"])
def test_what_listens_at_localhost_is_asked_on_a_machine_without_ipv6(tmp_path: Path, how: str) -> None:
    argv = ["unshare", "--net", sys.executable, "-c", WITHOUT_IPV6, str(tmp_path), how]
    there = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert there.stdout.splitlines() == ["True", "True", "False False ()"]


@pytest.mark.parametrize("kind", ["listening", "full", "gone", "no socket", "long gone"])
async def test_a_unix_socket_is_asked_for_a_connection(
    prober: LocalHealthProber, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "s"
    with ExitStack() as stack:
        if kind in ("listening", "full"):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(path))
            server.listen(0 if kind == "full" else 5)
            for _ in range(2 if kind == "full" else 0):
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect_ex(str(path))
        elif kind == "gone":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
        elif kind == "no socket":
            path.write_text("")
        answer = await prober.ask(settings(unix=str(path)), own_id())
    assert answer.ok is (kind == "listening"), answer
    assert str(path) in answer.detail


async def test_a_unix_socket_too_deep_below_a_home_is_not_asked_and_nobody_is_blamed(
    prober: LocalHealthProber, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / ("h" * 100)).mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen(5)
        answer = await prober.ask(settings(unix="~/s"), own_id())
    assert answer == HealthAnswer(None, "it could not be asked: AF_UNIX path too long")


EXEC: Mapping[str, tuple[list[str], bool | None, str]] = {
    "good": (["true"], True, "says that it is well"),
    "bad": (["sh", "-c", "echo one; echo two >&2; exit 3"], False, "exited with 3: one ↵ two"),
    "indented": (
        ["sh", "-c", "printf 'at\n        it\n\t\t^^\n'; exit 1"],
        False,
        r"exited with 1: at ↵ it ↵ \^\^$",
    ),
    "killed": (["sh", "-c", "kill -9 $$"], False, "was ended by signal 9"),
    "endless": (["sh", "-c", "trap '' TERM; yes | cat; sleep 1000"], False, "took longer than 1.5 s"),
    "with children": (["sh", "-c", "setsid sleep 1000 & sleep 1000"], False, "took longer than 1.5 s"),
    "absent": (["/no/such/program"], None, "there is no such file"),
}


async def test_a_command_is_asked_and_nothing_of_it_is_left(
    prober: LocalHealthProber, tmp_path: Path
) -> None:
    names = [name.replace(" ", "-") for name in EXEC]
    asked = [settings(name=name, exec=EXEC[key][0]) for name, key in zip(names, EXEC, strict=True)]
    answers = await asyncio.gather(*(prober.ask(one, own_id()) for one in asked))
    for (_, ok, words), answer in zip(EXEC.values(), answers, strict=True):
        assert answer.ok is ok, answer
        assert re.search(words, answer.detail), answer
    for name in names:
        assert not await find_bearers(effect=f"probe:{name}@{tmp_path}")


@pytest.mark.parametrize("exit_code", [0, 3])
async def test_what_a_probe_leaves_is_ended_at_once_after_it(
    prober: LocalHealthProber, tmp_path: Path, exit_code: int
) -> None:
    pids = tmp_path / "pids"
    kinds = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; env -i sleep 1000 & echo $!"
    script = f"exec >{pids}; {kinds}; exit {exit_code}"
    for _ in range(2):
        answer = await prober.ask(settings(exec=["sh", "-c", script], timeout="20s"), own_id())
        assert answer.ok is (exit_code == 0), answer
        left = [int(pid) for pid in pids.read_text().split()]
        assert len(left) == 3
        assert not [pid for pid in left if start_time_of(pid) is not None]


async def test_what_a_killed_daemon_left_of_a_probe_is_ended_before_the_next_one(
    prober: LocalHealthProber, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    mark = {EFFECT_MARK: f"probe:p@{tmp_path}"}
    left = await spawner.start(["sleep", "1000"], output=log, env=mark)
    while not await find_bearers(effect=mark[EFFECT_MARK]):
        assert is_alive(left)  # until it is executed, it has no environment
    assert (await prober.ask(settings(exec=["true"], timeout="5s"), own_id())).ok
    assert not is_alive(left)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs what belongs to another user")
async def test_a_command_runs_as_the_user_of_the_process_and_in_its_group(
    prober: LocalHealthProber, spawner: Spawner, log: Path, tmp_path: Path
) -> None:
    """Else whoever may change its `env_file`, or what lies in its `cwd`, would be root."""
    nobody, mark = find_user("nobody"), {EFFECT_MARK: f"probe:p@{tmp_path}"}
    assert nobody is not None
    left = await spawner.start(["sleep", "1000"], output=log, env=mark, user=nobody)
    while not await find_bearers(effect=mark[EFFECT_MARK], user=nobody):
        assert is_alive(left)  # until it is executed, it has no environment
    asked = ["sh", "-c", "echo $(id -u) in $(id -G), $USER at $HOME; exit 1"]
    answer = await prober.ask(settings(exec=asked, timeout="5s", user="nobody", group="daemon"), own_id())
    assert re.search(rf": {nobody.uid} in (\d+ )*1( \d+)*, nobody at {nobody.home}$", answer.detail), answer
    assert not is_alive(left)  # what a killed daemon left of it
    endless = settings(exec=["sh", "-c", "setsid sleep 1000 & sleep 1000"], timeout="1s", user="nobody")
    assert (await prober.ask(endless, own_id())).ok is False
    assert not await find_bearers(effect=mark[EFFECT_MARK], user=nobody)
    missing = await prober.ask(settings(exec=["true"], user="no-such-user"), own_id())
    assert missing.ok is None, missing


async def test_a_prober_that_ends_takes_its_commands_along(prober: LocalHealthProber, tmp_path: Path) -> None:
    coming = prober.ask(settings(exec=["sleep", "1000"], timeout="5m"), own_id())
    marker = f"probe:p@{tmp_path}"
    deadline = time.monotonic() + 60
    while not await find_bearers(effect=marker):
        assert time.monotonic() < deadline
    await prober.close()
    assert coming.cancelled()
    assert not await find_bearers(effect=marker)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
