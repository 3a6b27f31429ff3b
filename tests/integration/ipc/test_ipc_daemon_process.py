"""The daemon as a process in the background, on a disk that says nothing of it."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_core.home import HomeLayout


@contextmanager
def answers(home: HomeLayout, pid: int) -> Iterator[None]:
    """Somebody who says at the home's socket that he is its daemon."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(
                    json.dumps({"item": {"daemon": {"pid": pid}}}).encode() + b'\n{"end": true}\n'
                )

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(home.socket))
        server.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(("is_readable", "stopped"), [(False, True), (True, False)])
def test_a_daemon_whose_lock_the_disk_does_not_give_is_found_as_the_status_finds_it(
    tmp_path: Path, is_readable: bool, stopped: bool
) -> None:
    home = HomeLayout(tmp_path)
    home.run.mkdir()
    if is_readable:
        home.lock.touch()
    else:
        home.lock.symlink_to(home.lock)  # whoever opens it has an error, as of a disk that fails
    with subprocess.Popen(["sleep", "9013"]) as child, answers(home, child.pid):
        try:
            found = DaemonProcess(home, str, print).stop(5.0)
            assert (found, child.poll() is None) == ((child.pid, False) if stopped else (None, True))
        finally:
            child.kill()
