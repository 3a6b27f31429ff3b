"""No watcher and no executor takes the processor from others by its priority, nor do the programs that they start."""

import os
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.sandbox import seccomp
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.syscall_numbers import NUMBERS
from tests.engine_user import ROOT_ALONE, lend, open_folder, throwaway
from tests.integration.action_host.action_host_scene import at_work, watcher, written

BEFORE = f"""
import ctypes, resource
LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {NUMBERS!r}
PARENT = os.getppid()

def call(name, *given):
    number = NUMBERS[name][0 if os.uname().machine == "x86_64" else 1]
    if LIBC.syscall(ctypes.c_long(number), *given) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def attributes(policy, nice=0, priority=0, runtime=0):
    sizes = (ctypes.c_uint64 * 6)(48 | policy << 32, 0, nice & 0xFFFFFFFF | priority << 32, runtime, 10**9, 10**9)
    return ctypes.byref(sizes)

def tried(attempt):
    try:
        exec(attempt, globals())
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return type(error).__name__
    return "done"

"""
RISES = {
    "FIFO": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "FIFO by another call": "call('sched_setattr', 0, attributes(1, priority=1), 0)",
    "round robin": "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))",
    "a deadline": "call('sched_setattr', 0, attributes(6, runtime=10**8), 0)",
    "a nice value below its own": "os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1)",
    "a nice value by another call": "call('sched_setattr', 0, attributes(0, nice=-5), 0)",
    "a limit that allows real time": "resource.setrlimit(resource.RLIMIT_RTPRIO, (50, 50))",
    "a limit that allows nice values": "resource.setrlimit(resource.RLIMIT_NICE, (40, 40))",
    "real-time access to the disk": "call('ioprio_set', 1, 0, 1 << 13)",
    "FIFO in a program": "subprocess.run(['chrt', '-f', '1', 'true'], check=True)",
}  # fmt: skip
OTHERS = {
    "the daemon's nice value": "os.setpriority(os.PRIO_PROCESS, PARENT, 19)",
    "the nice value of all its user runs": "os.setpriority(os.PRIO_USER, 0, 0)",
    "the daemon's scheduler": "os.sched_setscheduler(PARENT, os.SCHED_IDLE, os.sched_param(0))",
    "the daemon's scheduling parameters": "os.sched_setparam(PARENT, os.sched_param(0))",
    "the daemon's scheduling attributes": "call('sched_setattr', PARENT, attributes(5), 0)",
    "the daemon's processors": "os.sched_setaffinity(PARENT, os.sched_getaffinity(PARENT))",
    "the daemon's access to the disk": "call('ioprio_set', 1, PARENT, 3 << 13)",
}
SIBLINGS = {
    "a child of the daemon": "call('clone', 0x8000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "one by another call": "call('clone3', (ctypes.c_uint64 * 11)(0x8000, *[0] * 3, 17), 88) or os._exit(0)",
}
LOWERS = """
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
call('ioprio_set', 1, 0, 3 << 13)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
subprocess.run(['nice', '-n', '5', 'true'], check=True)
"""


async def attempted(root: Path, attempts: dict[str, str], **how: Any) -> dict[str, str]:
    """What came of each attempt of a watcher."""
    body = f"return Reading({{name: tried(attempt) for name, attempt in {attempts!r}.items()}})"
    before = BEFORE.replace("PARENT = os.getppid()", f"PARENT = {os.getpid()}")
    async with at_work(written(root, watcher(body), before=before), **how) as scene:
        found: dict[str, str] = await scene.look()
        return found


def assert_refused(found: dict[str, str]) -> None:
    """None of them was done."""
    assert not [name for name, outcome in found.items() if outcome == "done"]


async def test_a_host_of_the_daemons_user_rises_above_nobody(tmp_path: Path) -> None:
    assert_refused(await attempted(tmp_path, RISES))


@ROOT_ALONE
@pytest.mark.skipif(not seccomp.supported(), reason="there are no filters for this machine")
async def test_a_host_of_root_changes_no_priority_of_others(tmp_path: Path) -> None:
    assert_refused(await attempted(tmp_path, OTHERS))


@ROOT_ALONE
@pytest.mark.skipif(not seccomp.supported(), reason="there are no filters for this machine")
async def test_nothing_that_a_host_of_root_begins_is_a_child_of_the_daemon(tmp_path: Path) -> None:
    assert_refused(await attempted(tmp_path, SIBLINGS))


async def test_a_host_may_lower_its_own_priority(tmp_path: Path) -> None:
    assert await attempted(tmp_path, {"lower": LOWERS}) == {"lower": "done"}


@ROOT_ALONE
async def test_a_host_with_a_user_of_its_own_rises_above_nobody(
    open_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(open_python, monkeypatch)
    with throwaway() as account, open_folder() as folder:
        found = await attempted(
            folder / "engine", {**RISES, **OTHERS, **SIBLINGS}, run_as=lambda: RunAs(account.ids)
        )
    del found["the nice value of all its user runs"]  # which is none but itself
    assert_refused(found)
