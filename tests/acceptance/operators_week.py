"""An operator's week: what breaks, how it is mended, and what Pulse must then tell of it, written down beforehand.

What differs from run to run stands there by a name: process ids as N, durations as T, ports as PORT, the directory of
the run as DIR. A word of `course` that waits does so for what the daemon says, never for a time.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.acceptance.test_real_processes import PAGES, argv, free_port
from tests.integration.cli.cli_home import CliHome, Said
from tests.postbox import Postbox
from tests.processes import PATIENCE, child_of_test

STRANGER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
sys.stdin.read()
"""
PATIENT = 'restart = { max = 1000, backoff = "10ms", healthy_after = "0s", grace = "60s" }'
"""A machine may be as busy as it likes; nothing here counts as failed for being late."""
HASTY = 'restart = { max = 2, backoff = "10ms", backoff_max = "30m", grace = "60s" }'
"""Flapping after two restarts, and tried again so late that no test sees it."""
QUICK = '[watch]\nprocess_interval = "200ms"\nsystem_interval = "200ms"\nusage_interval = "100ms"\n'


def process(name: str, start: str, *more: str) -> str:
    return "\n".join(("[[process]]", f'name = "{name}"', f"start = {start}", *more, ""))


SLEEPER = process("victim", '["sleep", "9001"]', PATIENT)


