"""What a host begins lives in the host's control group and ends with it, however it hides."""

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.workers.control_group import ControlGroup, all_home_groups
from pulse_adapters.workers.host_groups import end_hosts_left_over, host_group
from pulse_adapters.workers.proc import is_alive, read_stat
from pulse_adapters.workers.run_as import RunAs
from pulse_core.ports.engine import CannotLoad
from pulse_core.ports.host import ProcessId
from tests.control_groups import skip_without_groups
from tests.engine_user import ROOT_ALONE, lend, open_folder, throwaway
from tests.integration.action_host.action_host_scene import (
    Scene,
    at_work,
    executor,
    is_running,
    until,
    written,
)
from tests.long_form import sampled

HIDES = {
    "in a session of its own": "os.setsid()",
    "as an orphan": "os.setsid()\n    if os.fork():\n        os._exit(0)",
    "without a mark": "os.setsid()\n    if os.fork():\n        os._exit(0)\n    env = {}",
    "with another one's mark": "os.setsid()\n    if os.fork():\n        os._exit(0)\n    env['PULSE_HANDS'] = '0' * 16",
}
BEGINS = """
if os.fork() == 0:
    env = dict(os.environ)
    {hides}
    os.execve('/bin/sh', ['sh', '-c', 'echo $$ >"$0.new" && mv "$0.new" "$0"; exec sleep 1000', params.path], env)
while not os.path.exists(params.path):
    await asyncio.sleep(0.01)
return Result({{}})
"""
BOMB = """
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        while True:
            if os.fork() == 0:
                time.sleep(0.05)
                os._exit(0)
            time.sleep(0.005)
open(params.path, 'w').write(str(os.getpid()))
return Result({})
"""
KILLS = """
def said(pid, file):
    return open(f"/proc/{pid}/{file}").read()
looked, tells = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                is_mine = f"Uid:\\t{os.getuid()}\\t" in said(pid, "status")
                if is_mine and said(pid, "cgroup") != said("self", "cgroup"):
                    os.kill(int(pid), 9)
            except OSError:
                pass
        os.write(tells, b"!")
os.read(looked, 1)
return Result({})
"""
POLICY = "Policy(Safety.AT_MOST_ONCE, timeout=20)"


def group_of(home: Path) -> ControlGroup:
    """The one group of this home."""
    (folder,) = all_home_groups(home)
    (group,) = folder.children()
    return group


async def begun(scene: Scene, path: Path) -> ProcessId:
    """What an executor has begun, and left to itself."""
    await scene.act(path=str(path))
    one = read_stat(int(path.read_text()))
    assert one
    assert one.session != scene.pid
    return one.found


@pytest.mark.parametrize("is_replaced", [True, False])
@pytest.mark.parametrize("how", sampled(HIDES, 2))
async def test_what_hides_ends_with_a_host_that_is_told_to_end(
    how: str, is_replaced: bool, tmp_path: Path
) -> None:
    skip_without_groups()
    revision = written(tmp_path / "engine", executor(BEGINS.format(hides=HIDES[how]), policy=POLICY))
    async with at_work(revision, group=partial(host_group, tmp_path)) as scene:
        hidden = await begun(scene, tmp_path / "pid")
        assert group_of(tmp_path).members() >= {hidden.pid, scene.pid}
        if is_replaced:  # as by a promote or a rollback
            await scene.hands.retire(30)
            assert not is_alive(hidden)
    assert not is_alive(hidden)
    assert not scene.faults
    end_hosts_left_over(tmp_path)
    assert all_home_groups(tmp_path) == []


async def test_what_hides_ends_with_a_host_that_ends_and_the_next_one_has_a_group_of_its_own(
    tmp_path: Path,
) -> None:
    skip_without_groups()
    source = executor(BEGINS.format(hides=HIDES["with another one's mark"]), policy=POLICY)
    async with at_work(written(tmp_path / "engine", source), group=partial(host_group, tmp_path)) as scene:
        hidden, first = await begun(scene, tmp_path / "pid"), group_of(tmp_path)
        os.kill(scene.pid, signal.SIGKILL)
        await until(lambda: not scene.supervisor.alive)
        await until(lambda: scene.supervisor.alive)
        assert not is_alive(hidden)
        assert group_of(tmp_path).name != first.name
        assert group_of(tmp_path).members() == {scene.pid}


