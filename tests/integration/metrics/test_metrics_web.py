"""Numbers over HTTP: for whoever asks, beside whoever asks too much, too slowly, or not at all."""

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from pulse_adapters.metrics.families import MetricsInput
from pulse_adapters.metrics.page import Page
from pulse_adapters.metrics.web import MOST, PageServer, serve_forever
from tests.integration.metrics.metrics_scene import eventually, fetched, free_port


@pytest.fixture
def port() -> Iterator[int]:
    server = PageServer("127.0.0.1:0", Page(lambda: MetricsInput(True, {}), "1"))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()


def connected(port: int, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(said)
    return connection


def test_the_page_is_where_prometheus_looks(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?x=1") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert "pulse_up 1.0" in answer.read().decode()
    head = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", method="HEAD")
    with urllib.request.urlopen(head) as answer:
        assert (answer.status, answer.read()) == (200, b"")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("POST", "/metrics", 501)])
def test_anything_else_is_not_there(port: int, method: str, path: str, status: int) -> None:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked)
    assert refused.value.code == status
    refused.value.close()


@pytest.mark.wall_clock
def test_callers_who_never_finish_asking_keep_nobody_out(port: int) -> None:
    silent = [connected(port, b"GET /met") for _ in range(3 * MOST)]
    began = time.monotonic()
    for _ in range(5):
        assert "pulse_up" in fetched(port)
    assert time.monotonic() - began < 4  # who says nothing is hung up after five
    for one in silent:
        one.close()


def test_callers_who_never_read_keep_nobody_out(port: int) -> None:
    deaf = [connected(port, b"GET /metrics HTTP/1.0\r\n\r\n") for _ in range(3 * MOST)]
    assert "pulse_up" in fetched(port)
    for one in deaf:
        one.close()


def test_a_caller_who_says_nothing_is_hung_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_adapters.metrics.web.PageHandler.timeout", 0.05)
    with connected(port) as silent:
        assert silent.recv(1) == b""


def test_many_at_once_are_all_answered(port: int) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(fetched(port))) for _ in range(MOST // 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == MOST // 2


def test_a_port_in_use_is_words(port: int) -> None:
    page = Page(lambda: MetricsInput(True, {}), "1")
    assert serve_forever(f"127.0.0.1:{port}", page) == (
        f"127.0.0.1:{port} can't be listened on: Address already in use; it is tried again"
    )


def test_an_address_that_is_nobodys_is_words() -> None:
    said = serve_forever("192.0.2.1:9464", Page(lambda: MetricsInput(True, {}), "1"))
    assert said.startswith("192.0.2.1:9464 can't be listened on: ")


def test_it_also_serves_over_version_six() -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    port = free_port()
    page = Page(lambda: MetricsInput(True, {}), "1")
    try:
        server = PageServer(f"[::1]:{port}", page)
    except OSError:
        pytest.skip("there is no IPv6 here")
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def answers() -> bool:
        with urllib.request.urlopen(f"http://[::1]:{port}/metrics") as answer:
            return b"pulse_up" in answer.read()

    assert eventually(answers, "the page")
    server.shutdown()
    server.server_close()