class Operator:
    """Who breaks things, mends them, and asks Pulse what happened.

    breaks, broken, mends: when (UTC microseconds) it begins to break, has seen it broken, and begins to mend.
    """

    def __init__(self, served: Served, box: Postbox, directory: Path, owned: ExitStack) -> None:
        self.served, self.box, self.directory, self.owned = served, box, directory, owned
        self.home = CliHome(served.home.path)
        self.port = free_port()
        self.breaks = self.broken = self.mends = 0

    def configure(self, settings: str) -> None:
        head = f'[notify]\nurls = ["{self.box.url("all")}"]\ngroup = "0s"\n'
        text = settings.replace("DIR", str(self.directory)).replace("PORT", str(self.port))
        self.served.configure(head + QUICK + text)

    def upulse(self, *words: str, code: int | None = 0) -> Said:
        return self.home.upulse(*words, code=code)

    # What it does

    def about_to_break(self) -> None:
        self.breaks = now_us()

    def sees_it_broken(self) -> None:
        self.broken = now_us()

    def about_to_mend(self) -> None:
        self.mends = now_us()

    def kill(self, name: str = "victim", number: int = signal.SIGKILL) -> int:
        """End a process that is up; its id."""
        pid = self.up(name)
        self.about_to_break()
        os.kill(pid, number)
        return pid

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def tell_pipe(self, status: int) -> None:
        """Let what reads the pipe end with this status."""
        with (self.directory / "fifo").open("w") as fifo:
            fifo.write(f"{status}\n")

    def stranger(self) -> "subprocess.Popen[str]":
        """Somebody else's process that listens on the port."""
        popen = subprocess.Popen(
            [sys.executable, "-c", STRANGER, str(self.port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        child = self.owned.enter_context(child_of_test(popen))
        assert child.stdout
        assert child.stdout.readline()
        return child

    # What it waits for

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        return self.served.eventually(holds, what, 2 * PATIENCE)

    def up(self, name: str = "victim", other_than: int = 0) -> int:
        def seen() -> int | None:
            one = self.served.process(name)
            return one["pid"] if one["state"] == "up" and one["pid"] != other_than else None

        return int(self.until(seen, f"{name} is up"))

    def is_in(self, state: str, name: str = "victim") -> None:
        self.until(lambda: self.served.process(name)["state"] == state, f"{name} is {state}")

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        with SqliteEventReader(self.served.home.path) as log:
            return [dict(row.spelled()) for row in log.events(EventQuery(kinds=kinds))]

    def happened(self, kind: str, times: int = 1, subject: str = "") -> None:
        def seen() -> bool:
            return len([one for one in self.events(kind) if subject in ("", one["subject"])]) >= times

        self.until(seen, f"{kind} {subject}, {times} times")

    def notices(self) -> list[dict[str, Any]]:
        """What went out, by its params and its topic."""
        return [
            {"topic": one["subject"].removeprefix("notify:"), **one["data"]["params"]}
            for one in self.events("effect")
            if one["data"]["action"] == "notify"
        ]

    def is_quiet(self) -> bool:
        effects = self.served.status()["effects"]
        return not effects["pending"] and not effects["executing"]

    # What differs from run to run

    def plain(self, text: str) -> str:
        """The words with names for what differs from run to run."""
        text = text.replace(str(self.directory), "DIR").replace(str(self.port), "PORT")
        text = re.sub(r"\b\d\d:\d\d:\d\d\b( UTC)?", "AT", text)
        text = re.sub(r"(?<!-)\bprocess \d+\b", "process N", text)
        text = re.sub(r"\bpid=\d+", "pid=N", text)
        return re.sub(r"\b\d+(\.\d+)? (us|ms|s|min|h)\b", "T", text)


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Truth:
    """What Pulse must tell afterwards.

    states: by process, what `status` and the first line of `why NAME` say; wrong: whether `status --exit-code` says that
    something is; incidents: the lines of `upulse incidents`, without times; notices: severity and topic of each, in order;
    warnings: the lines of the journal from `warning` on, in order, repeated ones once.
    """

    states: Mapping[str, str]
    incidents: str = ""
    notices: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    wrong: bool = False


@dataclass(frozen=True)
class Breakage:
    """One thing that goes wrong, or that a person does; short: whether it is in `make check`, too; starts_itself: its
    course starts the daemon."""

    name: str
    settings: str
    course: Callable[[Operator], None]
    truth: Truth
    short: bool = False
    starts_itself: bool = False


UP = {"victim": "up"}
PIPED = process("victim", argv("sh", "-c", "read status < DIR/fifo; exit $status"), PATIENT)
"""A process that ends with the status that is written to its pipe."""
SERVES = """
import socket, sys
try:
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
except OSError:
    sys.exit("address in use")
while True:
    server.accept()
"""


def died(how: str, name: str = "victim") -> str:
    """The incident of one death that Pulse answered."""
    return (
        f"process {name}: {how}, resolved after T\n"
        f"  restart-process acked: {name} is dead: {how}\n"
        "  recovered\n"
    )


def answered(how: str, name: str = "victim", states: Mapping[str, str] = UP) -> Truth:
    """It died once, and Pulse brought it back: one incident, one warning, and nobody is told."""
    return Truth(states, died(how, name), warnings=(f"process-died {name} {how}",))


def unanswered(how: str, state: str) -> Truth:
    """It died, and Pulse was not to bring it back."""
    return Truth(
        {"victim": state},
        f"process victim: {how}, ongoing",
        warnings=(f"process-died victim {how}",),
        wrong=True,
    )


def nothing(states: Mapping[str, str] = UP) -> Truth:
    """All of it was intended: no incident, no notice, no warning."""
    return Truth(states)


def killed(it: Operator) -> None:
    it.up("victim", other_than=it.kill())


def ended_by(status: int) -> Callable[[Operator], None]:
    def course(it: Operator) -> None:
        pid = it.up()
        it.about_to_break()
        it.tell_pipe(status)
        it.up("victim", other_than=pid)

    return course


def restarted(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    it.upulse("process", "restart", "victim", "--why", "new certificates")
    it.up("victim", other_than=pid)


def all_restarted(it: Operator) -> None:
    pids = {name: it.up(name) for name in ("gateway", "worker")}
    it.about_to_break()
    it.upulse("process", "restart", "--all")
    for name, pid in pids.items():
        it.up(name, other_than=pid)


def hung(it: Operator) -> None:
    it.up("victim", other_than=it.kill(number=signal.SIGSTOP))


def terminated(it: Operator) -> None:
    it.up("victim", other_than=it.kill(number=signal.SIGTERM))


def gives_up(it: Operator) -> None:
    it.is_in("flapping")


def mended(it: Operator) -> None:
    it.is_in("flapping")
    it.sees_it_broken()
    it.write("program", "exec sleep 9001\n")
    it.about_to_mend()
    it.upulse("process", "start", "victim")
    it.up()


def port_taken(it: Operator) -> None:
    stranger = it.stranger()
    it.about_to_break()
    it.served.start()
    it.is_in("flapping")
    it.sees_it_broken()
    it.about_to_mend()
    assert stranger.stdin
    stranger.stdin.close()
    stranger.wait(PATIENCE)
    it.upulse("process", "start", "victim")
    it.up()


def dependency_killed(it: Operator) -> None:
    it.up("worker")
    it.up("gateway", other_than=it.kill("gateway"))


def both_killed(it: Operator) -> None:
    pids = {name: it.up(name) for name in ("gateway", "worker")}
    it.about_to_break()
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    for name, pid in pids.items():
        it.up(name, other_than=pid)


def stopped(it: Operator) -> None:
    it.up()
    it.about_to_break()
    it.upulse("process", "stop", "victim", "--why", "maintenance")
    it.is_in("stopped")


def stopped_and_started(it: Operator) -> None:
    stopped(it)
    it.upulse("process", "start", "victim")
    it.up()


def stopped_for_a_while(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    it.upulse("process", "stop", "victim", "--for", "1s")
    it.up("victim", other_than=pid)


def killed_until_resumed(it: Operator) -> None:
    it.up()
    it.upulse("pause", "--why", "trying something")
    pid = it.kill()
    it.happened("process-died", 2)
    it.sees_it_broken()
    it.about_to_mend()
    it.upulse("resume")
    it.up("victim", other_than=pid)


def killed_in_a_pause(it: Operator) -> None:
    it.up()
    it.upulse("pause", "--why", "trying something")
    it.kill()
    it.happened("process-died", 2)


def killed_in_a_silence(it: Operator) -> None:
    it.up()
    it.upulse("silence", "add", "--match", "restart-process:victim", "--for", "1h", "--why", "new disks")
    it.kill()
    it.happened("process-died", 2)


def reloaded(it: Operator) -> None:
    it.up()
    it.about_to_break()
    it.configure(process("victim", '["sleep", "9002"]', PATIENT))
    it.upulse("daemon", "reload")


def not_started(it: Operator) -> None:
    it.until(lambda: it.served.process("victim")["state"] != "unknown", "it has been looked at")


TWO = process("gateway", '["sleep", "9001"]', PATIENT) + process(
    "worker", '["sleep", "9002"]', 'depends_on = ["gateway"]', PATIENT
)
BOTH_UP = {"gateway": "up", "worker": "up"}
SERVER = process(
    "victim",
    argv(sys.executable, "-c", PAGES, "PORT"),
    'http = "http://127.0.0.1:PORT/"\nevery = "100ms"\ntimeout = "2s"\nevidence = 2\nstart_period = "0s"',
    'stop_timeout = "100ms"',
    PATIENT,
)
SILENT = "http://127.0.0.1:PORT/: it took the connection, but did not answer within T, 2 probes in a row"
BROKEN = "process N exited with status 3 while it was starting"
GIVEN_UP = f"victim: dead again after 2 restarts: {BROKEN}; next try in 30m"


TABLE: tuple[Breakage, ...] = (
    Breakage(
        "killed -9 by somebody", SLEEPER, killed, answered("process N was killed by SIGKILL"), short=True
    ),
    Breakage("restarted by a person", SLEEPER, restarted, nothing(), short=True),
    Breakage("hung", SERVER, hung, answered(SILENT), short=True),
    Breakage("ended by a person's SIGTERM", SLEEPER, terminated, answered("process N was killed by SIGTERM")),
    Breakage("ends with status 3", PIPED, ended_by(3), answered("process N exited with status 3")),
    Breakage("ends with status 0", PIPED, ended_by(0), answered("process N exited with status 0")),
    Breakage(
        "ends as soon as it starts",
        process("victim", argv("sh", "DIR/program"), HASTY),
        gives_up,
        Truth(
            {"victim": "flapping"},
            f"process victim: {BROKEN}, 3 times, ongoing\n"
            "  > no database\n"
            f"  restart-process 2 acked: victim is dead again after 1 restart: {BROKEN}\n"
            f"  notify acked: {GIVEN_UP}\n"
            "  not recovered yet",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"process-died victim {BROKEN}",
                f"victim stays down: {GIVEN_UP} It printed last: > no database",
            ),
            wrong=True,
        ),
        short=True,
    ),
    Breakage(
        "ends as soon as it starts, until a person mends it",
        process("victim", argv("sh", "DIR/program"), HASTY),
        mended,
        Truth(
            UP,
            f"process victim: {BROKEN}, 3 times, resolved after T\n"
            "  > no database\n"
            "  restart-process 3 acked: victim is to be started: root asked for it\n"
            f"  notify acked: {GIVEN_UP}\n"
            "  root requested a start\n"
            "  recovered, not by what Pulse did",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"process-died victim {BROKEN}",
                f"victim stays down: {GIVEN_UP} It printed last: > no database",
            ),
        ),
    ),
    Breakage(
        "what it depends on is killed",
        TWO,
        dependency_killed,
        answered("process N was killed by SIGKILL", "gateway", states=BOTH_UP),
    ),
    Breakage(
        "both are killed at once",
        TWO,
        both_killed,
        Truth(
            BOTH_UP,
            died("process N was killed by SIGKILL", "gateway")
            + died("process N was killed by SIGKILL", "worker"),
            warnings=(
                "process-died gateway process N was killed by SIGKILL",
                "process-died worker process N was killed by SIGKILL",
            ),
        ),
    ),
    Breakage("stopped by a person", SLEEPER, stopped, nothing({"victim": "stopped"})),
    Breakage("stopped and started by a person", SLEEPER, stopped_and_started, nothing(), short=True),
    Breakage("stopped for a second", SLEEPER, stopped_for_a_while, nothing()),
    Breakage("restarted with all others", TWO, all_restarted, nothing(BOTH_UP)),
    Breakage(
        "killed in a pause, then resumed",
        SLEEPER,
        killed_until_resumed,
        answered("process N was killed by SIGKILL"),
    ),
    Breakage(
        "killed in a pause",
        SLEEPER,
        killed_in_a_pause,
        unanswered("process N was killed by SIGKILL", "waiting"),
    ),
    Breakage(
        "killed in a silence",
        SLEEPER,
        killed_in_a_silence,
        unanswered("process N was killed by SIGKILL", "silenced"),
        short=True,
    ),
    Breakage("settings reloaded", SLEEPER, reloaded, nothing()),
    Breakage(
        "not started with the daemon",
        process("victim", '["sleep", "9001"]', "autostart = false"),
        not_started,
        nothing({"victim": "stopped"}),
    ),
)
