"""What the notifier writes to a real socket, and that it never stands in the way."""

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.systemd import notify
from pulse_adapters.systemd.notify import Notifier
from pulse_adapters.workers.descriptor_share import SpareDescriptor


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The manager's end of a notify socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(str(tmp_path / "notify"))
        end.settimeout(5)
        yield end


def speaking_to(manager: socket.socket) -> Notifier:
    return Notifier.from_environment({"NOTIFY_SOCKET": manager.getsockname()})


def test_each_word_is_one_datagram(manager: socket.socket) -> None:
    notifier = speaking_to(manager)
    notifier.ready()
    notifier.watchdog()
    notifier.stopping()
    said = [manager.recv(4096).decode() for _ in range(3)]
    assert said == ["READY=1", "WATCHDOG=1", "STOPPING=1"]


def test_what_a_manager_does_not_read_yet_is_sent_later_in_order_and_nobody_waits_for_that(
    manager: socket.socket,
) -> None:
    notifier = speaking_to(manager)
    fill(manager)
    for _ in range(10):
        notifier.reloading()
        notifier.ready()
    assert heard(manager, 20) == ["RELOADING=1", "READY=1"] * 10


def test_a_watchdog_is_told_once_others_leave_room_in_the_queue(manager: socket.socket) -> None:
    notifier = speaking_to(manager)
    fill(manager)
    for _ in range(3):
        notifier.watchdog()
    notifier.ready()
    assert heard(manager, 2) == ["WATCHDOG=1", "READY=1"]


def fill(manager: socket.socket) -> None:
    """Have others fill the queue."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others, suppress(BlockingIOError):
        others.setblocking(False)
        while True:
            others.sendto(b"of others", manager.getsockname())


def heard(manager: socket.socket, most: int) -> list[str]:
    """So many first lines of messages that are not of others."""
    said: list[str] = []
    while len(said) < most:
        word = manager.recv(4096).decode().partition("\n")[0]
        said += [] if word == "of others" else [word]
    return said


def test_the_watchdog_is_told_where_no_descriptor_is_left(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare, notifier, taken = SpareDescriptor(), speaking_to(manager), list[int]()
    monkeypatch.setattr(notify, "SPARE", spare)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare.hold()
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(manager.fileno()))
        notifier.ready()
        notifier.watchdog()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for one in taken:
            os.close(one)
    assert [manager.recv(4096) for _ in range(2)] == [b"READY=1", b"WATCHDOG=1"]


def test_a_reload_says_when_it_began(manager: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    speaking_to(manager).reloading()
    word, _, began = manager.recv(4096).decode().partition("\nMONOTONIC_USEC=")
    assert word == "RELOADING=1"
    assert before <= int(began) <= time.monotonic_ns() // 1000


def test_an_abstract_socket_is_written_with_an_at_sign() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(f"\0pulse-test-{os.getpid()}")
        end.settimeout(5)
        Notifier.from_environment({"NOTIFY_SOCKET": f"@pulse-test-{os.getpid()}"}).ready()
        assert end.recv(4096) == b"READY=1"


def test_the_variables_are_taken_away_from_what_is_started_later() -> None:
    environ = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "PATH": "/bin"}
    Notifier.from_environment(environ)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("pid", "seconds"), [(str(os.getpid()), 30.0), ("", 30.0), ("1", None)], ids=["mine", "none", "another's"]
)
def test_the_watchdog_is_mine_unless_it_names_another(pid: str, seconds: float | None) -> None:
    environ = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": pid}
    assert Notifier.from_environment(environ).watchdog_seconds() == seconds


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/no/such/socket"}, {"NOTIFY_SOCKET": "vsock:2"}])
def test_nobody_to_speak_to_is_no_failure(environ: dict[str, str]) -> None:
    notifier = Notifier.from_environment(environ | {"WATCHDOG_USEC": "soon"})
    notifier.ready()
    assert notifier.watchdog_seconds() is None


@pytest.mark.wall_clock
def test_a_manager_that_does_not_read_holds_up_no_heartbeat(manager: socket.socket) -> None:
    notifier = speaking_to(manager)
    began = time.monotonic()
    for _ in range(2_000):  # the queue takes a few hundred at most
        notifier.watchdog()
    assert time.monotonic() - began < 1
