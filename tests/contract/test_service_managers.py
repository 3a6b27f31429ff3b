"""What every service manager promises: it is told in order, and nobody waits for it or stumbles over it."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulse_adapters.memory.daemon_control import MemoryServiceManager
from pulse_adapters.systemd.notify import Notifier
from pulse_core.ports.service_manager import ServiceManager

WORDS = {
    "EXTEND_TIMEOUT_USEC": "extend_timeout",
    "READY": "ready",
    "RELOADING": "reloading",
    "STOPPING": "stopping",
    "WATCHDOG": "watchdog",
}


@dataclass
class Managed:
    """A manager that wants a sign of life every two seconds, one that wants none, and what the first one was told."""

    manager: ServiceManager
    careless: ServiceManager
    told: Callable[[], list[str]]


@pytest.fixture(params=["memory", "systemd"])
def managed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Managed]:
    if request.param == "memory":
        memory = MemoryServiceManager(2.0)
        yield Managed(memory, MemoryServiceManager(), lambda: memory.told)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(30)

        def told() -> list[str]:
            messages = (listening.recv(4096).decode() for _ in range(5))
            return [WORDS[message.partition("=")[0]] for message in messages]

        yield Managed(Notifier(str(tmp_path / "notify"), 2_000_000), Notifier(), told)


def test_it_hears_everything_in_order(managed: Managed) -> None:
    manager = managed.manager
    for tell in (
        manager.extend_timeout, manager.ready, manager.reloading, manager.watchdog, manager.stopping
    ):  # fmt: skip
        tell()
    assert managed.told() == ["extend_timeout", "ready", "reloading", "watchdog", "stopping"]


def test_it_says_how_often_it_wants_a_sign_of_life(managed: Managed) -> None:
    assert managed.manager.watchdog_seconds() == 2.0
    assert managed.careless.watchdog_seconds() is None


def test_one_that_nobody_listens_to_is_told_in_vain_and_raises_nothing(
    managed: Managed, tmp_path: Path
) -> None:
    for manager in (managed.careless, Notifier(str(tmp_path / "gone"), 1)):
        manager.extend_timeout()
        manager.ready()
        manager.watchdog()
        manager.stopping()
