"""A worker's life: what it is given, what it may say, how long it may take, and that it ends with all it began."""

import asyncio
import errno
import os
import resource
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pulse_adapters.workers.conversation import WAITING, ask, conversation
from pulse_adapters.workers.descriptors import REPLIES
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.framing import LARGEST_REPLY, Message, WorkerFault
from pulse_adapters.workers.spawn import spawn
from pulse_adapters.workers.worker import Program, Worker
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.errors import PulseError
from tests.dead_mount import dead
from tests.long_form import sampled
from tests.processes import TRACER, child_of_test

HEAD = """
import json, os, signal, subprocess, sys, time
from pulse_adapters.workers import child_side
from pulse_adapters.workers.framing import frame
from pulse_core.model.errors import PulseError
child_side.begin()
"""
ECHO = "for request in child_side.requests(): child_side.send(request)"


def program(code: str, **more: Any) -> Program:
    return Program((sys.executable, "-c", HEAD + code), inherited_environment(), **more)


async def answer(code: str, kind: Any = Any, seconds: float = 20.0, **more: Any) -> Any:
    """What a worker answers that does one thing."""
    work = f"def work(request):\n    {code}\nchild_side.answer_once(work)"
    return await ask(program(work), {"n": 1}, kind, seconds=seconds, **more)


@pytest.fixture
def before() -> set[int]:
    """The children that this process has already, from other tests."""
    return {child.pid for child in psutil.Process().children()}


def others(before: set[int]) -> set[int]:
    """The children that it has besides."""
    return {child.pid for child in psutil.Process().children()} - before


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


# What it is given


async def test_it_answers_in_turns_and_ends_when_the_daemon_hangs_up() -> None:
    async with conversation(program(ECHO), dict) as worker:
        for number in range(3):
            worker.tell({"n": number})
            assert await worker.next() == {"n": number}
        worker.worker.hang_up()
        assert await worker.next() is None
        assert await worker.end() == "ended with status 0"
        pid = worker.worker.pid
    assert not psutil.pid_exists(pid)


async def test_what_is_meant_for_the_daemon_alone_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (
        *("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"),
        *("INVOCATION_ID", "JOURNAL_STREAM", "MAINPID", "PULSE_EFFECT", "PULSE_PROCESS", "PULSE_HANDS_CALL"),
    )
    for name in (*ours, "PULSE_NOTIFY_URL", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.setenv(name, "1")
    names = await answer("return sorted(os.environ)", tuple[str, ...])
    assert not {*ours} & {*names}
    assert {"PULSE_NOTIFY_URL", "OTEL_EXPORTER_OTLP_HEADERS"} <= {*names}


async def test_it_has_no_descriptor_of_ours_and_hands_none_of_its_own_on() -> None:
    inherited = os.dup(0)
    os.set_inheritable(inherited, True)
    listed = "sorted(map(int, os.listdir('/proc/self/fd')))"
    begets = f"subprocess.run([sys.executable, '-c', \"import os; print(*{listed})\"], capture_output=True, close_fds=False)"
    try:
        own, childs = await answer(
            f"return [{listed}, {begets}.stdout.decode()]", tuple[tuple[int, ...], str]
        )
    finally:
        os.close(inherited)
    assert own == (0, 1, 2, 3, 4, 6)  # the folder that is listed is open as 4, or as 3
    assert childs.split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("cwd", [None, "/"])
def test_ignored_and_blocked_signals_are_its_default_again(cwd: str | None) -> None:
    """As under `nohup … &`, which has SIGINT ignored in all that comes out of it."""
    read, write = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR2,))
    before = [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)]
    try:
        argv = ("/bin/sh", "-c", "exec grep -E 'SigBlk|SigIgn' /proc/self/status")
        pid = spawn(argv[0], argv, {"PATH": os.environ["PATH"]}, {1: write}, cwd=cwd)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR2,))
        for number, handler in zip((signal.SIGINT, signal.SIGHUP), before, strict=True):
            signal.signal(number, handler)
        os.close(write)
    with open(read) as told:
        masks = [int(line.split()[1], 16) for line in told]
    os.waitpid(pid, 0)
    internal = 0b11 << 31  # of the C library, which sees to them itself
    assert [mask & ~internal for mask in masks] == [0, 0]