async def test_a_fork_bomb_ends_with_its_host(tmp_path: Path) -> None:
    skip_without_groups()
    revision = written(tmp_path / "engine", executor(BOMB, policy=POLICY))
    async with at_work(revision, group=partial(host_group, tmp_path)) as scene:
        await scene.act(path=str(tmp_path / "pid"))
        await until(lambda: len(group_of(tmp_path).members()) > 10)
        forked = [one for pid in group_of(tmp_path).members() if (one := read_stat(pid))]
    assert not any(is_alive(one.found) for one in forked)
    assert not list(all_home_groups(tmp_path)[0].children())


@ROOT_ALONE
async def test_a_host_of_another_user_can_not_leave_its_group(tmp_path: Path) -> None:
    skip_without_groups()
    leaves = "open(params.path, 'w').write('0')\nreturn Result({})"
    with throwaway() as account, open_folder() as folder:
        revision = written(folder / "engine", executor(leaves, policy=POLICY))
        group_of_home = partial(host_group, tmp_path)
        async with at_work(revision, run_as=lambda: RunAs(account.ids), group=group_of_home) as scene:
            group = group_of(tmp_path)
            for path in (group.path, os.path.dirname(group.path)):
                with pytest.raises(Exception, match="Permission denied"):
                    await scene.act(path=f"{path}/cgroup.procs")
            assert group.members() == {scene.pid}


@ROOT_ALONE
async def test_a_host_that_ends_all_processes_of_its_user_can_not_keep_another_one_from_taking_over(
    tmp_path: Path, open_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_groups()
    lend(open_python, monkeypatch)
    with throwaway() as account, open_folder() as folder:
        how: dict[str, Any] = {
            "run_as": lambda: RunAs(account.ids),
            "group": partial(host_group, tmp_path),
        }
        slow = "time.sleep(1)\n"  # the other one gets to see it
        works = written(folder / "new", executor("return Result({})", policy=POLICY), before=slow)
        async with at_work(written(folder / "old", executor(KILLS, policy=POLICY)), **how) as old:
            await old.act()
            with pytest.raises(CannotLoad, match=r"ended by SIGKILL; .*upulse engine disable"):
                async with at_work(works, **how):
                    pass
            async with old.hands.frozen(), at_work(works, **how) as new:
                await old.hands.retire(0)
                await new.act()
        assert (old.faults, new.faults) == ([], [])


async def test_what_stands_still_for_a_while_is_not_late_by_that(tmp_path: Path) -> None:
    skip_without_groups()
    source = executor("return Result({})", policy="Policy(Safety.IDEMPOTENT, timeout=0.2)")
    async with at_work(written(tmp_path / "engine", source), group=partial(host_group, tmp_path)) as scene:
        async with scene.hands.frozen():
            late = asyncio.ensure_future(scene.act())
            await asyncio.sleep(1.5)
            assert not late.done()
        await late
        assert not scene.faults


DAEMON = """
import asyncio, sys
from functools import partial
from pathlib import Path
from pulse_adapters.workers.host_groups import host_group
from pulse_core.ports.engine import Revision
from tests.integration.action_host.action_host_scene import at_work

async def main():
    home = Path(sys.argv[1])
    async with at_work(Revision("0", str(home / "engine")), group=partial(host_group, home)) as scene:
        await scene.act(path=str(home / "pid"))
        print(scene.pid, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


async def test_what_hides_ends_when_the_next_daemon_starts(tmp_path: Path) -> None:
    skip_without_groups()
    written(tmp_path / "engine", executor(BEGINS.format(hides=HIDES["without a mark"]), policy=POLICY))
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DAEMON, str(tmp_path), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )  # fmt: skip
    assert daemon.stdout is not None
    host = int(await daemon.stdout.readline())
    hidden = read_stat(int((tmp_path / "pid").read_text()))
    assert hidden
    end_hosts_left_over(tmp_path)  # a daemon lives: nothing of it is left over
    assert is_alive(hidden.found)
    daemon.kill()
    await daemon.wait()
    await until(lambda: not is_running(host))
    assert is_alive(hidden.found)
    end_hosts_left_over(tmp_path)
    assert not is_alive(hidden.found)
    assert all_home_groups(tmp_path) == []
