"""Real processes die, hang and multiply under a real daemon."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.workers.proc import command_line, live_processes
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.integration.cli.cli_home import CliHome

NO_LIMITS = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "30s" }'
SERVER = """
import signal, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
signal.signal(signal.SIGUSR1, lambda *_: server.close())
while True:
    try:
        server.accept()[0].close()
    except OSError:
        time.sleep(3600)
"""

PAGES = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=2048)
while True:
    peer, _ = server.accept()
    peer.recv(4096)
    peer.sendall(b"HTTP/1.1 204 Well\\r\\n\\r\\n")
    peer.close()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def argv(*words: object) -> str:
    return json.dumps([str(word) for word in words])


def test_a_killed_process_is_replaced_with_all_that_came_out_of_it(served: Served) -> None:
    sleep = ["sleep", f"9001.{os.getpid()}"]
    word = " ".join(sleep)
    tree = argv("sh", "-c", f"{word} & setsid {word} & exec {word}")
    served.configure(f'[[process]]\nname = "victim"\nstart = {tree}\n{NO_LIMITS}\n')
    served.start()

    def alive() -> set[int]:
        return {one.pid for one in live_processes() if command_line(one.pid) == sleep}

    served.eventually(lambda: len(alive()) == 3, "it and its helpers")
    first, before = served.pid_when_up("victim"), alive()
    assert first in before
    for _ in range(3):
        os.kill(first, signal.SIGKILL)
        first = served.pid_when_up("victim", other_than=first)
        served.eventually(lambda: len(alive()) == 3, "it and its helpers, once")
        assert first in alive()
        assert not before & alive()
        before = alive()
    CliHome(served.home.path).upulse("process", "stop", "victim")
    served.eventually(lambda: not alive(), "the end of all")


def test_sigterm_and_a_clean_exit_are_deaths_too(served: Served) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "9002"]\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("victim")
    os.kill(first, signal.SIGTERM)
    assert served.pid_when_up("victim", other_than=first)


def test_fifty_that_die_together_all_come_back(served: Served) -> None:
    names = [f"p{number}" for number in range(50)]
    rows = [f'[[process]]\nname = "{name}"\nstart = ["sleep", "9003"]\n{NO_LIMITS}\n' for name in names]
    served.configure("".join(rows) + "[budget]\nactions_per_minute = 0\n")
    served.start()

    def up(others: Collection[int]) -> dict[str, int]:
        """The pids of all, once they are up with others than these; one look sees all of them."""
        found = served.status()["processes"]
        pids = {one["name"]: one["pid"] for one in found if one["state"] == "up" and one["pid"] not in others}
        return pids if len(pids) == len(names) else {}

    first = served.eventually(lambda: up(()), "all are up").values()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    served.eventually(lambda: up(first), "all are back")
    assert served.status()["effects"]["failed"] == 0


def test_a_live_process_whose_port_is_closed_is_replaced_after_three_probes(served: Served) -> None:
    port = free_port()
    served.configure(
        f'[[process]]\nname = "server"\nstart = {argv(sys.executable, "-c", SERVER, port)}\n'
        f'tcp = "127.0.0.1:{port}"\n{NO_LIMITS}\n[watch]\nprocess_interval = "200ms"\n'
    )
    served.start()
    first = served.pid_when_up("server")
    os.kill(first, signal.SIGUSR1)
    second = served.pid_when_up("server", other_than=first)
    assert second != first
    assert not Path(f"/proc/{first}").exists()


def test_a_stopped_server_takes_connections_for_ever_and_is_replaced_by_what_its_probe_says(
    served: Served,
) -> None:
    port = free_port()
    served.configure(
        f'[[process]]\nname = "server"\nstart = {argv(sys.executable, "-c", PAGES, port)}\n'
        f'http = "http://127.0.0.1:{port}/health"\nevery = "100ms"\ntimeout = "1s"\n{NO_LIMITS}\n'
    )
    served.start()
    first = served.pid_when_up("server")
    os.kill(first, signal.SIGSTOP)
    with socket.create_connection(("127.0.0.1", port), timeout=5):  # the kernel takes it, whoever is stopped
        served.eventually(lambda: "failed, the last one" in served.process("server")["why"], "a failed probe")
        second = served.pid_when_up("server", other_than=first)
    assert second != first
    assert not Path(f"/proc/{first}").exists()
    why = CliHome(served.home.path).upulse("why").out
    assert (
        f"http://127.0.0.1:{port}/health: it took the connection, but did not answer within 1 s; 3 probes"
        in why
    )


def test_a_matched_process_started_by_somebody_else_is_adopted_and_healed(
    served: Served, tmp_path: Path
) -> None:
    script = tmp_path / "worker9004.py"
    script.write_text("import time; time.sleep(1000)")
    served.configure(
        f'[[process]]\nname = "worker"\nstart = {argv(sys.executable, script)}\n'
        f'match = "worker9004\\\\.py"\n{NO_LIMITS}\n'
    )
    stranger = os.posix_spawn(sys.executable, [sys.executable, str(script)], os.environ)
    try:
        served.start()
        assert served.pid_when_up("worker") == stranger
        assert served.status()["effects"]["acked"] == 0
    finally:
        os.kill(stranger, signal.SIGKILL)
    # Until its parent (this test) reaps it, it is a zombie; a zombie is not alive.
    assert served.pid_when_up("worker", other_than=stranger)
    os.waitpid(stranger, 0)


def test_what_dies_at_once_every_time_is_flapping_with_one_notice(served: Served) -> None:
    served.configure(
        '[[process]]\nname = "broken"\nstart = ["false"]\n'
        'restart = { max = 3, backoff = "10ms", backoff_max = "5m", grace = "1s" }\n'
    )
    served.start()
    served.eventually(lambda: served.process("broken")["state"] == "flapping", "flapping")
    assert served.process("broken")["restarts"] == 3
    assert served.status()["effects"]["acked"] >= 1 + 3


def test_what_cannot_be_started_says_why(served: Served) -> None:
    served.configure(
        '[[process]]\nname = "typo"\nstart = ["no-such-program-9005"]\nrestart = { max = 2, backoff = "10ms" }\n'
    )
    served.start()
    served.eventually(lambda: served.process("typo")["state"] == "flapping", "flapping")
    assert served.status()["effects"]["failed"] == 1 + 2
    assert "no-such-program-9005" in served.process("typo")["why"]


def test_what_pulse_started_survives_it_and_is_known_again(served: Served) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "9006"]\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("victim")
    assert served.stop() == 0
    served.start()
    assert served.pid_when_up("victim") == first
    served.kill()
    served.start()
    assert served.pid_when_up("victim") == first
    assert served.process("victim")["restarts"] == 0


def test_a_commanded_stop_is_carried_out_and_respected(served: Served) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "9007"]\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("victim")
    served.append("process-stop-requested", "victim", expires_us=60_000_000)
    served.eventually(lambda: not Path(f"/proc/{first}").exists(), "the process is gone")
    served.eventually(lambda: served.process("victim")["state"] == "stopped", "stopped")
    served.append("process-start-requested", "victim")
    assert served.pid_when_up("victim", other_than=first)


def test_a_reload_guards_a_new_process_and_refuses_nonsense(served: Served) -> None:
    one = f'[[process]]\nname = "one"\nstart = ["sleep", "9008"]\n{NO_LIMITS}\n'
    served.configure(one)
    served.start()
    served.pid_when_up("one")
    served.home.config.write_text(one + one.replace('"one"', '"two"'))
    served.append("reload-requested")
    served.eventually(lambda: len(served.status()["processes"]) == 2, "two are guarded")
    served.pid_when_up("two")
    served.home.config.write_text("nonsense = 1\n")
    served.append("reload-requested")
    assert served.pid_when_up("two")


def test_a_second_daemon_on_the_same_home_leaves_and_says_who_holds_it(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    first = served.daemon
    assert first is not None
    served.eventually(lambda: served.status()["daemon"]["state"] == "running", "running")
    log = served.home.path / "daemon.out"
    second = Served(served.home.path)
    second.start()
    assert second.daemon is not None
    assert second.daemon.wait(60) == 1
    assert f"process {first.pid}" in log.read_text()
    assert first.poll() is None


def test_what_an_earlier_daemon_started_is_known_even_if_the_log_is_gone(served: Served) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "9011"]\n{NO_LIMITS}\n')
    served.start()
    first = served.pid_when_up("victim")
    served.kill()
    for store in ("events", "vitals", "state"):
        for path in served.home.path.glob(f"{store}.db*"):
            path.unlink()
    served.start()
    assert served.pid_when_up("victim") == first


def test_a_log_that_lost_rows_is_refused_until_that_is_accepted(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    assert served.stop() == 0
    for path in served.home.path.glob("events.db*"):
        path.unlink()
    argv = [sys.executable, "-m", "upulse_cli.serve", "--home", str(served.home.path)]
    refused = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 1
    assert "which are LOST" in refused.stderr
    assert not served.home.events.exists()
    served.start("--accept-damage")
    assert served.stop() == 0
    assert "damage-accepted" in (served.home.path / "daemon.out").read_text()
    served.start()


def test_a_lock_that_is_removed_is_taken_again(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    served.home.lock.unlink()
    served.eventually(served.home.lock.exists, "the lock is back")
    second = Served(served.home.path)
    second.start()
    assert second.daemon is not None
    assert second.daemon.wait(60) == 1


def test_a_socket_that_is_removed_is_made_again(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    served.home.socket.unlink()
    served.eventually(served.answers, "the daemon answers again")


def test_a_socket_that_is_replaced_is_noticed_and_made_again_when_there_is_room(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    served.home.socket.unlink()
    os.mkfifo(served.home.socket)

    def is_said() -> bool:
        with SqliteEventReader(served.home.path) as log:
            errors = log.events(EventQuery(kinds=("error",), subject="socket"))
            return any("in the way" in error.data for error in errors)

    served.eventually(is_said, "what is in the way is named")
    served.home.socket.unlink()
    served.eventually(served.answers, "the daemon answers again")


def test_a_pipe_in_place_of_an_output_file_hangs_nothing(served: Served) -> None:
    served.configure(f'[[process]]\nname = "victim"\nstart = ["sleep", "9012"]\n{NO_LIMITS}\n')
    served.home.outputs.mkdir()
    os.mkfifo(served.home.outputs / "victim.log")
    served.start()
    assert served.pid_when_up("victim")
    with SqliteEventReader(served.home.path) as log:
        (acked,) = log.events(EventQuery(kinds=("effect-acked",)))
    assert "victim.log" in acked.data, "why the output goes elsewhere"


def test_signals_that_mean_nothing_end_nothing(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    assert served.daemon is not None
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
        served.daemon.send_signal(number)
    assert served.status()["daemon"]["state"] == "running"


def test_readers_do_not_launder_a_log_that_lost_its_end(served: Served) -> None:
    served.configure("# nothing\n")
    served.start()
    for _ in range(20):
        served.append("resumed")
    served.kill()
    wal = served.home.path / "events.db-wal"
    os.truncate(wal, wal.stat().st_size - 20_000)
    for command in ("verify", "events", "status"):
        told = CliHome(served.home.path).upulse(command, code=1)
        assert "acknowledged" in told.out + told.err, command
