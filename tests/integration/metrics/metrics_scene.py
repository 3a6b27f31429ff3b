"""Servers on loopback that count who comes, and the metrics process beside them."""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.processes import as_worker

PATIENCE = 60.0


def eventually(holds: Callable[[], Any], what: str) -> Any:
    """What is seen at last."""
    until = time.monotonic() + PATIENCE
    while not (seen := holds()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.01)
    return seen


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetched(port: int, timeout: float = 30.0) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as answer:
        return str(answer.read().decode())


def is_served(port: int) -> str:
    try:
        return fetched(port)
    except OSError:
        return ""


class Asked:
    """A daemon's socket that counts questions and answers all with the same; or never, if `hangs`."""

    def __init__(self, path: Path, answer: dict[str, Any]) -> None:
        self.count, self.hangs = 0, False
        self._closing = threading.Event()
        self._answer = json.dumps({"item": answer}).encode() + b'\n{"end": true}\n'
        self._listening = socket.socket(socket.AF_UNIX)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._listening.bind(str(path))
        self._listening.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as wire:
            for _ in wire:
                self.count += 1
                if self.hangs:
                    self._closing.wait(timeout=60)
                    return
                wire.write(self._answer)
                wire.flush()

    def close(self) -> None:
        self._closing.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def measuring(home: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """The metrics process; its standard input is its life, and on its standard output it says what is in the way."""
    argv = [sys.executable, "-m", "upulse_cli.metrics_process", "--home", str(home), *words]
    child = subprocess.Popen(as_worker(*argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield child
    finally:
        child.kill()
        child.wait(timeout=60)
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()


def complaint(child: subprocess.Popen[bytes]) -> str:
    """What the metrics process says next."""
    assert child.stdout is not None
    why = json.loads(child.stdout.read(int.from_bytes(child.stdout.read(4), "big")))["why"]
    assert isinstance(why, str)
    return why


@contextmanager
def receiving(answer: Callable[[bytes], int], endless: bool = False) -> Iterator[int]:
    """An HTTP server that hands each body to `answer`, and answers with the status that it returns; its port.

    endless: whatever else it answers has no end.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(answer(body))
            if not endless:
                self.send_header("Content-Length", "0")
            self.end_headers()
            with suppress(OSError):
                while endless:
                    self.wfile.write(b"x" * 4_096)
                    time.sleep(0.001)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
