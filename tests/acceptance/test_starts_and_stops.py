"""Starts that go into the background, and stops that do not help at once, with real processes."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.workers.proc import children, command_line, live_processes, read_stat
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.long_form import sampled
from tests.processes import child_of_test

NO_LIMITS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "30s" }'
"""Limits that let through whatever a busy machine takes its time for."""
LASTING = str(1_000_000_000 + os.getpid())
"""Seconds that nobody else on this machine sleeps for, so that what sleeps is ours."""
TWICE_FORKED = f"""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{LASTING}"])
    os._exit(0)
os.wait()
"""
BACKGROUND = {
    "own session": ["sh", "-c", f"setsid sleep {LASTING} & exit 0"],
    "same session": ["sh", "-c", f"sleep {LASTING} & exit 0"],
    "forked twice": [sys.executable, "-c", TWICE_FORKED],
}


def alive(*argv: str) -> list[int]:
    """The pids of the live processes with these words."""
    return [one.pid for one in live_processes() if command_line(one.pid) == list(argv)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
def test_a_daemon_whose_children_have_the_numbers_of_others_in_proc_is_refused(served: Served) -> None:
    served.configure("")
    argv = [sys.executable, "-m", "upulse_cli.serve", "--home", str(served.home.path)]
    ended = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", *argv], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "/proc shows the processes of another PID namespace" in ended.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
def test_as_the_first_process_of_a_container_it_leaves_no_orphan_dead_and_passes_signals_on(
    served: Served,
) -> None:
    start = ["sh", "-c", f"for each in 1 2 3; do (sleep 0 &); done; sleep 0.2; exec sleep {LASTING}"]
    served.configure(f'[[process]]\nname = "victim"\nstart = {json.dumps(start)}\n{NO_LIMITS}\n')
    argv = [sys.executable, "-m", "upulse_cli.serve", "--home", str(served.home.path)]
    inside = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *argv], stderr=subprocess.DEVNULL
    )
    with child_of_test(inside):
        served.eventually(lambda: bool(alive("sleep", LASTING)), "the process has left its orphans")
        (first,) = children(inside.pid)

        def has_dead() -> bool:
            ahead, seen = {first}, set[int]()
            while ahead:
                seen |= ahead
                ahead = {child for pid in ahead for child in children(pid)} - seen
            found = [one for pid in seen if (one := read_stat(pid))]
            return any(not one.alive and one.parent == first for one in found)

        served.eventually(lambda: not has_dead(), "they are reaped")
        os.kill(first, signal.SIGTERM)
        assert inside.wait(60) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
def test_the_first_process_of_a_container_ends_with_the_daemon_though_whoever_starts_it_ignores_such_ends(
    tmp_path: Path,
) -> None:
    argv = [
        "env",
        "--ignore-signal=CHLD",
        sys.executable,
        "-m",
        "upulse_cli.serve",
        "--home",
        str(tmp_path / "none"),
    ]
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *argv]
    assert subprocess.run(inside, stderr=subprocess.DEVNULL, timeout=60).returncode == 1


@pytest.mark.parametrize("argv", sampled(BACKGROUND.values(), 2), ids=sampled(BACKGROUND, 2))
def test_what_a_start_leaves_in_the_background_is_the_process(served: Served, argv: list[str]) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = {json.dumps(argv)}\n{NO_LIMITS}\n')
    served.start()
    known = stands(served, restarts=0)
    for restarts in (1, 2):
        os.kill(known, signal.SIGKILL)
        known = stands(served, restarts=restarts, instead_of=known)
    assert served.stop() == 0
    served.start()
    assert stands(served, restarts=2) == known


def stands(served: Served, restarts: int, instead_of: int = 0) -> int:
    """The pid of the only one there is, once it is known to stand for the process."""

    def found() -> bool:
        one, pids = served.process("victim"), alive("sleep", LASTING)
        return one["state"] == "up" and [one["pid"]] == pids and pids != [instead_of]

    served.eventually(found, "the process in the background is up, and there once")
    assert served.process("victim")["restarts"] == restarts
    return int(served.process("victim")["pid"])


def test_what_a_failed_start_leaves_is_not_there_twice(served: Served) -> None:
    served.configure(
        f'[[process]]\nname = "broken"\nstart = ["sh", "-c", "setsid sleep {LASTING} & sleep 0.05; exit 3"]\n'
        'restart = { max = 3, backoff = "10ms", backoff_max = "5m", grace = "1s" }\n'
    )
    served.start()
    served.eventually(lambda: served.process("broken")["state"] == "flapping", "flapping")
    assert served.process("broken")["restarts"] == 3
    served.eventually(lambda: len(alive("sleep", LASTING)) == 1, "what the last start has left, alone")


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Callable[[Path], "subprocess.Popen[bytes]"]]:
    """Starts a supervisor that brings a script back whenever it ends, and ends both after the test."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(script: Path) -> "subprocess.Popen[bytes]":
        loop = f"while :; do {shlex.quote(sys.executable)} {script.name}; done"
        begun.append(subprocess.Popen(["sh", "-c", loop], cwd=script.parent, start_new_session=True))
        return begun[0]

    yield start
    for one in begun:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait(timeout=60)


