"""Starting, running and ending real processes."""

import asyncio
import errno
import os
import re
import signal
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from pulse_adapters.host import outputs
from pulse_adapters.host import spawner as spawner_module
from pulse_adapters.host.launch import launch
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.marked_processes import bearer_of
from pulse_adapters.host.spawner import CommandTimedOut, Spawner, kill_rest
from pulse_adapters.workers import process_tree, syscall_numbers
from pulse_adapters.workers.proc import (
    ProcStat,
    command_line,
    has_marker,
    is_alive,
    live_processes,
    read_stat,
    send,
    with_marker,
)
from pulse_adapters.workers.spawn import ProcessAttributes, ProcessUser, nowhere
from pulse_core.model.errors import NotStartable, PulseError
from pulse_core.model.shortages import lacks_to_start
from pulse_core.ports.host import ProcessId
from tests.engine_user import python_for_all
from tests.integration.host.host_scene import said, script, until
from tests.processes import TRACER

# Forks twice with a session of its own in between, so that neither parent, group nor session lead back.
ESCAPED = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        open({path!r}, "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""


async def test_a_started_process_leads_its_own_session_and_keeps_its_identity(
    spawner: Spawner, log: Path
) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    born = read_stat(found.pid)
    assert born is not None
    assert (born.started, born.session, born.group) == (found.started, found.pid, found.pid)


async def test_start_times_are_the_kernels_own(spawner: Spawner, log: Path) -> None:
    found = [await spawner.start(["sleep", "1000"], output=log) for _ in range(50)]
    assert [one for one in found if not is_alive(one)] == []


@pytest.mark.parametrize("where", ["launch.read_stat", "spawner.os"])
async def test_a_start_that_finds_no_descriptor_to_watch_it_leaves_no_process(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Nobody would know of it, and a second one be started beside it."""

    def full(pid: int) -> None:
        pids.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    pids = list[int]()
    with monkeypatch.context() as here:
        # Only what the spawner itself opens: a child that looks at the program's file system is watched by a pidfd, too.
        fails = SimpleNamespace(**{**vars(os), "pidfd_open": full}) if where == "spawner.os" else full
        ticks = (lambda: 1) if where == "spawner.os" else partial(next, count())
        here.setattr(f"pulse_adapters.host.{where}", fails)
        here.setattr("pulse_adapters.host.launch.ticks_now", ticks)
        with pytest.raises(PulseError, match="cannot keep watch over a new process: Too many open files"):
            await spawner.start(["sleep", "1000"], output=log)
    await until(lambda: read_stat(pids[0]) is None)  # nor a zombie, which counts as one until the daemon ends


async def test_a_start_that_the_loop_cannot_watch_leaves_no_process(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the kernel has no memory for it, or a user has as many as `fs.epoll.max_user_watches` allows."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def launched(*words: Any, **more: Any) -> ProcessId:
        found.append(launch(*words, **more))
        return found[-1]

    found, before = list[ProcessId](), len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("pulse_adapters.host.spawner.launch", launched)
    with monkeypatch.context() as here:
        here.setattr(asyncio.get_running_loop(), "add_reader", full)
        with pytest.raises(PulseError, match="cannot keep watch over a new process: No space left"):
            await spawner.start(["sleep", "1000"], output=log)
    await until(lambda: read_stat(found[0].pid) is None)
    assert not spawner.reaps(found[0].pid)
    await until(lambda: len(os.listdir("/proc/self/fd")) == before)


class SlowLaunch:
    """Starts programs as `launch` does; each is being executed until the loop says that it has got a processor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launched, self._is_executed = list[ProcessId](), threading.Event()
        monkeypatch.setattr("pulse_adapters.host.spawner.launch", self._launch)

    def _launch(self, *words: Any, **more: Any) -> ProcessId:
        self.launched.append(launch(*words, **more))
        assert self._is_executed.wait(60)
        return self.launched[-1]

    async def begun(self) -> ProcessId:
        """The one that is being started."""
        await until(lambda: self.launched)
        return self.launched[0]

    def end(self) -> None:
        """It is executed."""
        self._is_executed.set()


async def test_the_loop_goes_on_while_a_program_waits_for_a_processor(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many that died at once on a busy machine, each restart held up all others, and all else."""
    slow = SlowLaunch(monkeypatch)
    start = asyncio.create_task(spawner.start(["sleep", "1000"], output=log, env={"PULSE_EFFECT": "one"}))
    found = await slow.begun()
    assert spawner.effect_of(found.pid) == "", "nobody takes it for what a dead process has left"
    assert spawner.effect_of(os.getppid()) is None
    slow.end()
    assert await start == found
    assert spawner.effect_of(found.pid) == "one"


async def test_who_is_only_being_started_is_not_left_of_an_earlier_life(
    spawner: Spawner, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, lives = SlowLaunch(monkeypatch), Lives(spawner, tmp_path)
    marks = lives.marks("it", uuid.uuid4().hex)
    start = asyncio.create_task(spawner.start(["sleep", "1000"], output=log, env=marks))
    found = await slow.begun()
    await until(lambda: bearer_of(found.pid))
    assert lives.leftovers({"it": None}) == {}
    slow.end()
    assert await start == found
    assert lives.leftovers({"it": None}) == {"it": (found,)}, "nobody says that it is a life of its own"


@pytest.mark.parametrize("way", ["start", "run"])
async def test_a_start_that_is_cancelled_leaves_no_process(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    slow, argv = SlowLaunch(monkeypatch), ["sleep", "1000"]
    start = spawner.start(argv, output=log) if way == "start" else spawner.run(argv, timeout=1000)
    task = asyncio.ensure_future(start)
    found = await slow.begun()
    task.cancel()
    slow.end()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: read_stat(found.pid) is None)


def is_said(log: Path, word: str) -> bool:
    return word in said(log)


async def test_a_kill_that_finds_no_descriptor_is_tried_again(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    tries = list[ProcessId]()

    def full(one: ProcessId, number: signal.Signals) -> bool:
        tries.append(one)
        if len(tries) == 1:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return send(one, number)

    monkeypatch.setattr(process_tree, "send", full)
    killer = process_tree.TreeKiller(lambda now: [found.pid])
    assert [one.found for one in killer.round(process_tree.live_process_table())] == [found]
    assert (killer.denied, is_alive(found)) == (set(), True)
    killer.round(process_tree.live_process_table())
    await until(lambda: not is_alive(found))
    assert tries == [found, found]


async def test_trees_that_end_at_once_are_searched_for_together_and_beside_the_loop(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [await spawner.start(["sleep", "1000"], output=log) for _ in range(20)]
    searches = list[int]()

    def search() -> list[ProcStat]:
        searches.append(threading.get_ident())
        return live_processes()

    def read(pids: Collection[int], marker: str, variable: str) -> list[int]:
        readers.add(threading.get_ident())
        return with_marker(pids, marker, variable)

    readers = set[int]()
    monkeypatch.setattr(process_tree, "live_processes", search)
    monkeypatch.setattr(process_tree, "with_marker", read)
    await asyncio.gather(*(process_tree.end_tree(root, f"PULSE_EFFECT={root.pid}") for root in roots))
    assert not any(map(is_alive, roots))
    assert len(searches) <= 2 * len(roots), "each needs three"
    assert readers
    assert threading.get_ident() not in readers.union(searches)


def test_what_is_searched_together_was_asked_for_before() -> None:
    shared = process_tree.SharedTable()
    first, second = shared.asked(), shared.asked()
    table = first()
    later = shared.asked()
    assert second() is table
    assert later() is not table


async def test_only_what_is_younger_is_asked_for_its_mark(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, young = [await spawner.start(["sleep", "1000"], output=log) for _ in range(2)]
    now = {one.pid: one for one in live_processes() if one.pid in (old.pid, young.pid)}
    now[old.pid] = now[old.pid]._replace(started=young.started - 1)
    asked = list[int]()

    def bear(pids: Collection[int], *_: str) -> list[int]:
        asked.extend(pids)
        return list(pids)

    monkeypatch.setattr(process_tree, "with_marker", bear)
    assert set(process_tree.in_tree(young, "IT=1")(now)) == {young.pid}
    assert asked == [young.pid]


async def test_output_of_both_kinds_is_appended(spawner: Spawner, log: Path) -> None:
    for word in ("one", "two"):
        await spawner.start(["sh", "-c", f"echo {word}; echo {word}! >&2"], output=log)
        await until(partial(is_said, log, f"{word}!"))
    assert said(log).split() == ["one", "one!", "two", "two!"]


async def test_a_big_log_is_rotated_when_a_process_is_started(spawner: Spawner, log: Path) -> None:
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(outputs.ROTATE_AT + 1)
    await spawner.start(["echo", "fresh"], output=log)
    await until(lambda: said(log) == "fresh\n")
    assert os.stat(f"{log}.1").st_size == outputs.ROTATE_AT + 1


async def test_what_systemd_told_the_daemon_is_not_told_to_its_children(
    monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    secret = (
        "NOTIFY_SOCKET",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
        "LISTEN_FDS",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
    )
    for name in (*secret, "PULSE_EFFECT"):
        monkeypatch.setenv(name, "x")
    spawner = Spawner()
    said = (await spawner.run(["env"], timeout=60, env={"MINE": "yes"})).output.splitlines()
    spawner.close()
    names = {line.partition("=")[0] for line in said}
    assert names.isdisjoint({*secret, "PULSE_EFFECT"})
    assert {"MINE=yes", f"PATH={os.environ['PATH']}"} <= set(said)


async def test_a_child_gets_default_signals_and_an_empty_mask(mark: str, log: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        spawner = Spawner()
        said = (await spawner.run(["grep", "Sig", "/proc/self/status"], timeout=60)).output
        spawner.close()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGHUP, before)
    fields = dict(line.split(":\t") for line in said.splitlines())
    kept_by_libc = 1 << 31 | 1 << 32  # signals 32 and 33 are the C library's own; nobody may change them
    assert int(fields["SigBlk"], 16) == int(fields["SigIgn"], 16) & ~kept_by_libc == 0


@pytest.mark.parametrize(
    ("program", "cwd", "words"),
    [
        ("no-such-program-here", None, "no such program in PATH"),
        ("/no/such/file", None, "no such file"),
        ("/etc/passwd", None, "may not be executed"),
        ("true", "/no/such/directory", "working directory '/no/such/directory'"),
    ],
)
async def test_what_cannot_be_started_says_why(
    spawner: Spawner, log: Path, program: str, cwd: str | None, words: str
) -> None:
    with pytest.raises(NotStartable, match=words):
        await spawner.start([program], output=log, cwd=cwd)


async def test_a_script_without_its_interpreter_says_so(spawner: Spawner, log: Path, tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "#!/no/such/interpreter\n")
    with pytest.raises(PulseError, match="interpreter"):
        await spawner.start([str(broken)], output=log)


async def test_whatever_becomes_of_dev_programs_are_started(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is tidied up there, or mounted over it, may take the null device along, which every start needs."""
    await spawner.run(["true"], timeout=60)
    monkeypatch.setattr(os, "devnull", "/no/such/device")
    for cwd in (None, "/"):
        assert (await spawner.run(["cat"], timeout=60, cwd=cwd)).exit == 0
        found = await spawner.start(["sleep", "1000"], output=log, cwd=cwd)
        assert os.readlink(f"/proc/{found.pid}/fd/0") == "/dev/null"
    os.close(nowhere())
    nowhere.cache_clear()
    with pytest.raises(PulseError, match="/no/such/device cannot be opened") as told:
        await spawner.start(["sleep", "1000"], output=log)
    assert lacks_to_start(told.value)
    assert not isinstance(told.value, NotStartable)


async def test_dead_children_leave_no_zombies(spawner: Spawner, log: Path) -> None:
    found = [await spawner.start(["true"], output=log) for _ in range(20)]
    await until(lambda: all(read_stat(one.pid) is None for one in found))


async def test_of_a_crowd_that_dies_at_once_it_is_known_how_each_ended_and_that_pulse_wanted_it(
    spawner: Spawner, log: Path
) -> None:
    """Who is asked about only when all are dead: else the first of them would be incidents that nobody can explain."""
    found = [await spawner.start(["sleep", "1000"], output=log) for _ in range(300)]
    for one in found:
        spawner.note_end(one)
        send(one, signal.SIGKILL)
    await until(lambda: not any(spawner.reaps(one.pid) for one in found))
    assert {spawner.end_of(one) for one in found} == {"was killed by SIGKILL"}
    assert all(map(spawner.has_ended, found))


async def test_who_was_killed_by_a_signal_without_a_name_is_dead_all_the_same(
    spawner: Spawner, log: Path
) -> None:
    found = await spawner.start(["sh", "-c", f"kill -{signal.SIGRTMIN + 1} $$"], output=log)
    await until(lambda: spawner.end_of(found) == f"was killed by signal {signal.SIGRTMIN + 1}")


async def test_children_survive_the_close(mark: str, log: Path) -> None:
    spawner = Spawner()
    found = await spawner.start(["sleep", "1000"], output=log)
    spawner.close()
    assert is_alive(found)


async def test_a_command_tells_its_exit_and_output(spawner: Spawner) -> None:
    outcome = await spawner.run(["sh", "-c", "echo out; echo err >&2; exit 7"], timeout=60)
    assert (outcome.exit, outcome.output) == (7, "out\nerr\n")
    assert (await spawner.run(["sh", "-c", "kill -9 $$"], timeout=60)).exit == -9


async def test_a_flood_of_output_is_cut_in_the_middle(spawner: Spawner) -> None:
    flood = "import sys; sys.stdout.write('a' * 16384 + 'x' * 1_000_000 + 'z' * 49152)"
    output = (await spawner.run([sys.executable, "-c", flood], timeout=60)).output
    assert output == "a" * 16384 + "\n[… 1000000 bytes left out …]\n" + "z" * 49152


async def test_a_command_ends_when_it_ends_though_a_child_keeps_its_output_open(
    spawner: Spawner, log: Path
) -> None:
    command = ["sh", "-c", "echo started; sleep 1000 &"]
    outcome = await spawner.run(command, timeout=60, log=log, marker="left")
    assert outcome.output == "started\n"
    left = [one for one in live_processes() if has_marker(one.pid, "left")]
    await until(lambda: command_line(left[0].pid) == ["sleep", "1000"])


async def escaped(path: Path, spawner: Spawner, marker: str, timeout: float) -> None:
    code = ESCAPED.format(path=str(path))
    await spawner.run([sys.executable, "-c", code], timeout=timeout, marker=marker)


async def test_a_timeout_ends_even_what_left_its_session_twice(spawner: Spawner, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with pytest.raises(CommandTimedOut, match=r"longer than 0\.5 s"):
        await escaped(path, spawner, "effect-1", 0.5)
    left = read_stat(int(said(path)))
    assert left is None or not left.alive
    assert not [one for one in live_processes() if has_marker(one.pid, "effect-1")]


async def test_cancelling_ends_the_tree_before_it_returns(spawner: Spawner, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    task = asyncio.create_task(escaped(path, spawner, "effect-2", 100))
    await until(lambda: said(path))
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # a second one, while the tree is being ended, must not cut that short
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [one for one in live_processes() if has_marker(one.pid, "effect-2")]


async def test_a_fork_bomb_is_ended(spawner: Spawner) -> None:
    """New processes all the time, but never more than 128: those of other tests need pids, too."""
    bomb = (
        "import os, time\nfor _ in range(6): os.fork()\n"
        "while True: time.sleep(0.01); (os.fork() or os._exit(0)) and os.waitpid(-1, os.WNOHANG)"
    )
    with pytest.raises(CommandTimedOut):
        await spawner.run([sys.executable, "-c", bomb], timeout=0.3, marker="bomb")
    assert not [one for one in live_processes() if has_marker(one.pid, "bomb")]


POLITE = """
import os, signal, sys, time
def told(*_): os.write(1, b"term\\n"); time.sleep(0.1); sys.exit()
signal.signal(signal.SIGTERM, told)
os.write(1, b"ready\\n")  # not by print, in which the signal might come
while True: time.sleep(1000)
"""


async def test_a_stopped_process_is_ended_as_politely(spawner: Spawner, log: Path) -> None:
    found = await spawner.start([sys.executable, "-c", POLITE], output=log)
    await until(lambda: "ready" in said(log))
    os.kill(found.pid, signal.SIGSTOP)
    await spawner.end(found, soft=1000)
    assert said(log) == "ready\nterm\n"


async def test_a_polite_process_is_ended_with_one_sigterm(spawner: Spawner, log: Path) -> None:
    found = await spawner.start([sys.executable, "-c", POLITE], output=log)
    await until(lambda: "ready" in said(log))
    await spawner.end(found, soft=60)
    assert not is_alive(found)
    assert said(log) == "ready\nterm\n"


async def test_a_stubborn_process_is_killed_with_its_children(spawner: Spawner, log: Path) -> None:
    stubborn = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.01; done"
    found = await spawner.start(["sh", "-c", stubborn], output=log, env={"PULSE_EFFECT": "stubborn"})
    await until(lambda: "ready" in said(log))
    began = time.monotonic()
    await spawner.end(found, soft=0.2)
    assert time.monotonic() - began >= 0.2
    assert not [one for one in live_processes() if has_marker(one.pid, "stubborn")]


async def test_what_is_left_of_its_group_is_ended_too(spawner: Spawner, log: Path) -> None:
    leader = "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.01; done\" & trap 'exit 0' TERM; wait"
    found = await spawner.start(["sh", "-c", leader], output=log, env={"PULSE_EFFECT": "group"})
    await until(lambda: "ready" in said(log))
    await spawner.end(found, soft=1)
    assert not [one for one in live_processes() if has_marker(one.pid, "group")]


async def test_a_reused_pid_is_never_signalled(spawner: Spawner, log: Path) -> None:
    found = await spawner.start(["sleep", "1000"], output=log)
    await spawner.end(ProcessId(found.pid, found.started - 1), soft=0.1)
    assert is_alive(found)


async def test_pulse_does_not_end_itself(spawner: Spawner) -> None:
    own = read_stat(os.getpid())
    assert own is not None
    with pytest.raises(PulseError, match="upulse daemon stop"):
        await spawner.end(own.found, soft=0.1)


class CountingSpawner(Spawner):
    """Counts how often a child is looked at."""

    looks = 0

    def _reap(self, child: Any) -> None:
        self.looks += 1
        super()._reap(child)


async def test_a_stop_of_a_process_at_which_nobody_can_look_keeps_no_descriptor(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await spawner.start(["sleep", "1000"], output=tmp_path / "log")
    held = list[int]()

    def lacking(pid: int) -> ProcStat:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(spawner_module, "read_stat", lacking)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many"):
                await spawner.end(found, soft=1)
            held.append(len(os.listdir("/proc/self/fd")))
    assert held[1] == held[2]
    await spawner.end(found, soft=10)


async def test_another_thread_that_asks_how_a_child_ended_does_not_reap_it(
    spawner: Spawner, tmp_path: Path
) -> None:
    """Whoever waits for its end would be told by that thread, while the loop sleeps on."""
    ends = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.01; done; exit 3', str(tmp_path / "end")]
    found = await spawner.start(ends, output=tmp_path / "log")
    (tmp_path / "end").touch()
    while is_alive(found):  # and the loop is told nothing yet
        time.sleep(0.001)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(spawner.ended, found).result() is None
    assert (ended := spawner.ended(found)) is not None
    assert ended.code == 3


async def test_a_dead_process_that_its_tracer_holds_costs_no_cpu_and_is_reaped_when_that_lets_go(
    log: Path,
) -> None:
    spawner = CountingSpawner()
    found = await spawner.start(["sleep", "1000"], output=log)
    tracer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TRACER, str(found.pid),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert tracer.stdin
        assert tracer.stdout
        if (await asyncio.wait_for(tracer.stdout.readline(), 60)).strip() != b"0":
            pytest.skip("nobody may trace here")
        await until(lambda: not is_alive(found))
        before = spawner.looks
        await asyncio.sleep(0.25)
        assert spawner.looks - before < 10
        assert spawner.ended(found) is None
        tracer.stdin.close()
        await until(lambda: spawner.end_of(found) == "was killed by SIGKILL")
    finally:
        with suppress(ProcessLookupError):
            tracer.kill()
        await tracer.wait()
        spawner.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of others")
@pytest.mark.parametrize("mode", [None, 0o644])
async def test_an_interpreter_that_cannot_be_started_is_told_of_a_program_of_others_too(
    mode: int | None, spawner: Spawner, tmp_path: Path, log: Path
) -> None:
    interpreter, program = tmp_path / "interpreter", tmp_path / "program"
    program.write_text(f"#!{interpreter}\n")
    program.chmod(0o755)
    os.chown(program, 65534, 65534)
    if mode:
        interpreter.write_text("")
        interpreter.chmod(mode)
    with pytest.raises(NotStartable, match=r"the interpreter it names is not|may not be executed"):
        await spawner.start([str(program)], output=log)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of others")
@pytest.mark.parametrize(
    ("mode", "content", "words"),
    [
        (0o750, "#!/bin/sh\n", "it may not be executed; make it executable for the user that it runs as"),
        (0o755, "echo it\n", "it is no program; a script needs a first line such as #!/bin/sh"),
        (0o755, "", "it is no program; a script needs a first line such as #!/bin/sh"),
    ],
)
async def test_what_a_user_cannot_execute_is_told_of_a_program_of_others_too(
    mode: int, content: str, words: str, spawner: Spawner, tmp_path: Path, log: Path
) -> None:
    with program_of_others(mode, content) as program, pytest.raises(NotStartable, match=re.escape(words)):
        await spawner.start([program], output=log, user=OTHER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of others")
async def test_a_user_may_execute_a_program_of_others_by_the_group_that_it_is_given(
    spawner: Spawner, log: Path
) -> None:
    with program_of_others(0o750, "#!/bin/sh\necho it\n") as program:
        attributes = ProcessAttributes(gid=OWNER)
        await spawner.start([program], output=log, user=OTHER, attributes=attributes)
        await until(lambda: is_said(log, "it"))


OWNER, OTHER = 65533, ProcessUser("other", "/", 65534, 65534, (65534,))


@contextmanager
def program_of_others(mode: int, content: str) -> Iterator[str]:
    """A program of OWNER's in a folder that everybody may enter."""
    with TemporaryDirectory() as place:
        program = Path(place, "program")
        program.write_text(content)
        program.chmod(mode)
        os.chown(program, OWNER, OWNER)
        os.chmod(place, 0o755)
        yield str(program)


HOLDS_IT = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
os.setuid(65534)
fcntl.fcntl(3, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""
"""Keeps the kernel from opening the file of descriptor 3 for whoever else would, until its input ends or 45 s are over."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs of others")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("starts", [True, False])
async def test_a_program_that_its_owner_keeps_from_being_opened_holds_up_itself_alone(
    starts: bool, spawner: Spawner, tmp_path: Path, log: Path
) -> None:
    program = script(tmp_path / "program", '#!/bin/sh\necho "as $1"')
    os.chown(program, 65534, 65534)
    file = os.open(program, os.O_RDONLY)
    given = [(os.POSIX_SPAWN_DUP2, file, 3)]
    (theirs, ours), (said_by, words) = os.pipe(), os.pipe()
    given += [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, words, 1)]
    argv = [sys.executable, "-c", HOLDS_IT]
    holder = os.posix_spawn(sys.executable, argv, os.environ, file_actions=given)
    os.close(file)
    assert os.read(said_by, 10) == b"held\n"
    argv = [str(program), "it is"]
    began = asyncio.create_task(
        spawner.start(argv, output=log) if starts else spawner.run(argv, timeout=20, log=log)
    )
    await spawner.start(["true"], output=tmp_path / "other")
    os.close(ours)
    await began
    await until(lambda: is_said(log, "as it is"))
    os.waitpid(holder, 0)
    for descriptor in (theirs, said_by, words):
        os.close(descriptor)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts what runs as another user")
@pytest.mark.timeout(20)
async def test_a_program_that_its_user_stops_before_it_is_executed_holds_up_itself_alone(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an agent's run may, that stops all of its user without a pause."""
    become = os.setuid

    def become_and_be_stopped(uid: int) -> None:
        become(uid)
        os.kill(os.getpid(), signal.SIGSTOP)

    monkeypatch.setattr(os, "setuid", become_and_be_stopped)
    found = await spawner.start(["echo", "it"], output=log, user=OTHER, cwd="/")
    await until(lambda: (stat := read_stat(found.pid)) is not None and stat.state == "T")
    assert set(os.listdir(f"/proc/{found.pid}/fd")) == {"0", "1", "2"}
    os.kill(found.pid, signal.SIGCONT)
    await until(lambda: is_said(log, "it"))


async def test_of_a_crowd_that_is_ended_at_once_each_does_not_read_the_process_table_for_itself(
    spawner: Spawner, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = [await spawner.start(["sleep", "1000"], output=log) for _ in range(20)]
    reads = list[int]()

    def counted() -> list[ProcStat]:
        reads.append(threading.get_ident())
        return live_processes()

    monkeypatch.setattr(process_tree, "live_processes", counted)
    asked = [await spawner.ask_to_end(one, soft=60, alone=False, ask=signal.SIGTERM) for one in started]
    await asyncio.gather(*(kill_rest([one]) for one in asked if one))
    assert len(reads) < len(started)


BEGINS_SIBLINGS = """
import ctypes, signal
of_parent, number = 0x8000, {number}
siblings = [ctypes.CDLL(None).syscall(number, of_parent | signal.SIGCHLD, 0, 0, 0, 0) for _ in range(3)]
if 0 not in siblings:
    print(*siblings, flush=True)
"""
"""Begins processes as children of its parent, which end as it does."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts what runs as another user")
async def test_dead_children_that_a_program_of_another_user_has_left_to_this_process_are_reaped(
    spawner: Spawner, log: Path
) -> None:
    """Else they keep their numbers, of which a user and the machine have only so many, as long as the daemon lives."""
    text = BEGINS_SIBLINGS.format(number=syscall_numbers.number_of("clone"))
    awaited = os.posix_spawn("/bin/true", ["true"], {}, setsid=True)
    with python_for_all() as python:
        main = await spawner.start([python, "-I", "-c", text], output=log, user=OTHER, cwd="/")
        await until(lambda: not is_alive(main) and len(said(log).split()) == 3)
    siblings = [int(word) for word in said(log).split()]
    await until(lambda: all((seen := read_stat(one)) and not seen.alive for one in (*siblings, awaited)))
    spawner.unknown.reap()
    assert all(map(read_stat, siblings))  # whoever has begun them has time to reap them
    spawner.unknown.reap()
    assert not any(map(read_stat, siblings))
    assert os.waitpid(awaited, 0)[0] == awaited
