"""Hands may act on every process but the one that they act for."""

import asyncio
import os
import platform
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.action_host import warden
from pulse_adapters.action_host.sparing import Spared, assembled
from pulse_adapters.child.bpf import ASK, supported
from pulse_adapters.child.numbers import AUDIT, NUMBERS
from pulse_core.ports import CannotLoad
from tests.integration.action_host.hands_scene import at_work, executor, is_running, until, watcher, written
from tests.processes import child_of_test

pytestmark = pytest.mark.skipif(not supported(), reason="no filter is written for this machine")

ACTS = {
    "a signal": "os.kill({pid}, 0)",
    "a signal to its group": "os.killpg({group}, 0)",
    "a signal to all": "os.kill(-1, 0)",
    "tkill": "call('tkill', {pid}, 0)",
    "tgkill": "call('tgkill', {pid}, {pid}, 0)",
    "a queued signal": "call('rt_sigqueueinfo', {pid}, 0, info)",
    "a queued signal to a thread": "call('rt_tgsigqueueinfo', {pid}, {pid}, 0, info)",
    "a signal through a pidfd": "signal.pidfd_send_signal(os.pidfd_open({pid}), 0)",
    "a signal through its folder": "call('pidfd_send_signal', os.open('/proc/{pid}', os.O_RDONLY), 0, None, 0)",
    "a signal that a file sends": "fcntl.fcntl(0, fcntl.F_SETOWN, {pid})",
    "a signal that a file sends, at length": "fcntl.fcntl(0, 15, struct.pack('ii', 1, {pid}))",
    "a signal that a socket sends": "fcntl.ioctl(socket.socket(), 0x8901, struct.pack('i', {pid}))",
    "attach": "call('ptrace', 16, {pid}, 0, 0); os.waitpid({pid}, 0x40000000); call('ptrace', 17, {pid}, 0, 0)",
    "seize": "call('ptrace', 0x4206, {pid}, 0, 0)",
    "read memory": "call('process_vm_readv', {pid}, None, 0, None, 0, 0)",
    "write memory": "call('process_vm_writev', {pid}, None, 0, None, 0, 0)",
    "take a descriptor": "call('pidfd_getfd', os.pidfd_open({pid}), 0, 0)",
    "push memory out": "call('process_madvise', os.pidfd_open({pid}), None, 0, 21, 0)",
    "move memory": "call('migrate_pages', {pid}, 0, None, None)",
    "look where memory is": "call('move_pages', {pid}, 0, None, None, None, 0)",
    "limits": "resource.prlimit({pid}, resource.RLIMIT_CORE)",
    "niceness": "os.setpriority(os.PRIO_PROCESS, {pid}, 0)",
    "niceness of its group": "os.setpriority(os.PRIO_PGRP, {group}, 0)",
    "niceness of its user": "os.setpriority(os.PRIO_USER, 0, 0)",
    "priority of its disk": "call('ioprio_set', 1, {pid}, 0)",
    "scheduling": "os.sched_setscheduler({pid}, os.SCHED_OTHER, os.sched_param(0))",
    "its parameters": "os.sched_setparam({pid}, os.sched_param(0))",
    "which processors": "os.sched_setaffinity({pid}, [0])",
    "scheduling at length": "call('sched_setattr', {pid}, None, 0)",
    "perf events": "call('perf_event_open', None, {pid}, -1, -1, 0)",
    "system calls of x32": "syscall(0x40000000 + 62, {pid}, 0)",
}
OF_THREADS = {
    name: act.replace("{pid}", "{thread}")
    for name, act in ACTS.items()
    if name
    in (
        "a signal", "tkill", "a queued signal", "attach", "seize", "read memory", "write memory", "limits", "niceness",
        "priority of its disk", "scheduling", "which processors", "perf events", "a signal that a file sends",
    )
}  # fmt: skip
BEFORE = """
import ctypes, fcntl, resource, signal, socket, struct
NUMBERS = {numbers!r}
LIBC = ctypes.CDLL(None, use_errno=True)
info = ctypes.create_string_buffer(struct.pack('iii', 0, 0, -1), 128)

def syscall(number, *given):
    if LIBC.syscall(number, *given) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def call(name, *given):
    syscall(NUMBERS[name], *given)

def tried(acts):
    said = {{}}
    for name, act in acts.items():
        try:
            exec(act, globals())
            said[name] = "done"
        except OSError as error:
            said[name] = error.strerror
    return said

def below(work):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, repr(work()).encode())
        os._exit(0)
    os.wait()
    os.close(write)
    return eval(open(read).read())
"""
NO, UNKNOWN = "Operation not permitted", "Function not implemented"


