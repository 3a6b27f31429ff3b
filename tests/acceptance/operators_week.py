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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.acceptance.test_checks import PAGE, check
from tests.acceptance.test_engine import Engine
from tests.acceptance.test_real_processes import PAGES, argv, free_port
from tests.integration.cli.cli_home import CliHome, Said
from tests.integration.rule_host.rule_host_engines import rule
from tests.postbox import Postbox
from tests.processes import PATIENCE, child_of_test
from tests.small_disk import small_disk

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
NEVER_UP = f'exec = ["false"]\n{HASTY}'
"""The same of what a look on a busy machine would else find alive before it ends."""
QUICK = '[watch]\nprocess_interval = "200ms"\nsystem_interval = "200ms"\nusage_interval = "100ms"\n'


def process(name: str, start: str, *more: str) -> str:
    return "\n".join(("[[process]]", f'name = "{name}"', f"start = {start}", *more, ""))


RULES = '[daemon]\ntick_ms = 200\n[engine]\nrepeat = "0s"\n'
SLEEPER = process("victim", '["sleep", "9001"]', PATIENT)


RULES += SLEEPER


class Operator:
    """Who breaks things, mends them, and asks Pulse what happened.

    breaks, broken, mends: when (UTC microseconds) it begins to break, has seen it broken, and begins to mend.
    """

    def __init__(self, served: Served, box: Postbox, directory: Path, owned: ExitStack) -> None:
        self.served, self.box, self.directory, self.owned = served, box, directory, owned
        self.home = CliHome(served.home.path)
        self.port = free_port()
        self.child: subprocess.Popen[str] | None = None
        self.breaks = self.broken = self.mends = 0

    def configure(self, settings: str) -> None:
        head = f'[notify]\nurls = ["{self.box.url("all")}"]\ngroup = "0s"\n'
        text = settings.replace("DIR", str(self.directory)).replace("PORT", str(self.port))
        self.served.configure(head + QUICK + text)

    @property
    def url(self) -> str:
        """Of the page on the port."""
        return f"http://127.0.0.1:{self.port}/"

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

    def serve(self) -> "subprocess.Popen[str]":
        """A page on the port that answers well."""
        popen = subprocess.Popen([sys.executable, "-c", PAGES, str(self.port)], text=True)
        child = self.owned.enter_context(child_of_test(popen))
        self.owned.callback(child.kill)
        return child

    def small_disk(self) -> None:
        """Mount a file system of 16 MiB, for as long as the row takes."""
        self.owned.enter_context(small_disk(self.directory / "disk", "16m"))

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

    def is_wrong(self) -> bool:
        """By the exit code of `status`."""
        return {0: False, 4: True}[self.upulse("status", "--exit-code", code=None).code]

    # What differs from run to run

    def plain(self, text: str) -> str:
        """The words with names for what differs from run to run."""
        text = text.replace(str(self.directory), "DIR").replace(str(self.port), "PORT")
        text = re.sub(r"\b\d\d:\d\d:\d\d\b( UTC)?", "AT", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\d AT\b", "DAY AT", text)
        text = re.sub(r"(?<!-)\bprocess \d+\b", "process N", text)
        text = re.sub(r"\bpid=\d+ version=[^ ,]+", "pid=N version=V", text)
        text = re.sub(r"\b\d+(\.\d+)? [KMG]iB\b", "SIZE", text)
        # The disk may be seen to be free before the cleaning has said what it freed.
        text = text.replace("tried before: clean-paths (under way)", "tried before: clean-paths (freed SIZE)")
        text = re.sub(r"\bfull to [\d.]+%", "full to X%", text)
        text = re.sub(r"\b(error|table.*\)), \d+ times", r"\1, X times", text)
        text = re.sub(r"\braised at least \d+ errors", "raised at least X errors", text)
        text = re.sub(r"\b[0-9a-f]{12,40}\b", "COMMIT", text)
        text = re.sub(r"…[0-9a-f]{8}\b", "…ID", text)
        text = re.sub(r"\bprobe failed \d+ times?", "probe failed N times", text)
        text = re.sub(r"\buse(s?) \d+(\.\d+)?", r"use\1 X", text)
        text = re.sub(r"\(allowed: \d+(\.\d+)?\)", "(allowed: X)", text)
        return re.sub(r"\b\d+(\.\d+)? (us|ms|s|min|h)\b", "T", text)


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Truth:
    """What Pulse must tell afterwards.

    states: by process, what `status` and the first line of `why NAME` say; wrong: whether `status --exit-code` says that
    something is; incidents: the lines of `upulse incidents`, without times; notices: severity and topic of each, in order;
    warnings: the lines of the journal from `warning` on, repeated ones once; why: the first line of `upulse why`
    for other names.
    """

    states: Mapping[str, str]
    incidents: str = ""
    notices: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    wrong: bool = False
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Breakage:
    """One thing that goes wrong, or that a person does; short: whether it is in `make check`, too; starts_itself: its
    course starts the daemon."""

    name: str
    settings: str
    course: Callable[[Operator], None]
    truth: Truth
    short: bool = False
    small_disk: bool = False
    starts_itself: bool = False


LEAKS_ONCE = """
import os, sys, time
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    held = bytearray(os.urandom(1) * (150 << 20))
time.sleep(9001)
"""
LEAKS = """
import os, sys, time
held = bytearray(os.urandom(1) * (150 << 20))
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
del held
time.sleep(9001)
"""
SPINS = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    pass
time.sleep(9001)
"""
BOOTS = """
import sys, time
if open(sys.argv[1]).read() != "good":
    sys.exit("config invalid")
time.sleep(9001)
"""
DAEMONISES = """
import os, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
time.sleep(0.5)
with open(sys.argv[1], "w") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(9001)
"""
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


def died(how: str, name: str = "victim", held: str = "") -> str:
    """The incident of one death that Pulse answered; held: what had held that back."""
    return (
        f"process {name}: {how}, resolved after T\n"
        f"  restart-process acked: {name} is dead: {how}\n"
        + (f"  held back for T by {held}\n" if held else "")
        + "  recovered\n"
    )


UNGUARDED = "process N was killed by SIGKILL; it ended between DAY AT and AT, while it was not guarded"
UNSEEN = "process N is gone; it ended between DAY AT and AT, while no daemon ran"


def answered(how: str, name: str = "victim", states: Mapping[str, str] = UP, held: str = "") -> Truth:
    """It died once, and Pulse brought it back: one incident, one warning, and nobody is told."""
    return Truth(states, died(how, name, held), warnings=(f"process-died {name} {how}",))


def unanswered(how: str, state: str, held: str) -> Truth:
    """It died, and Pulse was not to bring it back; held: what holds that back."""
    return Truth(
        {"victim": state},
        f"process victim: {how}, ongoing\n  held back since AT by {held}",
        warnings=(f"process-died victim {how}",),
        wrong=True,
    )


def nothing(states: Mapping[str, str] = UP) -> Truth:
    """All of it was intended: no incident, no notice, no warning."""
    return Truth(states)


UNWELL = "'test' exited with 1"
STILL_UNWELL = f"its probe failed N times since its start: {UNWELL}"


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


def deployed_what_does_not_serve(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    sick = it.write("sick", "")
    it.upulse("process", "restart", "victim", "--why", "version 2")
    it.happened("effect", 3, "restart-process:victim")  # its first start, that of the person, and another one
    it.sees_it_broken()
    it.about_to_mend()
    sick.unlink()
    it.up("victim", other_than=pid)


def killed_then_deployed_what_ends_at_once(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    it.kill()
    pid = it.up("victim", other_than=pid)
    (it.directory / "ready").unlink()
    it.write("bad", "")  # which removes itself
    it.upulse("process", "restart", "victim", "--why", "version 2")
    it.happened("process-died", 4, "victim")  # its first start, the kill, the restart, and what ended at once
    it.up("victim", other_than=pid)


def all_restarted(it: Operator) -> None:
    pids = {name: it.up(name) for name in ("gateway", "worker")}
    it.about_to_break()
    it.upulse("process", "restart", "--all")
    for name, pid in pids.items():
        it.up(name, other_than=pid)


def hung(it: Operator) -> None:
    pid = it.kill(number=signal.SIGSTOP)
    it.breaks -= PROBE_TIMEOUT_US  # the first probe without an answer may be under way already
    it.up("victim", other_than=pid)


def terminated(it: Operator) -> None:
    it.up("victim", other_than=it.kill(number=signal.SIGTERM))


def gives_up(it: Operator) -> None:
    it.is_in("flapping")


def restarted_by_a_command_that_leaves_it(it: Operator) -> None:
    stuck = it.owned.enter_context(child_of_test(subprocess.Popen(["sleep", "9001"], text=True)))
    it.owned.callback(stuck.kill)
    it.write("pid", str(stuck.pid))
    it.served.start()
    it.up()
    it.about_to_break()
    it.write("sick", "")
    it.is_in("flapping")
    assert (it.directory / "tries").read_text() == "tried\n" * 2


def comes_up_late(it: Operator) -> None:
    """What it says when it is ready, each start takes away."""
    ready = it.write("ready", "")
    it.served.start()
    pid = it.up()
    it.about_to_break()
    it.write("slow", "")
    it.kill()
    it.is_in("flapping")
    it.sees_it_broken()
    it.about_to_mend()
    ready.write_text("")
    it.up("victim", other_than=pid)


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


HELD_US = 200_000
"""Longer than what is too short to be told."""


def killed_until_resumed(it: Operator) -> None:
    it.up()
    it.upulse("pause", "--why", "trying something")
    pid = it.kill()
    it.happened("process-died", 2)
    it.sees_it_broken()
    it.until(lambda: now_us() - it.broken > HELD_US, "it is held back for a while")
    it.about_to_mend()
    it.upulse("resume")
    it.up("victim", other_than=pid)


def killed_in_a_pause(it: Operator) -> None:
    it.up()
    it.upulse("pause", "--why", "trying something")
    it.kill()
    it.happened("restart-delayed")  # recorded after a second


def killed_until_the_silence_is_removed(it: Operator) -> None:
    it.up()
    id_ = it.upulse("silence", "add", "restart-process:*", "--for", "1h", "--why", "new disks").out
    pid = it.kill()
    it.happened("process-died", 2)
    it.sees_it_broken()
    it.until(lambda: now_us() - it.broken > HELD_US, "it is held back for a while")
    it.about_to_mend()
    it.upulse("silence", "remove", id_.strip())
    it.up("victim", other_than=pid)


def killed_in_a_silence(it: Operator) -> None:
    it.up()
    it.upulse("silence", "add", "restart-process:victim", "--for", "1h", "--why", "new disks")
    it.kill()
    it.happened("restart-delayed")


def reloaded(it: Operator) -> None:
    it.up()
    it.about_to_break()
    it.configure(process("victim", '["sleep", "9002"]', PATIENT))
    it.upulse("daemon", "reload")


def probe_made_wrong_and_right(it: Operator) -> None:
    it.up()
    it.about_to_break()
    it.configure(PROBED.replace('"true"', '"false"'))
    it.upulse("daemon", "reload")
    it.happened("effect-acked", 2, "")  # its first start, and that of what answers no probe
    it.is_in("starting")
    it.sees_it_broken()
    it.about_to_mend()
    it.configure(PROBED)
    it.upulse("daemon", "reload")
    it.up()


def killed_out_of_the_settings(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    it.configure("")
    it.upulse("daemon", "reload")
    os.kill(pid, signal.SIGKILL)
    it.sees_it_broken()
    it.about_to_mend()
    it.configure(SLEEPER)
    it.upulse("daemon", "reload")
    it.up("victim", other_than=pid)


def not_started(it: Operator) -> None:
    it.until(lambda: it.served.process("victim")["state"] != "unknown", "it has been looked at")


def reload_refused(it: Operator) -> None:
    it.up()
    it.about_to_break()
    it.configure(process("victim", '["sleep", "9002"]', "restrat = 1"))
    it.upulse("daemon", "reload", code=1)


def killed_thrice(it: Operator) -> None:
    pid = it.up("victim", other_than=it.kill())
    for _ in range(2):
        os.kill(pid, signal.SIGKILL)
        pid = it.up("victim", other_than=pid)


def program_removed(it: Operator) -> None:
    it.up("gone")
    program = it.directory / "bin" / "gone"
    program.rename(program.with_name("kept"))
    pid = it.kill("gone")
    it.is_in("flapping", "gone")
    it.sees_it_broken()
    program.with_name("kept").rename(program)
    it.about_to_mend()
    it.upulse("process", "start", "gone")
    it.up("gone", other_than=pid)


def daemon_killed(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    it.served.kill()
    it.sees_it_broken()
    it.about_to_mend()
    it.served.start()
    assert it.up() == pid


def daemon_killed_thrice(it: Operator) -> None:
    it.up()
    it.about_to_break()
    for _ in range(3):
        it.served.kill()
        it.served.start()
        it.up()
    it.happened("safe-mode-entered")


def promoted(it: Operator, settings: str, body: str = "raise RuntimeError('no such table')") -> Engine:
    """A rule is brought into force, if not said otherwise one that raises."""
    engine = Engine(it.served)
    it.configure(settings)
    engine.begin()
    it.up()
    it.about_to_break()
    engine.promote(rule(body))
    return engine


def rule_raises(it: Operator) -> None:
    promoted(it, RULES + "[rollback]\nerrors = 100\n")
    it.happened("error", 2, "rule:bad")


def promote_does_harm(it: Operator) -> None:
    engine = promoted(it, RULES + "[rollback]\nerrors = 3\n")
    it.happened("rollback")
    it.until(lambda: it.served.status()["engine"]["rules"] == ["good"], "the rules of before run")
    it.until(lambda: engine.repository.head() == it.served.status()["engine"]["runs"], "main follows")


UNSTICK = """
verdict = await inner(prev, curr)
if not (stuck := curr.conditions["check:queue"]):
    return verdict
params = {"process": "victim"}
wish = Effect(action="restart-process", key="mine:victim", params=params, reason="it is stuck", because=stuck.event)
return verdict.plus(wish)
"""


def restarted_by_a_rule(it: Operator) -> None:
    """A minute after its start, as rules may not do it sooner; and its new life ends at once."""
    stuck, ready = it.directory / "stuck", it.directory / "ready"
    it.write("program", f"if [ -e {stuck} ]; then rm {stuck}; exit 3; fi\ntouch {ready}\nexec sleep 9001\n")
    promoted(it, STUCK, UNSTICK)
    pid = it.up()
    ready.unlink()
    it.write("stuck", "")
    it.happened("condition-cleared")
    it.up("victim", other_than=pid)


def daemon_restarted(it: Operator) -> None:
    pid = it.up()
    it.about_to_break()
    assert it.served.stop() == 0
    it.served.start()
    assert it.up() == pid


def daemon_suspended(it: Operator) -> None:
    pid, daemon = it.up(), it.served.daemon
    assert daemon
    time.sleep(0.5)  # the next probe is under way
    it.about_to_break()
    os.kill(daemon.pid, signal.SIGSTOP)
    time.sleep(4)  # more than a probe may take
    os.kill(daemon.pid, signal.SIGCONT)
    it.sees_it_broken()
    it.about_to_mend()
    time.sleep(2)  # the probe that was under way is over
    assert it.up() == pid


def killed_while_no_daemon_ran(it: Operator) -> None:
    pid = it.up()
    assert it.served.stop() == 0
    it.about_to_break()
    os.kill(pid, signal.SIGKILL)
    it.served.start()
    it.up("victim", other_than=pid)


def comes_and_goes(
    break_: Callable[[Operator], object], mend: Callable[[Operator], object]
) -> Callable[[Operator], None]:
    """A condition comes and goes, and nobody but a person does anything about it."""

    def course(it: Operator) -> None:
        it.about_to_break()
        break_(it)
        it.happened("condition-raised")
        it.sees_it_broken()
        it.about_to_mend()
        mend(it)
        it.happened("condition-cleared")

    return course


def calm(it: Operator) -> None:
    it.up()


def leaked(it: Operator) -> None:
    it.up("victim", other_than=it.up())
    it.happened("condition-cleared")


def calmed_after_a_restart(it: Operator) -> None:
    """A person has it take less once it leaks again after its restart, before another one is due."""
    pid = it.up("victim", other_than=it.up())

    def leaks_again() -> bool:
        usage = it.served.process("victim")["usage"]
        return bool(usage and it.up() == pid and usage["memory"] > 100 << 20)

    it.until(leaks_again, "it leaks again")
    it.sees_it_broken()
    it.about_to_mend()
    it.write("calm", "")
    it.happened("condition-cleared")


def mended_by_another_process(it: Operator) -> None:
    """Pulse restarts one process for a check, and what mends it is that a person starts another one."""
    gateway = it.up("gateway")
    it.up()
    looks_well(it, "queue")
    it.until(lambda: "excused" not in it.served.status()["vitals"]["checks"]["queue"], "its grace is over")
    it.about_to_break()
    it.upulse("process", "stop", "victim")
    it.is_in("stopped")
    (it.directory / "ready").unlink()
    it.up("gateway", other_than=gateway)
    it.sees_it_broken()
    it.about_to_mend()
    it.upulse("process", "start", "victim")
    it.happened("condition-cleared")


def looks_well(it: Operator, name: str) -> None:
    it.until(
        lambda: it.served.status()["vitals"].get("checks", {}).get(name, {}).get("ok"), f"{name} is well"
    )


def file_too_old(it: Operator) -> None:
    looks_well(it, "backup")
    two_hours_ago = time.time() - 7_200
    os.utime(it.directory / "backup", (two_hours_ago, two_hours_ago))


def page_fails(it: Operator) -> None:
    looks_well(it, "page")
    it.write("sick", "")


def command_fails(it: Operator) -> None:
    looks_well(it, "queue")
    it.write("stuck", "")


def program_is_away(it: Operator) -> None:
    looks_well(it, "queue")
    (it.directory / "bin" / "gone").rename(it.directory / "bin" / "away")


def restarted_by_a_check(it: Operator) -> None:
    pid = it.up()
    looks_well(it, "page")
    it.until(lambda: "excused" not in it.served.status()["vitals"]["checks"]["page"], "its grace is over")
    it.about_to_break()
    it.write("sick", "")
    it.up("victim", other_than=pid)
    it.happened("condition-cleared")


def endpoint_mended_by_a_person(it: Operator) -> None:
    """Its process was restarted for it, in vain; then it fails otherwise, which is told, though nothing else follows; a
    person mends it before another restart is due."""
    pid = it.up()

    def is_seen(ok: bool) -> bool:
        seen = it.served.status()["vitals"].get("llm", {}).get(it.url, {})
        is_anew = ok or seen.get("failures", 10) < 10  # ten of them were seen before the restart
        return seen.get("ok") is ok and "excused" not in seen and is_anew

    def said_of_it() -> str:
        return "".join(one["evidence"] for one in it.served.status()["conditions"])

    it.until(lambda: is_seen(ok=True), "the endpoint is well, and its grace over")
    it.about_to_break()
    it.write("sick", "500")
    it.up("victim", other_than=pid)
    it.until(lambda: is_seen(ok=False), "it fails after its grace, too")
    it.sees_it_broken()
    it.write("sick.new", "503").rename(it.directory / "sick")
    it.until(lambda: said_of_it().startswith("it answered 503; "), "what it answers now is told")
    it.about_to_mend()
    (it.directory / "sick").unlink()
    it.happened("condition-cleared")


def config_does_not_boot(it: Operator) -> None:
    """The gateway dies once its config is one that it does not boot with."""
    it.write("openclaw.json", "good")
    it.served.start()
    pid = it.up()
    it.until(lambda: "is good" in it.served.status()["capabilities"]["openclaw"][0], "its config is good")
    it.about_to_break()
    it.write("openclaw.json", "bad")
    os.kill(pid, signal.SIGKILL)
    it.happened("effect-acked", times=1 + 3 + 1)  # its first start, three more, and the config
    it.up("victim", other_than=pid)


def line_logged(it: Operator) -> None:
    it.until(lambda: it.served.status()["vitals"].get("error-log", {}).get("sources"), "the log is followed")
    it.about_to_break()
    with (it.directory / "app.log").open("a") as log:
        log.write("ERROR: no space in the queue\n")
    it.happened("log-matched")


def network_away(it: Operator) -> None:
    it.child = it.serve()
    it.until(lambda: it.served.status()["vitals"].get("network", {}).get("streak", 0) >= 2, "it is asked")
    it.child.kill()
    it.child.wait(PATIENCE)


def disk_filled(it: Operator) -> None:
    it.until(lambda: it.served.status()["vitals"].get("system-resource", {}).get("disks"), "sensed")
    (it.directory / "disk" / "cache").mkdir()
    (it.directory / "disk" / "cache" / "ballast").write_bytes(bytes(14 << 20))


def disk_freed(it: Operator) -> None:
    (it.directory / "disk" / "cache" / "ballast").unlink()


def disk_cleaned(it: Operator) -> None:
    it.about_to_break()
    disk_filled(it)
    it.happened("condition-cleared")


TWO = process("gateway", '["sleep", "9001"]', PATIENT) + process(
    "worker", '["sleep", "9002"]', 'depends_on = ["gateway"]', PATIENT
)
BOTH_UP = {"gateway": "up", "worker": "up"}
PROBE_TIMEOUT_US = 2_000_000
SERVER = process(
    "victim",
    argv(sys.executable, "-c", PAGES, "PORT"),
    'http = "http://127.0.0.1:PORT/"\nevery = "100ms"\ntimeout = "2s"\nevidence = 2\nstart_period = "0s"',
    'stop_timeout = "100ms"',
    PATIENT,
)
SILENT = (
    "http://127.0.0.1:PORT/: it took the connection, but did not answer within T; 2 probes in a row failed"
)
ENDED = "exited with status 3 while it was starting"
BROKEN = f"process N {ENDED}"
GIVEN_UP = f"dead after 2 restarts: {BROKEN}; next try at DAY AT"


MISSING = "cannot start '/no/such/program': there is no such file; give the path of a program"
REMOVED = MISSING.replace("/no/such/program", "DIR/bin/gone")
UNASKED = f"it could not be asked: {REMOVED}"
LEAK = "victim takes SIZE of memory (allowed: SIZE), for at least T"
SPIN = "victim uses X cores (allowed: X), for at least T"
CALMED = "victim takes too much CPU"
SICK = "http://127.0.0.1:PORT/ answers 500; 6 checks in a row failed"
"""Of six looks in three seconds: on a busy machine the server has not begun to listen by the first two."""
AWAY = "nothing that is asked answers, 3 rounds in a row: http://127.0.0.1:PORT/: the connection is refused"
LETTERS = "'/bin/sh' exited with 2: 40 letters wait"
SICK_PAGE = PAGE.replace("os.remove(", "os.path.exists(").replace(
    "(500 if", "(int(open(sys.argv[2]).read()) if"
)
"""A page that no restart mends: it answers with the status that is in the file, while that is there."""
ILL_MODEL = "it answered 500; 10 questions in a row failed"
UNBOOTED = "process N exited with status 1 while it was starting"
RESTORED = "a good config was put back since"
NOT_BOOTED = "2 starts with it failed; COMMIT is put back, with which it has booted"
FULL = "DIR/disk is full to X%, SIZE are free"
RAISED = "RuntimeError: no such table (rules/own.py:5)"
HARM = "its rules and projections raised at least X errors while it was watched"
ITS_END = (
    "It ended between DAY AT and AT, without a stop: it was killed, or it crashed. See: upulse daemon logs"
)
DAEMON_DIED = f"the daemon died, and was started again: {ITS_END}"
IN_SAFE_MODE = (
    "3 daemons in a row were killed, or failed, within a minute of their start; this one runs without optional watchers."
    " Guarded processes are restarted as ever. See: upulse daemon logs, upulse events --kind error; run"
    " everything again: upulse daemon restart --normal"
)
ROLLED_BACK = f"COMMIT was rolled back: {HARM}. COMMIT is in force; see: upulse engine log"
LINE = "ERROR: no space in the queue"
READY = 'exec = ["test", "-e", "DIR/ready"]\nevery = "200ms"\nevidence = 1000'
"""Nothing that ends before it is ready is found alive by a look, and nothing that is up counts as hung."""
STUCK = "[daemon]\ntick_ms = 200\n" + process("victim", argv("sh", "DIR/program"), READY, PATIENT)
STUCK += check(
    "queue", 'command = ["/bin/sh", "-c", "test ! -e DIR/stuck || { echo 40 letters wait; exit 2; }"]'
)
PROBED = process("victim", '["sleep", "9001"]', 'exec = ["true"]\nevery = "200ms"\nevidence = 2', PATIENT)
ILL_PROBED = "'false' exited with 1; 2 probes in a row failed"
UNTHEMED = "its probe failed N times since its start: 'sh' exited with 1: no theme"
ENDS_ONCE = "[ ! -e DIR/bad ] || { rm DIR/bad; exit 3; }"
ENDED_EARLY = "process N exited with status 3 while it was starting"
NOT_READY = "'/bin/sh' exited with 2: the worker is away"
SMALL_DISK = '[resources]\ndisk = [{ path = "DIR/disk", raise = 0.8, clear = 0.5 }]\n'


def told_twice(
    name: str, evidence: str, over: str, title: str, states: Mapping[str, str] = {}, severity: str = "warning"
) -> Truth:
    """A condition that Pulse did nothing about but tell that it began, and that it was over."""
    more = (
        '; nothing but a notice follows; then = "restart" would restart it'
        if name.startswith("usage")
        else ""
    )
    return Truth(
        states,
        f"condition {name}: {evidence}, resolved after T\n  notify 2 acked: resolved: {over}",
        notices=((severity, name),) * 2,
        warnings=(f"condition-raised {name} {evidence}", f"{title}: {evidence}{more}"),
        why={name: f"condition {name}  cleared"},
    )


TABLE: tuple[Breakage, ...] = (
    Breakage(
        "killed -9 by somebody", SLEEPER, killed, answered("process N was killed by SIGKILL"), short=True
    ),
    Breakage("restarted by a person", SLEEPER, restarted, nothing(), short=True),
    Breakage(
        "killed where it goes into the background before it writes its PID file",
        process(
            "victim",
            argv(sys.executable, "-c", DAEMONISES, "DIR/pid"),
            PATIENT,
            'pid_file = "DIR/pid"\nexec = ["sh", "-c", "grep -q . /proc/$(cat DIR/pid)/cmdline"]\nevery = "500ms"',
        ),
        killed,
        answered("process N died, and how is not known"),
    ),
    Breakage("hung", SERVER, hung, answered(SILENT), short=True),
    Breakage("ended by a person's SIGTERM", SLEEPER, terminated, answered("process N was killed by SIGTERM")),
    Breakage("ends with status 3", PIPED, ended_by(3), answered("process N exited with status 3")),
    Breakage("ends with status 0", PIPED, ended_by(0), answered("process N exited with status 0")),
    Breakage(
        "ends as soon as it starts",
        process("victim", argv("sh", "DIR/program"), NEVER_UP),
        gives_up,
        Truth(
            {"victim": "flapping"},
            f"process victim: it {ENDED}, 3 times, ongoing\n"
            "  > no database\n"
            f"  restart-process 2 acked: victim is dead after 1 restart: {BROKEN}\n"
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
        process("victim", argv("sh", "DIR/program"), 'exec = ["grep", "-q", "exec", "DIR/program"]', HASTY),
        mended,
        Truth(
            UP,
            f"process victim: it {ENDED}, 3 times, resolved after T\n"
            "  > no database\n"
            "  restart-process 3 acked: victim is to be started: root asked for it\n"
            f"  notify acked: {GIVEN_UP}\n"
            "  root requested a start\n"
            "  recovered after a request",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"process-died victim {BROKEN}",
                f"victim stays down: {GIVEN_UP} It printed last: > no database",
            ),
        ),
    ),
    Breakage(
        "a command that is to restart it leaves it as it is",
        '[[process]]\nname = "victim"\npid_file = "DIR/pid"\n'
        'command = ["sh", "-c", "echo tried >> DIR/tries"]\nexec = ["test", "!", "-e", "DIR/sick"]\n'
        'restart = { max = 2, backoff = "10ms", backoff_max = "30m", grace = "2s" }\n',
        restarted_by_a_command_that_leaves_it,
        Truth(
            {"victim": "flapping"},
            f"process victim: {UNWELL}; 3 probes in a row failed, ongoing\n"
            f"  restart-process 2 acked: victim is dead after 1 restart: {STILL_UNWELL}\n"
            f"  notify acked: dead after 2 restarts: {STILL_UNWELL}; next try at DAY AT\n"
            "  not recovered yet",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"effect restart-process:victim …ID victim is dead after 1 restart: {STILL_UNWELL}",
                f"process-died victim {UNWELL}; 3 probes in a row failed",
                f"victim stays down: dead after 2 restarts: {STILL_UNWELL}; next try at DAY AT",
            ),
            wrong=True,
        ),
        starts_itself=True,
    ),
    Breakage(
        "killed, and comes up late, when its budget is spent",
        process(
            "victim",
            argv("sh", "-c", "[ ! -e DIR/slow ] || rm -f DIR/ready; exec sleep 9001"),
            READY,
            'restart = { max = 2, backoff = "10ms", backoff_max = "30m", grace = "6s" }',
        ),
        comes_up_late,
        Truth(
            UP,
            "process victim: process N was killed by SIGKILL, resolved after T\n"
            f"  restart-process 2 acked: victim is dead after 1 restart: {STILL_UNWELL}\n"
            f"  notify acked: dead after 2 restarts: {STILL_UNWELL}; next try at DAY AT\n"
            "  recovered",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"effect restart-process:victim …ID victim is dead after 1 restart: {STILL_UNWELL}",
                "process-died victim process N was killed by SIGKILL",
                f"victim stays down: dead after 2 restarts: {STILL_UNWELL}; next try at DAY AT",
            ),
        ),
        starts_itself=True,
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
    Breakage(
        "restarted by a person with a version that does not serve",
        process(
            "victim",
            '["sleep", "9001"]',
            'exec = ["sh", "-c", "test ! -e DIR/sick || { echo no theme; exit 1; }"]\nevery = "200ms"',
            PATIENT.replace("60s", "3s"),
        ),
        deployed_what_does_not_serve,
        Truth(
            UP,
            f"process victim: {UNTHEMED}, resolved after T\n"
            f"  restart-process 2 acked: victim is dead: {UNTHEMED}\n"
            "  root requested a restart: version 2\n"
            "  recovered",
            warnings=(f"effect restart-process:victim …ID victim is dead: {UNTHEMED}",),
        ),
    ),
    Breakage(
        "killed, then restarted by a person with a version that ends at once",
        process(
            "victim",
            argv("sh", "-c", f"{ENDS_ONCE}; touch DIR/ready; exec sleep 9001"),
            'exec = ["test", "-e", "DIR/ready"]\nevery = "200ms"\nevidence = 1000',
            PATIENT,
        ),
        killed_then_deployed_what_ends_at_once,
        Truth(
            UP,
            f"process victim: 2 times, of 2 causes, the last: {ENDED_EARLY}, resolved after T, wrong for T of it\n"
            "  process N was killed by SIGKILL\n"
            f"  {ENDED_EARLY}\n"
            f"  restart-process 3 acked: victim is dead: {ENDED_EARLY}\n"
            "  root requested a restart: version 2\n"
            "  recovered",
            warnings=(
                "process-died victim process N was killed by SIGKILL",
                f"process-died victim {ENDED_EARLY}",
            ),
        ),
    ),
    Breakage("restarted with all others", TWO, all_restarted, nothing(BOTH_UP)),
    Breakage(
        "killed in a pause, then resumed",
        SLEEPER,
        killed_until_resumed,
        answered("process N was killed by SIGKILL", held="a pause of root"),
    ),
    Breakage(
        "killed in a pause",
        SLEEPER,
        killed_in_a_pause,
        unanswered("process N was killed by SIGKILL", "waiting", "a pause of root"),
    ),
    Breakage(
        "killed in a silence",
        SLEEPER,
        killed_in_a_silence,
        unanswered(
            "process N was killed by SIGKILL",
            "silenced",
            "the silence 'restart-process:victim' of root (new disks)",
        ),
        short=True,
    ),
    Breakage(
        "killed in a silence that a person then removes",
        SLEEPER,
        killed_until_the_silence_is_removed,
        answered(
            "process N was killed by SIGKILL",
            held="the silence 'restart-process:*' of root (new disks)",
        ),
    ),
    Breakage("settings reloaded", SLEEPER, reloaded, nothing()),
    Breakage(
        "killed while it was taken out of the settings, then put back",
        SLEEPER,
        killed_out_of_the_settings,
        Truth(
            UP,
            f"AT to AT  {died(UNGUARDED)}".replace("after T", "after T to T"),
            warnings=(
                "settings-loaded guarding nothing; not in the settings any more: victim",
                f"process-died victim {UNGUARDED}",
            ),
        ),
    ),
    Breakage(
        "a probe made wrong by a reload, and right by another one",
        PROBED,
        probe_made_wrong_and_right,
        Truth(
            UP,
            f"process victim: {ILL_PROBED}, resolved after T\n"
            f"  restart-process acked: victim is dead: {ILL_PROBED}\n"
            "  new settings were loaded\n"
            "  recovered after a request",
            warnings=(f"process-died victim {ILL_PROBED}",),
        ),
    ),
    Breakage(
        "not started with the daemon",
        process("victim", '["sleep", "9001"]', "autostart = false"),
        not_started,
        nothing({"victim": "stopped"}),
    ),
    Breakage(
        "no such program",
        process("victim", '["/no/such/program"]', HASTY),
        gives_up,
        Truth(
            {"victim": "flapping"},
            f"process victim: its start failed: {MISSING}, ongoing\n"
            f"  restart-process 3 failed ({MISSING}): victim is not started after 2 tries: {MISSING}\n"
            f"  notify acked: not started after 3 tries: {MISSING}; next try at DAY AT\n"
            "  not recovered yet",
            notices=(("critical", "flapping:victim"),),
            warnings=(
                f"effect-failed restart-process:victim {MISSING}",
                f"victim stays down: not started after 3 tries: {MISSING}; next try at DAY AT",
            ),
            wrong=True,
        ),
    ),
    Breakage(
        "its program is removed, then put back",
        process("gone", argv("DIR/bin/gone", "9001"), HASTY),
        program_removed,
        Truth(
            {"gone": "up"},
            "process gone: process N was killed by SIGKILL, resolved after T\n"
            "  restart-process 2 failed, 1 acked: gone is to be started: root asked for it\n"
            f"  notify acked: still dead after 2 tries to restart it: {REMOVED}; next try at DAY AT\n"
            "  root requested a start\n"
            "  recovered after a request",
            notices=(("critical", "flapping:gone"),),
            warnings=(
                "process-died gone process N was killed by SIGKILL",
                f"effect-failed restart-process:gone {REMOVED}",
                f"gone stays down: still dead after 2 tries to restart it: {REMOVED}; next try at DAY AT",
            ),
        ),
    ),
    Breakage(
        "settings refused",
        SLEEPER,
        reload_refused,
        Truth(
            UP,
            warnings=(
                "settings-refused DIR/home/config.toml:11: process.victim.restrat: unknown key 'restrat' (did you mean"
                " 'restart'?)",
            ),
            wrong=True,
        ),
    ),
    Breakage(
        "killed three times",
        SLEEPER,
        killed_thrice,
        Truth(
            UP,
            "process victim: it was killed by SIGKILL, 3 times, resolved after T, wrong for T of it\n"
            "  restart-process 3 acked: victim is dead: process N was killed by SIGKILL\n"
            "  recovered",
            warnings=("process-died victim process N was killed by SIGKILL",),
        ),
    ),
    Breakage(
        "the daemon is killed",
        SLEEPER,
        daemon_killed,
        Truth(
            UP,
            "AT to AT  daemon pulse: the daemon ended without a stop: it was killed, or it crashed,"
            f" last sign of life AT, found at AT\n  notify acked: {ITS_END}",
            notices=(("warning", "daemon"),),
            warnings=("daemon-started pid=N version=V, the one before it ended without a stop", DAEMON_DIED),
        ),
    ),
    Breakage("the daemon is restarted", SLEEPER, daemon_restarted, nothing()),
    Breakage(
        "the daemon is suspended while a probe is under way",
        process(
            "victim",
            '["sleep", "9001"]',
            'exec = ["sleep", "1"]\nevery = "100ms"\ntimeout = "2s"\nevidence = 1\nstart_period = "0s"',
            PATIENT,
        ),
        daemon_suspended,
        nothing(),
    ),
    Breakage(
        "killed while no daemon ran",
        SLEEPER,
        killed_while_no_daemon_ran,
        Truth(
            UP,
            f"AT to AT  {died(UNSEEN)}".replace("after T", "after T to T"),
            warnings=(f"process-died victim {UNSEEN}",),
        ),
    ),
    Breakage(
        "leaks memory once",
        process(
            "victim",
            argv(sys.executable, "-c", LEAKS_ONCE, "DIR/leaked"),
            PATIENT,
            'memory_max = "100M"\nfor = "300ms"\nthen = "restart"',
        ),
        leaked,
        Truth(
            UP,
            f"condition usage:victim:memory: {LEAK}, resolved after T\n"
            f"  restart-process:victim acked: {LEAK}\n"
            "  recovered",
            warnings=(f"condition-raised usage:victim:memory {LEAK}",),
            why={"usage:victim:memory": "condition usage:victim:memory  cleared"},
        ),
    ),
    Breakage(
        "leaks memory again after its restart, until a person calms it",
        process(
            "victim",
            argv(sys.executable, "-c", LEAKS, "DIR/calm"),
            PATIENT,
            'memory_max = "100M"\nfor = "5s"\nthen = "restart"',
        ),
        calmed_after_a_restart,
        Truth(
            UP,
            f"condition usage:victim:memory: {LEAK}, resolved after T\n"
            f"  restart-process:victim acked: {LEAK}\n"
            "  recovered; it is not known by what, since it was seen wrong after that, too",
            warnings=(f"condition-raised usage:victim:memory {LEAK}",),
            why={"usage:victim:memory": "condition usage:victim:memory  cleared"},
        ),
    ),
    Breakage(
        "takes a core until a person calms it",
        process(
            "victim",
            argv(sys.executable, "-c", SPINS, "DIR/calm"),
            PATIENT,
            'cpu_max = 0.1\nfor = "200ms"',
        ),
        comes_and_goes(calm, lambda it: it.write("calm", "")),
        told_twice("usage:victim:cpu", SPIN, "victim uses X cores (allowed: X)", CALMED, UP),
    ),
    Breakage(
        "a backup is too old",
        check("backup", 'file = "DIR/backup"\nage_over = "1h"'),
        comes_and_goes(file_too_old, lambda it: os.utime(it.directory / "backup")),
        told_twice(
            "check:backup",
            "DIR/backup was changed T ago (good: under T)",
            "it is well",
            "check backup fails",
        ),
    ),
    Breakage(
        "a page answers 500",
        process("victim", argv(sys.executable, "-c", PAGE, "PORT", "DIR/sick"), PATIENT)
        + check("page", 'http = "http://127.0.0.1:PORT/"\nevidence = 6'),
        comes_and_goes(page_fails, lambda it: (it.directory / "sick").unlink()),
        told_twice("check:page", SICK, "it is well", "check page fails", UP),
    ),
    Breakage(
        "a page answers 500 until its server is restarted",
        process("victim", argv(sys.executable, "-c", PAGE, "PORT", "DIR/sick"), PATIENT)
        + check(
            "page", 'http = "http://127.0.0.1:PORT/"\nevidence = 6\nthen = "restart victim"\ngrace = "1s"'
        ),
        restarted_by_a_check,
        Truth(
            UP,
            f"condition check:page: {SICK}, resolved after T\n"
            f"  restart-process:victim acked: check page fails: {SICK}\n"
            "  recovered",
            warnings=(f"condition-raised check:page {SICK}",),
        ),
    ),
    Breakage(
        "a model fails after the restart of its server, too, and then otherwise, until a person mends it",
        process(
            "victim",
            argv(sys.executable, "-c", SICK_PAGE, "PORT", "DIR/sick"),
            PATIENT,
        )
        + '[[llm]]\nurl = "http://127.0.0.1:PORT/"\nrestart = "victim"\ninterval = "500ms"\nevidence = 10\n'
        + 'grace = "1s"\n',
        endpoint_mended_by_a_person,
        Truth(
            UP,
            f"condition llm:http://127.0.0.1:PORT/: {ILL_MODEL}, resolved after T\n"
            f"  restart-process:victim acked: http://127.0.0.1:PORT/ gives no good answer: {ILL_MODEL}\n"
            "  recovered; it is not known by what, since it was seen wrong after that, too",
            warnings=(f"condition-raised llm:http://127.0.0.1:PORT/ {ILL_MODEL}",),
        ),
    ),
    Breakage(
        "a gateway does not boot with its new config",
        process(
            "victim",
            argv(sys.executable, "-c", BOOTS, "DIR/openclaw.json"),
            'exec = ["grep", "-q", "good", "DIR/openclaw.json"]',
            'restart = { max = 1000, backoff = "5s", grace = "60s" }',
        )
        + '[[openclaw]]\nprocess = "victim"\nfolder = "DIR"\nproven = "1s"\n',
        config_does_not_boot,
        Truth(
            UP,
            f"process victim: 3 times, of 2 causes, the last: {UNBOOTED}, resolved after T\n"
            "  process N was killed by SIGKILL\n"
            "  AT to AT  it exited with status 1 while it was starting, 2 times\n"
            "  > config invalid\n"
            f"  restart-process 3 acked: victim is dead after 2 restarts: {UNBOOTED}; {RESTORED}\n"
            f"  restore-config acked: {NOT_BOOTED}\n"
            "  notify 2 acked: resolved: it is up with a good one\n"
            "  recovered",
            notices=(("warning", "openclaw:victim"),) * 2,
            warnings=(
                "process-died victim process N was killed by SIGKILL",
                f"process-died victim {UNBOOTED}",
                f"victim does not boot with its new config: {NOT_BOOTED}",
            ),
        ),
        starts_itself=True,
    ),
    Breakage(
        "a command fails until a person starts what it asks, whatever else is restarted",
        process("gateway", '["sleep", "9001"]', PATIENT)
        + process("victim", argv("sh", "-c", "touch DIR/ready; exec sleep 9002"), PATIENT)
        + check(
            "queue",
            'command = ["/bin/sh", "-c", "test -e DIR/ready || { echo the worker is away; exit 2; }"]\n'
            'then = "restart gateway"\ngrace = "5s"',
        ),
        mended_by_another_process,
        Truth(
            {"gateway": "up", "victim": "up"},
            f"condition check:queue: {NOT_READY}, resolved after T\n"
            f"  restart-process:gateway acked: check queue fails: {NOT_READY}\n"
            "  root requested a start of victim\n"
            "  recovered after a request; whether that helped is not known",
            warnings=(f"condition-raised check:queue {NOT_READY}",),
        ),
    ),
    Breakage(
        "a command fails",
        check(
            "queue",
            'command = ["/bin/sh", "-c", "test ! -e DIR/stuck || { echo 40 letters wait; exit 2; }"]',
        ),
        comes_and_goes(command_fails, lambda it: (it.directory / "stuck").unlink()),
        told_twice("check:queue", LETTERS, "it is well", "check queue fails"),
    ),
    Breakage(
        "the program of a check is away for a minute, which nobody calls a failure of what it asks",
        check("queue", 'command = ["DIR/bin/gone", "0"]\nevidence = 2'),
        comes_and_goes(
            program_is_away, lambda it: (it.directory / "bin" / "away").rename(it.directory / "bin" / "gone")
        ),
        Truth(
            {},
            f"condition check:queue: {UNASKED}, resolved after T\n  notify 2 acked: resolved: it is well",
            notices=(("warning", "check:queue"),) * 2,
            warnings=(
                f"check queue fails: {UNASKED}; first seen T ago",
                f"condition-raised check:queue {UNASKED}",
            ),
            why={"check:queue": "condition check:queue  cleared"},
        ),
    ),
    Breakage(
        "a command fails until a rule of the user's restarts what it asks",
        STUCK,
        restarted_by_a_rule,
        Truth(
            UP,
            f"condition check:queue: {LETTERS}, resolved after T\n"
            "  notify 2 acked: resolved: it is well\n"
            "  restart-process acked: it is stuck\n"
            "  recovered\n"
            f"process victim: {BROKEN}, resolved after T\n"
            "  restart-process acked: it is stuck\n"
            f"  restart-process acked: victim is dead: {BROKEN}\n"
            "  recovered",
            notices=(("warning", "check:queue"),) * 2,
            warnings=(
                f"check queue fails: {LETTERS}",
                f"condition-raised check:queue {LETTERS}",
                f"process-died victim {BROKEN}",
            ),
        ),
        starts_itself=True,
    ),
    Breakage(
        "a line is logged",
        '[[log]]\npath = "DIR/app.log"\nkeywords = ["ERROR"]\n',
        line_logged,
        Truth(
            {},
            f"log DIR/app.log: {LINE}\n  notify acked: {LINE}",
            notices=(("error", "log:DIR/app.log"),),
            warnings=(f"errors in DIR/app.log: {LINE}",),
        ),
    ),
    Breakage(
        "what is asked of the network is away",
        '[network]\nhttp = ["http://127.0.0.1:PORT/"]\ninterval = "200ms"\n',
        comes_and_goes(network_away, lambda it: it.serve()),
        told_twice("network", AWAY, "every target answers", "the network is down", severity="error"),
    ),
    Breakage(
        "a disk is full until a person frees it",
        SMALL_DISK,
        comes_and_goes(disk_filled, disk_freed),
        Truth(
            {},
            f"condition disk:DIR/disk: {FULL}, resolved after T\n"
            "  notify 2 acked: resolved: It is over; it is 0.0% now.",
            notices=(("warning", "resource:disk:DIR/disk"),) * 2,
            warnings=(
                f"DIR/disk is nearly full: {FULL}. Pulse does nothing about it: [resources] has neither clean nor"
                " sessions.",
                f"condition-raised disk:DIR/disk {FULL}",
            ),
        ),
        small_disk=True,
    ),
    Breakage(
        "a disk is full until Pulse cleans it",
        SMALL_DISK + 'clean = ["DIR/disk/cache"]\nclean_age = "0s"\n',
        disk_cleaned,
        Truth(
            {},
            f"condition disk:DIR/disk: {FULL}, resolved after T\n"
            f"  clean-paths acked (freed SIZE): {FULL}\n"
            "  notify 2 acked: resolved: It is over; tried before: clean-paths (freed SIZE); it is 0.0% now.\n"
            "  recovered",
            notices=(("warning", "resource:disk:DIR/disk"),) * 2,
            warnings=(
                f"condition-raised disk:DIR/disk {FULL}",
                f"DIR/disk is nearly full: {FULL}. Pulse deletes what nobody touched for T in DIR/disk/cache.",
            ),
        ),
        small_disk=True,
    ),
    Breakage(
        "the daemon is killed three times",
        SLEEPER,
        daemon_killed_thrice,
        Truth(
            UP,
            "AT to AT  daemon pulse: the daemon ended without a stop: it was killed, or it crashed, 3 times, resolved"
            f" after T to T, wrong for at most T of it\n  notify acked: {ITS_END}\n"
            "daemon safe mode: 3 starts in a row ended within a minute; left out: optional watchers, ongoing\n"
            f"  notify acked: {IN_SAFE_MODE}",
            notices=(("warning", "daemon"), ("critical", "safe-mode")),
            warnings=(
                DAEMON_DIED,
                "daemon-started pid=N version=V, the one before it ended without a stop",
                "safe-mode-entered without optional watchers, after 3 crashes",
                f"Pulse runs in safe mode, without optional watchers: {IN_SAFE_MODE}",
            ),
            wrong=True,
        ),
    ),
    Breakage(
        "a rule raises errors",
        RULES,
        rule_raises,
        Truth(
            UP,
            f"error rule:bad: {RAISED}, X times, last at AT",
            warnings=(f"rule:bad: {RAISED}",),
            wrong=True,
        ),
        starts_itself=True,
    ),
    Breakage(
        "a promote does harm",
        RULES + "[rollback]\nerrors = 3\n",
        promote_does_harm,
        Truth(
            UP,
            f"error rule:bad: {RAISED}, X times, ended after T\n"
            "  its commit was rolled back\n"
            f"engine COMMIT: COMMIT was rolled back: {HARM}\n"
            f"  notify acked: {ROLLED_BACK}",
            warnings=(
                f"rollback COMMIT COMMIT was rolled back to COMMIT: {HARM}",
                f"rule:bad: {RAISED}",
                f"the engine was rolled back: {ROLLED_BACK}",
            ),
            notices=(("error", "engine:rolled-back"),),
        ),
        starts_itself=True,
    ),
)