@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGQUIT], 2))
def test_a_terminals_signal_ends_the_daemon_unless_it_began_with_it_ignored(
    served: Served, number: signal.Signals
) -> None:
    """`upulse daemon start --foreground &` in a script: Ctrl-C is for what runs in the foreground, SIGTERM is for us."""
    served.configure("# nothing\n")
    served.is_forked = False
    before = signal.signal(number, signal.SIG_IGN)
    try:
        served.start()
    finally:
        signal.signal(number, before)
    assert served.daemon is not None
    served.daemon.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        served.daemon.wait(0.5)
    assert served.status()["daemon"]["state"] == "running"
    assert served.stop() == 0
    served.start()
    served.daemon.send_signal(number)
    assert served.daemon.wait(60) == 0


def test_a_stop_that_does_not_last_is_made_again(
    served: Served, tmp_path: Path, supervised: Callable[[Path], "subprocess.Popen[bytes]"]
) -> None:
    script = tmp_path / "worker9022.py"
    script.write_text("import time; time.sleep(1000)")
    served.configure(
        f'[[process]]\nname = "worker"\nstart = ["worker9022.py"]\nmatch = "^/[^;]*python[^ ;]* worker9022"\n{NO_LIMITS}\n'
        '[watch]\nprocess_interval = "50ms"\n'
    )
    supervisor = supervised(script)
    served.start()
    first = served.pid_when_up("worker")
    served.append("process-stop-requested", "worker", expires_us=600_000_000)

    def is_back() -> bool:
        one = served.process("worker")
        return one["pid"] not in (None, first) and one["state"] == "stopping"

    served.eventually(is_back, "it is back")
    os.kill(supervisor.pid, signal.SIGKILL)
    served.eventually(lambda: served.process("worker")["state"] == "stopped", "stopped")
    served.eventually(lambda: served.status()["effects"]["acked"] >= 2, "both stops are acknowledged")


def test_a_stop_of_a_dead_process_ends_what_is_left_of_it(served: Served, tmp_path: Path) -> None:
    pid = tmp_path / "main"
    script = f"setsid sleep {LASTING} & echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1{LASTING}"
    served.configure(
        f'[[process]]\nname = "store"\nstart = ["sleep", "2{LASTING}"]\n{NO_LIMITS}\n'
        f'[[process]]\nname = "worker"\nstart = ["sh", "-c", "{script}"]\ndepends_on = ["store"]\n{NO_LIMITS}\n'
        '[watch]\nprocess_interval = "50ms"\n'
    )
    served.start()
    served.pid_when_up("worker")
    served.eventually(lambda: pid.exists() and len(alive("sleep", LASTING)) == 1, "it has a helper")
    served.append("process-stop-requested", "store", expires_us=600_000_000)
    served.eventually(lambda: served.process("store")["state"] == "stopped", "what it needs is down")
    os.kill(int(pid.read_text()), signal.SIGKILL)
    served.eventually(lambda: served.process("worker")["state"] == "waiting", "it is dead, and waits")
    served.append("process-stop-requested", "worker", expires_us=600_000_000)
    served.eventually(lambda: not alive("sleep", LASTING), "what is left of it has ended")
    served.eventually(lambda: served.process("worker")["state"] == "stopped", "stopped")