def before() -> str:
    here = 0 if platform.machine() == "x86_64" else 1
    return BEFORE.format(numbers={name: both[here] for name, both in NUMBERS.items()})


def aimed(acts: dict[str, str], pid: int, thread: int = 0) -> dict[str, str]:
    """The acts against a process."""
    if platform.machine() != "x86_64":
        acts = {name: act for name, act in acts.items() if "x32" not in name}
    return {name: act.format(pid=pid, group=os.getpgid(pid), thread=thread) for name, act in acts.items()}


async def said(tmp_path: Path, body: str) -> Any:
    async with at_work(written(tmp_path, watcher(body, timeout=5.0), before=before())) as scene:
        assert scene.hands.sandbox["seccomp"]
        return await scene.look()


@pytest.mark.parametrize(
    "work", ["tried({})", "below(lambda: tried({}))"], ids=["a watcher", "what came out of it"]
)
async def test_nothing_reaches_who_they_act_for(work: str, tmp_path: Path) -> None:
    found = await said(tmp_path, f"return Reading({work.format(aimed(ACTS, os.getpid()))})")
    assert len(found) >= len(ACTS) - 1
    assert {name: words for name, words in found.items() if words not in (NO, UNKNOWN)} == {}
    assert {name for name, words in found.items() if words == UNKNOWN} == {
        "a signal through a pidfd",
        "a signal through its folder",
    }


@pytest.mark.skipif(not warden.possible(), reason="this kernel lets nobody judge")
async def test_nothing_reaches_its_threads_either_nor_those_that_came_later(tmp_path: Path) -> None:
    note, over = tmp_path / "thread", threading.Event()
    body = f"""
    acts = eval(open({str(note)!r}).read())
    return Reading({{**tried(acts), "kept": await asyncio.to_thread(os.kill, os.getpid(), 0) is None}})
    """
    async with at_work(written(tmp_path, watcher(body, timeout=5.0), before=before())) as scene:
        assert scene.hands.sandbox["warden"]
        thread = threading.Thread(target=over.wait)
        thread.start()
        try:
            assert thread.native_id
            note.write_text(repr(aimed(OF_THREADS, os.getpid(), thread.native_id)))
            found = await scene.look()
        finally:
            over.set()
            thread.join(30)
    assert len(found) == len(OF_THREADS) + 1
    assert {name: words for name, words in found.items() if words != NO} == {"kept": True}


ALLOWED = {
    "signal another": "os.kill({pid}, 0)",
    "limit another": "resource.prlimit({pid}, resource.RLIMIT_CORE, (0, 0))",
    "be nice to another": "os.setpriority(os.PRIO_PROCESS, {pid}, 5)",
    "place another": "os.sched_setaffinity({pid}, [0])",
    "seize another": "call('ptrace', 0x4206, {pid}, 0, 0)",
    "own a file's signals": "fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())",
    "signal itself": "signal.raise_signal(signal.SIGCONT)",
    "signal its own group": "os.kill(0, 0)",
    "limit itself": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "use the network": "socket.create_server(('127.0.0.1', 0)).close()",
    "run programs": "assert subprocess.run(['sh', '-c', 'kill -0 {pid} && kill -KILL {pid}']).returncode == 0",
    "a thread's affinity": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "wait by pidfd": "os.pidfd_open(os.getpid())",
}


async def test_on_all_others_they_may_act(tmp_path: Path) -> None:
    with child_of_test(subprocess.Popen(["sleep", "60"], start_new_session=True)) as other:
        try:
            found = await said(tmp_path, f"return Reading(tried({aimed(ALLOWED, other.pid)}))")
            assert {name: words for name, words in found.items() if words != "done"} == {}
            assert other.wait(5) == -9
        finally:
            other.kill()


