"""The metrics process by itself: what it asks, what it writes, how it ends."""

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.metrics.metrics_scene import (
    Asked,
    complaint,
    eventually,
    fetched,
    free_port,
    is_served,
    measuring,
)

ANSWER = {
    "daemon": {"since": None},
    "effects": {"pending": 3},
    "tick": {"count": 5, "last_ms": None, "p99_ms": None},
}


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    daemon = Asked(tmp_path / "run" / "pulse.sock", ANSWER)
    yield daemon
    daemon.close()


def test_scrapers_who_hammer_ask_the_daemon_once_a_second(tmp_path: Path, asked: Asked) -> None:
    port = free_port()
    with measuring(tmp_path, "--listen", f"127.0.0.1:{port}"):
        eventually(lambda: is_served(port), "the page")
        before, began, pages = asked.count, time.monotonic(), 0
        while pages <= 100 or time.monotonic() - began < 2:
            threads = [threading.Thread(target=is_served, args=(port,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            pages += len(threads)
        took = time.monotonic() - began
        assert asked.count - before <= took + 1


def test_a_daemon_that_hangs_is_down_and_does_not_hold_up_the_page(tmp_path: Path, asked: Asked) -> None:
    port = free_port()
    with measuring(tmp_path, "--listen", f"127.0.0.1:{port}"):
        assert "pulse_up 1.0" in eventually(lambda: is_served(port), "the page")
        asked.hangs = True
        down = lambda: "pulse_up 0.0" in fetched(port)  # noqa: E731
        assert eventually(down, "the daemon to be down")


def test_a_port_in_use_is_said_once_and_served_when_it_is_free(tmp_path: Path, asked: Asked) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with measuring(tmp_path, "--listen", f"127.0.0.1:{port}") as child:
            assert child.stdout is not None
            said = complaint(child)
            assert said == f"127.0.0.1:{port} can't be listened on: Address already in use; it is tried again"
            taken.close()
            assert "pulse_up 1.0" in eventually(lambda: is_served(port), "the page")
            child.kill()
            assert child.stdout.read() == b""


def test_the_file_is_written_and_says_at_the_end_that_nobody_is_there(tmp_path: Path, asked: Asked) -> None:
    file = tmp_path / "pulse.prom"
    with measuring(tmp_path, "--textfile", str(file), "--every", "0.05") as child:
        eventually(file.exists, "the file")
        assert "pulse_up 1.0" in file.read_text()
        first = file.stat().st_ino
        eventually(lambda: file.stat().st_ino != first, "another one")
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(60) == 0
    text = file.read_text()
    assert "pulse_up 0.0" in text
    assert "pulse_ticks_total" not in text


def test_a_directory_that_is_not_there_is_said_once(tmp_path: Path, asked: Asked) -> None:
    file = tmp_path / "later" / "pulse.prom"
    with measuring(tmp_path, "--textfile", str(file), "--every", "0.05") as child:
        assert child.stdout is not None
        assert complaint(child) == f"{file} can't be written: No such file or directory"
        file.parent.mkdir()
        eventually(file.exists, "the file")
        child.kill()
        assert child.stdout.read() == b""


def test_it_gives_way_to_everybody(tmp_path: Path, asked: Asked) -> None:
    port = free_port()
    with measuring(tmp_path, "--listen", f"127.0.0.1:{port}") as child:
        eventually(lambda: is_served(port), "the page")
        assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[16] == str(
            min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        )
        assert Path(f"/proc/{child.pid}/oom_score_adj").read_text() == "500\n"
        assert 0 < resource.prlimit(child.pid, resource.RLIMIT_DATA)[1] < 1 << 30


def test_without_its_package_it_says_what_to_install() -> None:
    from pulse_adapters.metrics.page import require_package
    from pulse_core.model.errors import PulseError

    with pytest.raises(PulseError, match=r"pip install 'upulse\[metrics\]'"):
        require_package("no_such_package_here", "prometheus-client", "metrics")
    with pytest.raises(PulseError, match=r"pip install 'upulse\[otel\]'"):
        require_package("no_such_package_here.inside", "opentelemetry-exporter-otlp-proto-http", "otel")
    require_package("prometheus_client", "prometheus-client", "metrics")