async def test_a_worker_of_a_daemon_that_ignores_sigint_can_be_interrupted() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        async with conversation(program("child_side.send({}); time.sleep(9876)"), dict) as worker:
            assert await worker.next() == {}
            os.kill(worker.worker.pid, signal.SIGINT)
            assert await worker.next() is None
            assert (await worker.end()).startswith("was ended by SIGINT")
    finally:
        signal.signal(signal.SIGINT, before)


async def test_what_cannot_be_started_is_a_fault_of_the_worker() -> None:
    with pytest.raises(WorkerFault, match="could not be started: No such file"):
        await ask(Program(("/no/such/program",), {}), {}, dict, seconds=1)


# What it may say


NONSENSE = {
    "too long": (f"os.write(3, ({LARGEST_REPLY} + 1).to_bytes(4, 'big'))", "a message of 1,048,577 bytes"),
    "no JSON": ("os.write(3, frame(b'nonsense'))", "what is no JSON"),
    "no object": ("os.write(3, frame(b'[]'))", "JSON that is no object"),
    "too deep": ("os.write(3, frame(b'{\"a\":' * 90 + b'1' + b'}' * 90))", "more than 64 levels"),
    "deeper than Python": ("os.write(3, frame(b'[' * 100_000))", "what is no JSON"),
    "an enormous number": ("os.write(3, frame(b'{\"a\":%s}' % (b'9' * 5000)))", "what is no JSON"),
    "no number": ("os.write(3, frame(b'{\"answer\":1e999}'))", "is no number"),
    "half a character": ("os.write(3, frame(b'{\"answer\":\"\\\\ud800\"}'))", "surrogates not allowed"),
    "an unknown name": ("child_side.send({'answer': 1, 'survival': True})", "survival: Extra inputs are not permitted"),
    "a text for an error": ("child_side.send({'error': 5})", "error: Input should be a valid string"),
}  # fmt: skip


@pytest.mark.parametrize("what", sampled(NONSENSE, 3))
async def test_nonsense_is_that_workers_fault_and_ends_it(what: str, before: set[int]) -> None:
    code, words = NONSENSE[what]
    with pytest.raises(WorkerFault, match=f"^said .*{words}"):
        await ask(program(f"{code}\ntime.sleep(9876)"), {}, dict, seconds=20)
    assert not others(before)


async def test_what_the_system_did_not_let_the_daemon_take_up_is_said_to_be_that() -> None:
    def heard(message: Message) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    worker = Worker(program("child_side.send({})\ntime.sleep(9876)"), heard, lambda: None)
    await worker.ended(20)
    worker.dismiss()
    assert worker.fault == "what the system did not let the daemon take up (Too many open files)"


async def test_an_answer_of_another_type_is_a_fault() -> None:
    with pytest.raises(WorkerFault, match="value: Input should be a valid integer"):
        await answer("return 'x'", int)


async def test_words_of_an_error_come_as_the_error_that_they_are() -> None:
    class Missing(PulseError):
        pass

    with pytest.raises(PulseError, match=r"^no room$"):
        await answer("raise PulseError('no room')")
    with pytest.raises(Missing, match=r"^no room$"):
        await answer("raise PulseError('no room')", errors={"PulseError": Missing})


async def test_what_it_prints_is_no_message_and_only_the_end_of_it_is_kept() -> None:
    said = """
for n in range(10_000):
    try: os.write(1, b'x' * 99)
    except BlockingIOError: pass
os._exit(3)
"""
    with pytest.raises(WorkerFault, match=r"^ended with status 3: .*") as caught:
        await ask(program(said), {}, dict, seconds=20)
    assert len(str(caught.value)) < 400


async def test_one_that_rages_waits_and_fills_no_memory() -> None:
    async with conversation(program("while True: child_side.send({'x': 'y' * 1000})"), dict) as worker:
        await until(lambda: len(worker._waiting) >= WAITING)
        await asyncio.sleep(0.2)
        assert len(worker._waiting) < 1_000
        for _ in range(3_000):
            assert await worker.next() == {"x": "y" * 1000}