DAEMON = """
import asyncio, sys
from pulse_core.ports import CannotLoad
from tests.integration.action_host.hands_scene import at_work
from pulse_core.ports import Revision

async def main():
    async with at_work(Revision("0", sys.argv[1])) as scene:
        try:
            print(await scene.look(), flush=True)
        except Exception as error:
            print(error, flush=True)
        print(await scene.look("fine"), flush=True)

asyncio.run(main())
"""
STOPS = {
    "stop it": "os.kill(os.getppid(), 19)  # here",
    "stop each of its threads": "[os.kill(int(n), 19) for n in os.listdir(f'/proc/{os.getppid()}/task')]  # here",
    "seize and stop it": "call('ptrace', 0x4206, os.getppid(), 0, 0)  # here\ncall('ptrace', 0x4207, os.getppid(), 0, 0)",
}


@pytest.mark.parametrize("name", STOPS)
async def test_a_daemon_that_its_hands_attack_goes_on_and_says_where(name: str, tmp_path: Path) -> None:
    fine = watcher("return Reading({'well': True})", "fine", timeout=5.0)
    written(tmp_path, watcher(STOPS[name], timeout=5.0), fine, before=before())
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DAEMON, str(tmp_path), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )  # fmt: skip
    try:
        async with asyncio.timeout(20):
            out, _ = await daemon.communicate()
    finally:
        if daemon.returncode is None:
            daemon.kill()
            await daemon.wait()
    first, second = out.decode().splitlines()
    assert "Operation not permitted (own.py:" in first
    assert second == "{'well': True}"


async def test_a_module_that_attacks_when_it_is_loaded_is_refused_with_its_line(tmp_path: Path) -> None:
    revision = written(tmp_path, watcher("return Reading({})"), before="os.kill(os.getppid(), 0)  # here\n")
    with pytest.raises(CannotLoad, match=r"PermissionError: .*Operation not permitted \(own.py:4\)"):
        async with at_work(revision):
            pass


async def test_an_executor_cannot_attack_either_nor_what_it_began(tmp_path: Path) -> None:
    body = "code = subprocess.run(['sh', '-c', f'kill -0 {os.getppid()}']).returncode\nreturn Result({'code': code})"
    async with at_work(
        written(tmp_path, executor(body, policy="Policy(Safety.IDEMPOTENT, timeout=5.0)"))
    ) as scene:
        assert (await scene.act()).data == {"code": 1}


def wardens() -> set[int]:
    """Processes that judge."""
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            if b"hands_host/warden.py" in words:
                found.add(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not warden.possible(), reason="this kernel lets nobody judge")
async def test_a_warden_stays_as_long_as_what_it_judges_and_no_longer(tmp_path: Path) -> None:
    before_all = wardens()
    body = "p = subprocess.Popen(['sleep', '60'], start_new_session=True)\nreturn Reading({'pid': p.pid})"
    async with at_work(written(tmp_path, watcher(body, timeout=5.0))) as scene:
        service = (await scene.look())["pid"]
        (engine_controller,) = wardens() - before_all
    assert is_running(service)
    assert is_running(engine_controller)
    os.kill(service, 9)
    await until(lambda: not is_running(engine_controller))


async def test_without_a_warden_the_process_itself_is_spared_all_the_same(tmp_path: Path) -> None:
    body = """
    pid = os.fork()
    if pid == 0:
        from pulse_adapters.action_host import sparing
        os._exit(sparing.spare(os.getppid(), os.getppid()) != {"seccomp": True, "warden": False})
    return Reading({"status": os.waitpid(pid, 0)[1]})
    """  # the host above it has a listener already, and there is one at most
    async with at_work(written(tmp_path, watcher(body, timeout=5.0))) as scene:
        assert await scene.look() == {"status": 0}


@pytest.mark.parametrize("machine", AUDIT)
def test_the_filter_is_written_for_each_machine(machine: str) -> None:
    program = assembled(machine, Spared((7,), (7,)), ASK)
    assert 0 < len(program) < 4096
    assert all(0 <= yes < 256 and 0 <= no < 256 for _, yes, no, _ in program)
