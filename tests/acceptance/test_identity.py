"""Which process a real daemon guards: what it started until that dies, never a stranger and never a helper of the dead."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from pulse_adapters.workers.proc import command_line, live_processes
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome
from tests.long_form import sample, sampled
from tests.processes import child_of_test

NO_LIMITS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "30s" }'
SLEEPER = (sys.executable, "-c", "import time; time.sleep(1000)")


def test_a_stranger_that_matches_changes_nothing_and_is_left_alone(served: Served) -> None:
    start = json.dumps([*SLEEPER, "guarded9041"])
    served.configure(
        f'[[process]]\nname = "it"\nstart = {start}\nmatch = "guarded9041"\n{NO_LIMITS}\n'
        '[watch]\nprocess_interval = "100ms"\n'
    )
    served.start()
    first = served.pid_when_up("it")
    with child_of_test(subprocess.Popen([*SLEEPER, "of guarded9041"])) as stranger:
        second = first
        for _ in range(2):
            os.kill(second, signal.SIGKILL)
            second = served.pid_when_up("it", other_than=second)
            assert second != stranger.pid
        told = CliHome(served.home.path).upulse("config", "check")
        assert f"it: process {second} matches; 1 other matches: {stranger.pid}" in told.out + told.err
        served.append("process-stop-requested", "it", expires_us=10**10)
        served.eventually(lambda: not Path(f"/proc/{second}/fd").exists(), "it is ended")
        served.eventually(
            lambda: f"process {stranger.pid} matches" in str(served.process("it")), "it is told"
        )
        assert stranger.poll() is None
        stranger.kill()


def test_a_program_that_helps_is_not_taken_for_its_dead_main_process_by_the_next_daemon(
    served: Served,
) -> None:
    script = "setsid sleep 9042 & while :; do sleep 0.1; done"
    served.configure(f'[[process]]\nname = "it"\nstart = {json.dumps(["sh", "-c", script])}\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("it")
    served.kill()
    os.kill(first, signal.SIGKILL)
    served.start()
    second = served.pid_when_up("it", other_than=first)
    line = Path(f"/proc/{second}/cmdline")  # empty while it is executed
    assert b"setsid sleep 9042" in served.eventually(line.read_bytes, "its command line")


def test_a_daemon_that_is_started_again_in_another_time_namespace_knows_whom_it_guards(
    served: Served, tmp_path: Path
) -> None:
    shifted = ("unshare", "--time", "--boottime", "100000")
    if subprocess.run([*shifted, "true"], capture_output=True, timeout=60).returncode:
        pytest.skip("no time namespace can be made here")
    served.configure(f'[[process]]\nname = "it"\nstart = {json.dumps(SLEEPER)}\n{NO_LIMITS}\n')
    served.start()
    first, known = served.pid_when_up("it"), served.process("it")
    served.kill()
    inside = tmp_path / "inside"
    inside.write_text(f'#!/bin/sh\nexec {" ".join(shifted)} {sys.executable} "$@"\n')
    inside.chmod(0o700)
    served.python = str(inside)
    served.start()
    assert served.pid_when_up("it") == first
    assert served.process("it")["since"] == known["since"]
    os.kill(first, signal.SIGKILL)
    second = served.pid_when_up("it", other_than=first)
    served.kill()
    served.python = sys.executable
    served.start()
    assert served.pid_when_up("it") == second


SERVER = """
import os, socket, time
server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
any(os.fork() == 0 for _ in range(2)) and WORKER
time.sleep(1000)
"""
"""Two workers that have executed nothing show what their main process shows, and have its socket."""
WORKERS = {"fork": "None", "setsid": "os.setsid()"}
SERVERS = sample(
    [("fork", "start"), ("setsid", "match"), ("fork", "tcp")],
    [(worker, way) for worker in WORKERS for way in ("start", "match", "tcp")],
)
"""Of what kind the workers are, and how the main process is recognised."""
LATE = 'restart = { max = 1000, backoff = "1200ms", backoff_max = "1200ms", healthy_after = "1h" }'
"""The second restart looks first: the death is no news any more."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Server:
    """A daemon that guards such a server, recognised in this way (`start`, `match` or `tcp`)."""

    def __init__(self, served: Served, worker: str, way: str, restart: str = LATE) -> None:
        self.served, port = served, free_port()
        source = SERVER.replace("WORKER", WORKERS[worker])
        self.argv = [sys.executable, "-c", source, f"guarded{port}"]
        ways = {
            "start": "",
            "match": f'match = "guarded{port}"\n',
            "tcp": f'tcp = "127.0.0.1:{port}"\n',
        }
        served.configure(
            f'[[process]]\nname = "it"\nstart = {json.dumps(self.argv)}\nenv = {{ PORT = "{port}" }}\n{ways[way]}'
            f'{restart}\n[watch]\nprocess_interval = "100ms"\n'
        )

    def alive(self) -> set[int]:
        """The pids of all of it."""
        return {one.pid for one in live_processes() if command_line(one.pid) == self.argv}

    def whole(self, before: Collection[int] = ()) -> tuple[int, set[int]]:
        """Its main process and all of it, once it is up with its workers and nobody of before is left."""

        def seen() -> set[int]:
            alive = self.alive()
            return alive if len(alive) == 3 and not alive.intersection(before) else set()

        alive: set[int] = self.served.eventually(seen, "it with its workers, and nobody else")
        main = self.served.pid_when_up("it")
        assert main in alive
        return main, alive