@pytest.mark.parametrize("then", ["time.sleep(9876)", "os._exit(0)"])
async def test_the_loop_turns_while_one_says_much_and_nothing_is_lost_when_it_ends(then: str) -> None:
    turns, heard = 0, Counter[int]()

    async def turn() -> None:
        nonlocal turns
        while heard.total() < 10_000:
            turns += 1
            await asyncio.sleep(0)

    said = f"os.write({REPLIES}, frame(b'{{}}') * 10_000); {then}"
    worker = Worker(program(said), lambda _: heard.update([turns]), lambda: None)
    async with asyncio.timeout(60):
        await turn()
    worker.end_now()
    assert then == "os._exit(0)" or max(heard.values()) < 2_000


async def test_one_that_reads_nothing_is_not_waited_for() -> None:
    async with conversation(program("child_side.send({}); time.sleep(9876)"), dict) as worker:
        assert await worker.next() == {}
        for _ in range(100):
            worker.tell({"x": "y" * 100_000})
        pid = worker.worker.pid
    assert not lives(pid)


# How long it may take, and its end


async def test_one_that_hangs_is_ended_in_its_time(before: set[int]) -> None:
    with pytest.raises(WorkerFault, match=r"^did not end within 0.2 s$"):
        await answer("time.sleep(9876)", seconds=0.2)
    assert not others(before)


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("os._exit(3)", "ended with status 3"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("sys.stderr.write('oh\\n'); sys.exit(2)", "ended with status 2: oh"),
        ("os.closerange(0, 99); time.sleep(9876)", "was ended by SIGKILL"),
    ],
)
async def test_how_one_ended_is_told(code: str, end: str) -> None:
    with pytest.raises(WorkerFault) as caught:
        await ask(program(code), {}, dict, seconds=20)
    assert str(caught.value) == end


BEGETS = "child_side.send({'pid': subprocess.Popen(['sleep', '9876']).pid}); time.sleep(9876)"


async def test_it_is_killed_with_all_that_it_started() -> None:
    async with conversation(program(BEGETS), dict) as worker:
        grandchild = (await worker.next() or {})["pid"]
        assert lives(grandchild)
    await until(lambda: not lives(grandchild))


async def test_who_calls_it_off_ends_it(before: set[int]) -> None:
    asking = asyncio.create_task(answer("time.sleep(9876)"))
    await until(lambda: bool(others(before)))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not others(before)


async def test_who_is_called_off_while_it_waits_for_its_end_ends_it_and_leaves_nothing_open() -> None:
    await answer("return 1")
    before = len(os.listdir("/proc/self/fd"))
    one = await conversation(
        program("child_side.send({})\ntime.sleep(9876)"), dict, farewell=600.0
    ).__aenter__()
    await one.next()
    closing = asyncio.create_task(one.close(600.0, 0.0))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await one.worker.ended(20.0)
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_one_that_is_ended_gently_may_clear_away(tmp_path: Path) -> None:
    code = f"""
signal.signal(15, lambda *_: (open({str(tmp_path / "clean")!r}, 'w'), os._exit(0)))
child_side.send({{}})
time.sleep(9876)
"""
    async with conversation(program(code), dict, gentle=20.0) as worker:
        await worker.next()
    assert (tmp_path / "clean").exists()


async def test_one_that_will_not_end_gently_is_killed() -> None:
    code = "signal.signal(15, signal.SIG_IGN)\nchild_side.send({})\ntime.sleep(9876)"
    async with conversation(program(code), dict, gentle=0.1) as worker:
        await worker.next()
        pid = worker.worker.pid
    assert not lives(pid)


def test_it_ends_by_itself_when_its_daemon_is_killed() -> None:
    daemon = """
import asyncio, os
from tests.integration.workers.test_workers_life import ECHO, conversation, program
async def main():
    async with conversation(program(ECHO), dict) as worker:
        print(worker.worker.pid, flush=True)
        await asyncio.sleep(9876)
asyncio.run(main())
"""
    with child_of_test(
        subprocess.Popen((sys.executable, "-c", daemon), stdout=subprocess.PIPE, text=True)
    ) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.kill()
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=20)
    assert not lives(pid)


