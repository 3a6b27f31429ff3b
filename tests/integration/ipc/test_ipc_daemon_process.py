"""The daemon as a process in the background, on a disk that says nothing of it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc import daemon_process
from pulse_adapters.ipc.daemon_process import DaemonProcess, demand_free
from pulse_adapters.ipc.lock import HomeLock, holder
from pulse_core.home import HomeLayout
from pulse_core.model.errors import HomeBusy
from tests.processes import child_of_test
from upulse_cli import serve


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
            thread.join(10)


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
    with child_of_test(subprocess.Popen(["sleep", "9013"])) as child, answers(home, child.pid):
        try:
            found = DaemonProcess(home, str, print).stop(5.0)
            assert (found, child.poll() is None) == ((child.pid, False) if stopped else (None, True))
        finally:
            child.kill()


def test_where_no_file_may_have_a_byte_a_start_that_fails_says_why(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    code = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from pulse_adapters.ipc.daemon_process import DaemonProcess\nfrom pulse_core.home import HomeLayout\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nDaemonProcess(HomeLayout(Path(sys.argv[1])), str, print).start()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(home.path)], capture_output=True, text=True, timeout=60
    )
    assert "):\nit could say nothing: no file may have more than 0 bytes here; see: ulimit -f" in ran.stderr


@pytest.mark.parametrize("fault", ["a folder", "a loop"])
def test_where_no_file_takes_what_the_daemon_says_it_is_said_and_it_speaks_into_another(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = HomeLayout(tmp_path)
    if fault == "a loop":
        home.daemon_log.symlink_to(home.daemon_log)
    else:
        home.daemon_log.mkdir()
    why = "can't be written (Too many levels of symbolic links)" if fault == "a loop" else "is no plain file"
    with DaemonProcess(home, str, print)._log() as log:
        log.write(b"why it did not start")
        log.seek(0)
        assert log.read() == b"why it did not start"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with DaemonProcess(home, str, print)._log() as log:
        assert log.name == os.devnull
        assert log.seek(0, os.SEEK_END) == 0
        log.write(b"it goes on")
    words = f"{home.daemon_log} {why}; what the daemon says is kept nowhere\n"
    assert capsys.readouterr().out == words * 2


def test_a_command_that_holds_the_home_for_a_moment_is_waited_for_and_nobody_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    with ExitStack() as held:
        held.enter_context(HomeLock(home.lock, "1"))
        timer = threading.Timer(0.1, held.close)
        timer.start()
        demand_free(home)
        timer.join(10)
    monkeypatch.setattr(daemon_process, "LONGEST_COMMAND", 0.05)
    with HomeLock(home.lock, "1"), pytest.raises(HomeBusy, match=str(os.getpid())):
        demand_free(home)


def test_a_daemon_that_does_not_answer_is_not_waited_for_as_long_as_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    own_words = Path("/proc/self/cmdline").read_text().split("\0")
    monkeypatch.setattr(daemon_process, "MODULE", own_words[0])
    monkeypatch.setattr(daemon_process, "PATIENCE", 0.0)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it was waited for"))
    with HomeLock(home.lock, "1"), pytest.raises(HomeBusy, match=str(os.getpid())):
        demand_free(home)


def test_a_start_waits_for_a_command_that_holds_its_home_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    for module in (daemon_process, serve):
        monkeypatch.setattr(module, "PATIENCE", 0.0)
    with ExitStack() as command:
        command.enter_context(HomeLock(home.lock, "1"))
        # No daemon answers; it ends.
        monkeypatch.setattr(daemon_process, "_answer", lambda _: command.close())
        with serve.taken(home):
            assert holder(home.lock)
