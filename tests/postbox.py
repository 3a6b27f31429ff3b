"""An HTTP server on loopback that takes what is posted to it, or behaves badly."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Manner = Callable[[BaseHTTPRequestHandler], None]


def accept(handler: BaseHTTPRequestHandler) -> None:
    """As it should be."""
    handler.send_response(200)
    handler.end_headers()


def fail(handler: BaseHTTPRequestHandler) -> None:
    """Says that it can't."""
    handler.send_response(500)
    handler.end_headers()


def moves(handler: BaseHTTPRequestHandler, status: int) -> None:
    """Leads elsewhere, to a place where anything is accepted."""
    handler.send_response(status)
    handler.send_header("Location", f"/moved-by-{status}")
    handler.end_headers()


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Dies before it answers."""
    handler.connection.close()


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Answers without end, a few bytes at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    with suppress(OSError):
        while True:
            handler.wfile.write(b"x-more: 1\r\n")
            time.sleep(0.2)


def flood(handler: BaseHTTPRequestHandler, piece: bytes = b"x" * 4_096) -> None:
    """Accepts, and answers without end."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    with suppress(OSError):
        while True:
            handler.wfile.write(piece)
            time.sleep(0.001)


def bomb(handler: BaseHTTPRequestHandler) -> None:
    """Accepts at once, and answers with four gigabytes that are packed into four megabytes."""
    packed = gzip.compress(bytes(1 << 20))  # 64 of them took longer than a client on a busy machine waits
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + packed * 4_096)


@dataclass
class Postbox:
    """posts: what arrived, as (path, JSON), in order; manners: how it answers, by path (else it accepts)."""

    posts: list[tuple[str, Any]] = field(default_factory=list)
    manners: dict[str, Manner] = field(default_factory=dict)
    came: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def url(self, path: str = "", scheme: str = "json") -> str:
        """Where Apprise posts to, without much patience."""
        return f"{scheme}://127.0.0.1:{self.port}/{path}?cto=2&rto=2"

    @property
    def titles(self) -> list[str]:
        return [post["title"] for _, post in self.posts]


@contextmanager
def postbox() -> Iterator[Postbox]:
    """A postbox that answers."""
    box = Postbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            path = self.path.split("?")[0].strip("/")
            body = self.rfile.read(int(self.headers["content-length"]))
            box.posts.append((path, json.loads(body)))
            box.came.set()
            with suppress(OSError):
                box.manners.get(path, accept)(self)

        def do_GET(self) -> None:
            accept(self)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    box.port = server.server_address[1]
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield box
    finally:
        server.shutdown()
        serving.join(30)
        server.server_close()
