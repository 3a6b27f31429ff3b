"""Serves the page over HTTP: a slow or endless request does not block others for long."""

import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from pulse_adapters.metrics.page import Page

PATH = "/metrics"
MOST = 32
"""Connections at the same time; for one more the oldest is hung up."""

LOOK_S = 1.0
"""Seconds between two looks at whether serving is to end."""

SILENT_S = 5.0
"""Seconds that a caller may take to say, or to take, anything."""


class PageServer(ThreadingTCPServer):
    """The page at an address as `127.0.0.1:9464` or `[::1]:9464`. Raises OSError if that can't be bound."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, listen: str, page: Page) -> None:
        host, _, port = listen.rpartition(":")
        family, *_, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        self.page = page
        self.address_family = family
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__((str(address[0]), int(address[1])), PageHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, after closing the oldest connection if there are too many."""
        with self._lock:
            if len(self._open) >= MOST:
                del self._open[oldest := next(iter(self._open))]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread sees that, and closes it
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore it: a client that disconnects early is no error."""


class PageHandler(BaseHTTPRequestHandler):
    """One request."""

    server: PageServer
    server_version = "Pulse"
    sys_version = ""
    timeout = SILENT_S

    def do_GET(self) -> None:
        """Serve the page, or a hint at its path."""
        if self.path.partition("?")[0] != PATH:
            return self._say(404, f"the metrics are at {PATH}\n".encode(), "text/plain; charset=utf-8")
        return self._say(200, *self.server.page.served(self.headers.get("Accept", "")))

    do_HEAD = do_GET

    def _say(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def serve_forever(listen: str, page: Page) -> str:
    """Serve the page there for ever; returns only if that is impossible, with the reason."""
    try:
        server = PageServer(listen, page)
    except OSError as error:
        return f"{listen} can't be listened on: {error.strerror or error}; it is tried again"
    with server:
        server.serve_forever(LOOK_S)
    return ""