@pytest.mark.parametrize(("worker", "way"), sampled(SERVERS, 2))
def test_workers_of_a_dead_server_are_never_taken_for_it(served: Served, worker: str, way: str) -> None:
    server = Server(served, worker, way)
    served.start()
    before = set[int]()
    for _ in range(3):
        main, alive = server.whole(before)
        os.kill(main, signal.SIGKILL)
        before |= alive
    server.whole(before)
    served.append("process-stop-requested", "it", expires_us=10**10)
    served.eventually(lambda: not server.alive(), "all of it is ended")


@pytest.mark.parametrize(("worker", "way"), sampled(SERVERS, 3))
def test_workers_are_not_taken_for_their_dead_server_by_the_next_daemon(
    served: Served, worker: str, way: str
) -> None:
    server = Server(served, worker, way)
    served.start()
    main, before = server.whole()
    served.kill()
    os.kill(main, signal.SIGKILL)
    served.start()
    server.whole(before)


def test_who_shows_the_mark_of_a_process_is_not_taken_for_it_by_the_next_daemon(served: Served) -> None:
    served.configure(
        f'[[process]]\nname = "it"\nstart = {json.dumps([*SLEEPER, "guarded9044"])}\n{NO_LIMITS}\n'
    )
    served.start()
    main = served.pid_when_up("it")
    served.kill()
    os.kill(main, signal.SIGKILL)
    marks = {
        "PULSE_PROCESS": f"it@{served.home.path}",
        "PULSE_EFFECT": "0198c0de-0000-7000-8000-000000000000",
    }
    forged = subprocess.Popen([*SLEEPER, "guarded9044"], env={**os.environ, **marks}, start_new_session=True)
    with child_of_test(forged):
        served.start()
        assert served.pid_when_up("it") != forged.pid
        forged.kill()


def test_a_pid_file_from_before_the_clock_was_set_has_no_second_copy_started(
    served: Served, tmp_path: Path
) -> None:
    file, ran = tmp_path / "pid", tmp_path / "ran"
    with child_of_test(subprocess.Popen(["sleep", "1000"])) as it:
        file.write_text(str(it.pid))
        os.utime(file, (1, 1))  # the clock stood there
        command = json.dumps(["sh", "-c", f"echo ran >>{ran}"])
        served.configure(
            f'[[process]]\nname = "it"\ncommand = {command}\npid_file = "{file}"\n{NO_LIMITS}\n'
            '[watch]\nprocess_interval = "100ms"\n'
        )
        served.start()
        served.eventually(lambda: served.process("it")["state"] == "up", "it counts as up")
        assert served.process("it")["pid"] is None
        home = CliHome(served.home.path)
        served.eventually(
            lambda: "notify:doubt:it" in home.upulse("effect", "list", "--all").out, "a notice says so"
        )
        file.touch()
        assert served.pid_when_up("it", other_than=0) == it.pid
        assert not ran.exists()
        it.kill()


def test_of_two_that_match_a_process_with_a_command_a_notice_says_that_nobody_can_tell(
    served: Served, tmp_path: Path
) -> None:
    copies = [subprocess.Popen(["sleep", "9047"], start_new_session=True) for _ in range(2)]
    with child_of_test(copies[0]), child_of_test(copies[1]):
        command = json.dumps(["sh", "-c", f"echo ran >>{tmp_path / 'ran'}"])
        served.configure(
            f'[[process]]\nname = "it"\ncommand = {command}\nmatch = "^sleep 9047$"\n{NO_LIMITS}\n'
        )
        served.start()
        served.eventually(lambda: served.process("it")["state"] == "up", "it counts as up")
        home = CliHome(served.home.path)
        served.eventually(
            lambda: "notify:doubt:it" in home.upulse("effect", "list", "--all").out, "a notice says so"
        )
        assert not (tmp_path / "ran").exists()
        for one in copies:
            one.kill()