async def test_at_the_end_of_the_daemon_it_is_dead_before_the_call_returns() -> None:
    heard: list[Message] = []
    worker = Worker(program("child_side.send({}); time.sleep(9876)"), heard.append, lambda: None)
    await until(lambda: bool(heard))
    worker.end_now()
    assert not psutil.pid_exists(worker.pid)


async def test_one_that_could_not_be_killed_and_was_given_up_costs_nobody_else_its_life(
    tmp_path: Path,
) -> None:
    place, asked = tmp_path / "place", tmp_path / "asked"
    place.mkdir()
    with dead(place, reads=True, reader=("dd", "bs=128K", f"of={asked}", "status=none")) as fail:
        worker = Worker(program(f"open({str(place / 'one')!r})"), lambda _: None, lambda: None)
        async with asyncio.timeout(60):
            while not asked.exists() or not asked.stat().st_size:
                await asyncio.sleep(0.01)
        worker.kill()
        assert not await worker.ended(0.1)
        worker.close()
        with child_of_test(subprocess.Popen(["cat"], stdin=subprocess.PIPE)) as other:
            handles = [os.pidfd_open(other.pid)]
            while handles[-1] < worker._handle:
                handles.append(os.pidfd_open(other.pid))
            assert worker._handle in handles
            worker.kill()
            worker.terminate()
            assert not select.select(handles, (), (), 0.2)[0]
        for one in handles:
            os.close(one)
        fail()
        os.waitpid(worker.pid, 0)


async def test_nothing_is_left_open() -> None:
    await answer("return 1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await answer("return 1")
        with pytest.raises(WorkerFault):
            await answer("os._exit(1)")
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("left", range(6))
async def test_one_for_which_too_few_descriptors_are_left_leaves_none_open(left: int) -> None:
    await answer("return 1")
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(32)]
    before = len(os.listdir("/proc/self/fd"))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, usual[1]))
        for _ in range(left):
            os.close(taken.pop())
        with pytest.raises(OSError, match="Too many open files"):
            Worker(program(ECHO), lambda _: None, lambda: None)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert len(os.listdir("/proc/self/fd")) == before - left
    for one in taken:
        os.close(one)


# Starting it again


async def test_one_that_ends_again_and_again_is_started_ever_later() -> None:
    """In virtual time: the pauses are added up, and nobody waits for them."""
    restarts, now = Restarts(Backoff(1.0, 10.0), healthy=60.0), 0.0
    starts = []
    for _ in range(5):
        restarts.started(now)
        starts.append(now)
        with pytest.raises(WorkerFault):
            await answer("os._exit(1)")
        restarts.ended(now)
        now = restarts.due
    assert starts == [0, 1, 3, 7, 15]


# What it costs


def test_a_workers_side_imports_little() -> None:
    code = "import sys\nfrom pulse_adapters.workers import child_side\nprint(*sys.modules)"
    done = subprocess.run((sys.executable, "-S", "-c", code), capture_output=True, text=True, check=True, timeout=60,
                          env={"PYTHONPATH": str(Path(__file__).parents[3])})  # fmt: skip
    heavy = {
        "pydantic",
        "pydantic_core",
        "asyncio",
        "subprocess",
        "dataclasses",
        "inspect",
        "threading",
        "logging",
    }
    assert not heavy & {*done.stdout.split()}


async def test_a_dead_worker_that_its_tracer_holds_costs_no_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, died = list[int](), Worker._died

    def counted(worker: Worker) -> None:
        looks.append(worker.pid)
        died(worker)

    monkeypatch.setattr(Worker, "_died", counted)
    async with conversation(program(ECHO), dict) as worker:
        pid = worker.worker.pid
        argv = [sys.executable, "-c", TRACER, str(pid)]
        with child_of_test(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as tracer:
            assert tracer.stdin
            assert tracer.stdout
            if (await asyncio.to_thread(tracer.stdout.readline)).strip() != b"0":
                pytest.skip("nobody may trace here")
            await until(lambda: not lives(pid))
            await asyncio.sleep(0.25)
            assert len(looks) < 10
            tracer.stdin.close()
        assert await worker.end() == "was ended by SIGKILL"