def test_a_stop_that_failed_says_why_and_is_made_again(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, state = tmp_path / "broken", tmp_path / "active"
    broken.touch()
    state.write_text("active")
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *stop*) test -e {broken} && echo access denied && exit 4; echo inactive > {state};; esac\n'
        f"echo LoadState=loaded; echo ActiveState=$(cat {state}); echo Result=success; echo MainPID=0\n"
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    served.configure(
        '[[process]]\nname = "unit"\nsystemd_unit = "it.service"\n[watch]\nprocess_interval = "50ms"\n'
    )
    served.start()
    served.eventually(lambda: served.process("unit")["state"] == "up", "up")
    served.append("process-stop-requested", "unit", expires_us=600_000_000)
    served.eventually(lambda: served.status()["effects"]["failed"] >= 1, "a failure")
    standing = served.process("unit")
    assert standing["state"] == "stopping"
    assert "access denied" in standing["why"]
    broken.unlink()
    served.eventually(lambda: served.process("unit")["state"] == "stopped", "stopped")


def test_a_pipe_in_the_place_of_its_pid_or_its_lock_neither_holds_up_a_daemon_nor_ends_it(
    served: Served,
) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "{LASTING}"]\n{NO_LIMITS}\n')
    os.mkfifo(served.home.pid)
    served.start()
    first = served.pid_when_up("victim")
    served.home.lock.unlink()
    os.mkfifo(served.home.lock)
    with SqliteEventReader(served.home.path) as log:
        query = EventQuery(kinds=("error",), subject="lock")
        served.eventually(lambda: list(log.events(query)), "it is said")
        assert "is no plain file; remove it" in next(iter(log.events(query))).data
    argv = [sys.executable, "-m", "upulse_cli", "daemon", "restart", "--home", str(served.home.path)]
    refused = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "remove it\nNothing was stopped or started." in refused.stderr
    os.kill(first, signal.SIGKILL)
    served.pid_when_up("victim", other_than=first)
    served.home.lock.unlink()
    held = served.eventually(lambda: holder(served.home.lock), "it has its lock again")
    assert served.daemon
    assert held.pid == served.daemon.pid
    assert served.stop() == 0


@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGHUP, signal.SIGKILL], 3))
def test_a_restart_that_is_broken_off_while_it_waits_for_the_stop_starts_the_daemon_all_the_same(
    served: Served, number: signal.Signals
) -> None:
    served.configure("")
    served.start()
    assert served.daemon
    first, served.daemon = served.daemon, None
    os.kill(first.pid, signal.SIGSTOP)  # so that it does not hear the request to stop yet
    name, _, value = served.mark.partition("=")
    argv = [sys.executable, "-m", "upulse_cli", "daemon", "restart", "--home", str(served.home.path)]
    with child_of_test(subprocess.Popen(
        argv, env={**os.environ, name: value}, stderr=subprocess.PIPE, text=True, start_new_session=True
    )) as restart:  # fmt: skip
        assert restart.stderr
        assert f"waiting for process {first.pid} to stop" in restart.stderr.readline()
        os.killpg(restart.pid, number)
        assert restart.wait(60)
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(60) == 0
    next_one = (
        served.eventually(served.answers, "another daemon answers") and served.status()["daemon"]["pid"]
    )
    assert next_one != first.pid


def test_what_it_printed_last_is_told_with_its_death(served: Served) -> None:
    served.configure(
        '[[process]]\nname = "broken"\nstart = ["sh", "-c", "echo no database at $DB_TOKEN >&2; sleep 0.2; exit 3"]\n'
        'env = { DB_TOKEN = "abcd-1234" }\nrestart = { max = 1, backoff = "1m" }\n'
    )
    served.start()

    def story() -> str:
        argv = [sys.executable, "-m", "upulse_cli", "incidents", "--home", str(served.home.path)]
        told = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
        return told if "exited with status 3" in told else ""

    assert "> no database at ***" in served.eventually(story, "the incident")
