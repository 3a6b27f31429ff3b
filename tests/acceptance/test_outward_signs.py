"""A real daemon tells the outside of itself: numbers, signs of life; and nobody who listens can hold it up."""

import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.acceptance.test_real_processes import NO_LIMITS, free_port

VICTIM = f'[[process]]\nname = "victim"\nstart = ["sleep", "9001"]\n{NO_LIMITS}\n'


def metrics(port: int, *more: str) -> str:
    return "\n".join(("[metrics]", f'listen = "127.0.0.1:{port}"', *more, VICTIM))


def page(port: int) -> str:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())
    return ""


def children(served: Served, module: str) -> list[int]:
    """The processes that the daemon has running of a module."""
    assert served.daemon is not None
    with suppress(psutil.NoSuchProcess):
        return [
            child.pid for child in psutil.Process(served.daemon.pid).children() if module in child.cmdline()
        ]
    return []


def errors(served: Served, whose: str) -> list[str]:
    with SqliteEventReader(served.home.path) as log:
        return [row.data for row in log.events(EventQuery(subject=whose, kinds=("error",)))]


@contextmanager
def pests(port: int) -> Iterator[None]:
    """Scrapers that hammer, and others that connect and never finish."""
    stop = threading.Event()

    def hammer() -> None:
        while not stop.is_set():
            page(port)

    def stall() -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"GET /metrics HT")
            stop.wait(timeout=60)

    threads = [threading.Thread(target=work) for work in (hammer, hammer, *[stall] * 40)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def reflexes(served: Served, count: int) -> list[float]:
    """Seconds from each kill to the replacement's start, as the log tells them."""
    for _ in range(count):
        pid = served.pid_when_up("victim")
        os.kill(pid, signal.SIGKILL)
        served.pid_when_up("victim", other_than=pid)
    with SqliteEventReader(served.home.path) as log:
        rows = list(log.events(EventQuery(kinds=("process-died", "effect-acked"))))
    return [(after.mono - died.mono) / 1e6 for died, after in pairwise(rows) if died.kind == "process-died"][
        -count:
    ]


@pytest.mark.wall_clock
def test_scrapers_that_hammer_and_stall_do_not_slow_the_loops(served: Served) -> None:
    port = free_port()
    served.configure(metrics(port))
    served.start()
    served.eventually(lambda: "pulse_up 1.0" in page(port), "the page")
    served.eventually(lambda: 'pulse_process_up{process="victim"} 1.0' in page(port), "the process on it")
    with pests(port):
        slow = sorted(reflexes(served, 10))
        assert slow[len(slow) // 2] < 0.3
        assert served.status()["vitals"]["system-resource"]["loop_late_ms"] < 2_000
    assert "pulse_up 1.0" in page(port)
    assert "pulse_ticks_total" in page(port)


def test_the_daemon_speaks_no_tls_and_imports_nothing_of_the_metrics(served: Served) -> None:
    port = free_port()
    served.configure(f'[heartbeat]\nurl = "https://127.0.0.1:{port}/"\nevery = "1s"\n{metrics(free_port())}')
    served.is_forked = False
    served.start()
    served.eventually(lambda: errors(served, "heartbeat"), "a beat that fails")
    assert served.daemon is not None
    maps = Path(f"/proc/{served.daemon.pid}/maps").read_text()
    assert "libssl" not in maps
    assert "_ssl" not in maps


def test_a_port_in_use_is_said_once_and_served_later(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        served.configure(metrics(port))
        served.start()
        served.eventually(lambda: errors(served, "metrics"), "the error")
    served.eventually(lambda: "pulse_up 1.0" in page(port), "the page")
    (said,) = errors(served, "metrics")
    assert "Address already in use" in said


def test_a_metrics_process_that_is_killed_is_started_again_and_that_is_said(served: Served) -> None:
    port = free_port()
    served.configure(metrics(port))
    served.start()
    served.eventually(lambda: page(port), "the page")
    (first,) = children(served, "upulse_cli.metrics_process")
    os.kill(first, signal.SIGKILL)
    served.eventually(
        lambda: children(served, "upulse_cli.metrics_process") not in ([], [first]), "another one"
    )
    served.eventually(lambda: page(port), "the page again")
    (said,) = errors(served, "metrics")
    assert "was ended by SIGKILL; it is started again" in said


def test_it_follows_the_settings(served: Served) -> None:
    port = free_port()
    served.configure(VICTIM)
    served.start()
    assert not children(served, "upulse_cli.metrics_process")
    served.configure(metrics(port))
    served.append("reload-requested")
    served.eventually(lambda: page(port), "the page")
    other = free_port()
    served.configure(metrics(other))
    served.append("reload-requested")
    served.eventually(lambda: page(other) and not page(port), "the page elsewhere")
    served.configure(VICTIM)
    served.append("reload-requested")
    served.eventually(lambda: not children(served, "upulse_cli.metrics_process"), "its end")
    assert errors(served, "metrics") == []


def test_nothing_of_it_outlives_the_daemon(served: Served) -> None:
    port = free_port()
    served.configure(f'[heartbeat]\nurl = "http://127.0.0.1:1/"\nevery = "1s"\n{metrics(port)}')
    modules = ("upulse_cli.metrics_process", "pulse_adapters.network.probe")
    for end in (served.stop, served.kill):
        served.start()
        served.eventually(lambda: page(port) and all(children(served, one) for one in modules), "both")
        pids = [pid for module in modules for pid in children(served, module)]
        end()
        until = time.monotonic() + 60
        while any(alive(pid) for pid in pids):
            assert time.monotonic() < until
            time.sleep(0.01)


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@contextmanager
def listener() -> Iterator[tuple[int, list[float]]]:
    """A server that notes when a sign of life came."""
    came: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(time.monotonic())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield int(server.server_address[1]), came
    finally:
        server.shutdown()
        server.server_close()


def seen(came: list[float], more: int) -> Callable[[], bool]:
    before = len(came)
    return lambda: len(came) >= before + more


def test_a_daemon_gives_signs_of_life_until_it_stands_still(served: Served) -> None:
    with listener() as (port, came):
        served.configure(f'[heartbeat]\nurl = "http://127.0.0.1:{port}/"\nevery = "1s"\n{VICTIM}')
        served.start()
        served.eventually(seen(came, 3), "three beats")
        assert served.daemon is not None
        os.kill(served.daemon.pid, signal.SIGSTOP)
        try:
            # one was under way, perhaps; the absence of others can only be waited for
            served.eventually(lambda: time.monotonic() - came[-1] > 3, "no more beats")
        finally:
            os.kill(served.daemon.pid, signal.SIGCONT)
        served.eventually(seen(came, 2), "two more")
        assert len(errors(served, "heartbeat")) <= 1  # of the one that was under way
