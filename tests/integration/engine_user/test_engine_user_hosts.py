"""Hosts with a user of their own, in one process with the test: no way back, and nothing left behind."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pulse_adapters.engine_user.account import Account
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.sandbox import scratch_folder
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers import proc, process_tree
from pulse_adapters.workers.run_as import RunAs
from pulse_core.ports.engine import CannotLoad
from tests.engine_user import ROOT_ALONE, lend, open_folder, throwaway, uid_of
from tests.integration.action_host import action_host_scene
from tests.integration.action_host.action_host_scene import executor, until, watcher
from tests.integration.rule_host import rule_host_engines
from tests.integration.rule_host.rule_host_engines import folded, host_supervisor, rule

pytestmark = ROOT_ALONE
SLEEP = "9473"
DIGS = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.mkdir("d")
    os.chdir("d")
os.symlink(sys.argv[2], "link")
"""


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with throwaway() as one:
        yield one


@pytest.fixture(autouse=True)
def python_that_the_user_can_read(open_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lend(open_python, monkeypatch)


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as one:
        yield one


def sleepers(account: Account) -> list[int]:
    """What the engine's code has begun and nobody ended."""
    found = []
    for pid in (int(one.name) for one in Path("/proc").glob("[0-9]*")):
        with suppress(OSError):
            if uid_of(pid) == account.uid and SLEEP.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@asynccontextmanager
async def at_work(account: Account, root: Path, *sources: str) -> AsyncIterator[action_host_scene.Scene]:
    async with action_host_scene.at_work(
        action_host_scene.written(root, *sources), run_as=lambda: RunAs(account.ids)
    ) as scene:
        yield scene


async def test_there_is_no_way_back_for_a_rule(account: Account, folder: Path) -> None:
    tries = rule(
        """
        said = []
        for tried in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), os.fork):
            try:
                tried()
                said.append("done")
            except OSError as error:
                said.append(error.strerror)
        said.append(str(os.getresuid() + os.getresgid()))
        verdict = await inner(prev, curr)
        return verdict.noting(*said)
        """,
        before="import os",
    )
    revision = rule_host_engines.written(folder / "engine", tries)
    async with host_supervisor(revision, hosts=ChildHosts(run_as=lambda: RunAs(account.ids))) as host:
        assert host.loaded.sandbox["user"] is True
        fold_result = await folded(host, 2)
    assert [layer.notes for layer in fold_result.layers] == [
        (*["Operation not permitted"] * 4, str((account.uid,) * 3 + (account.gid,) * 3))
    ]


async def test_its_scratch_folder_is_a_file_system_of_its_own_that_is_full_one_day(
    account: Account, folder: Path
) -> None:
    fills = rule(
        """
        said = []
        try:
            for number in range(1_000):
                open(os.path.join(os.environ["TMPDIR"], str(number)), "w").close()
        except OSError as error:
            said.append(error.strerror)
        said.append(str(len(os.listdir(os.environ["TMPDIR"]))))
        return (await inner(prev, curr)).noting(*said)
        """,
        before="import os",
    )
    revision, scratch = rule_host_engines.written(folder / "engine", fills), folder / "scratch"
    scratch.mkdir()
    hosts = ChildHosts(scratch=str(scratch), run_as=lambda: RunAs(account.ids))
    async with host_supervisor(revision, hosts=hosts) as host:
        assert host.loaded.sandbox["scratch"] is True
        fold_result = await folded(host, 2)
        assert [layer.notes for layer in fold_result.layers] == [("No space left on device", "200")]
        assert host.alive
        assert not fold_result.faults
        (own,) = scratch.iterdir()
        assert own.stat().st_uid == 0  # which nobody but the host itself sees full
        assert not list(own.iterdir())
    assert not list(scratch.iterdir())


def test_where_nothing_can_be_mounted_the_folder_is_the_users_and_that_is_said(
    account: Account, folder: Path
) -> None:
    (folder / "scratch").mkdir()
    code = f"""
from pulse_adapters.sandbox import confinement
def refused(*_):
    raise OSError("no mounts here")
confinement._mount_scratch = refused
print(confinement.confine_process(["/"], {str(folder / "scratch")!r}, 2**29, {account.ids!r})["scratch"])
open({str(folder / "scratch" / "x")!r}, "w").close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "False\n"
    assert (folder / "scratch" / "x").stat().st_uid == account.uid


def test_roots_scratch_lies_in_a_folder_of_roots(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / "of-root"
    monkeypatch.setattr(scratch_folder, "OF_ROOT", str(place))
    with Scratch(None) as scratch:
        assert Path(scratch.path).parent == place
        assert (place.stat().st_mode & 0o777, place.stat().st_uid) == (0o711, 0)
    for mode, owner in ((0o777, 0), (0o711, 54321)):
        os.chmod(place, mode)
        os.chown(place, owner, owner)
        with pytest.raises(OSError, match="is not root's own folder"):
            Scratch(None)
        os.chown(place, 0, 0)
        os.chmod(place, 0o711)
    place.rmdir()
    place.symlink_to(folder)
    with pytest.raises(OSError, match="is not root's own folder"):
        Scratch(None)


async def test_the_users_limit_of_processes_holds_a_rule_even_without_seccomp(
    account: Account, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
import os
from pulse_adapters.rule_host import child
from pulse_adapters.sandbox.confinement import confine_process, landlock, seccomp
landlock.abi = lambda: None
seccomp.supported = lambda: False
print(confine_process(["/"], "/tmp", 2**29, {account.ids!r}))
try:
    os.fork()
except OSError as error:
    print(error.strerror)
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    told, refused = out.decode().splitlines()
    assert "'user': True" in told
    assert refused == "Resource temporarily unavailable"


async def test_without_the_user_that_it_is_to_have_no_rule_host_goes_on(folder: Path) -> None:
    """Root's rights must not be what is left of a sandbox that failed."""

    def nobody() -> RunAs:
        return RunAs((2**32 - 1, 2**32 - 1))

    revision = rule_host_engines.written(folder / "engine", rule("return await inner(prev, curr)"))
    with pytest.raises(CannotLoad):
        async with host_supervisor(revision, hosts=ChildHosts(scratch=str(folder), run_as=nobody)):
            pass


async def test_where_the_user_finds_its_code_nowhere_the_reason_is_told(folder: Path) -> None:
    def shown(path: str) -> str:
        raise CannotLoad(f"{path} is not for you")

    revision = rule_host_engines.written(folder / "engine", rule("return await inner(prev, curr)"))
    with pytest.raises(CannotLoad, match="is not for you"):
        async with host_supervisor(
            revision, hosts=ChildHosts(scratch=str(folder), run_as=lambda: RunAs(shown=shown))
        ):
            pass
    assert [one.name for one in folder.iterdir()] == ["engine"]  # no scratch folder is left


async def test_hands_gain_nothing_by_starting_programs(account: Account, folder: Path) -> None:
    body = """
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    limits = open("/proc/self/limits").read()
    most = next(line.split()[2] for line in limits.splitlines() if line.startswith("Max processes"))
    return Reading({"nnp": status["NoNewPrivs"].strip(), "caps": status["CapPrm"].strip(), "most": most})
    """
    async with at_work(account, folder / "engine", watcher(body)) as scene:
        assert await scene.look() == {"nnp": "1", "caps": "0" * 16, "most": "256"}


async def test_what_has_thrown_its_mark_away_is_ended_when_the_hands_hang(
    account: Account, folder: Path
) -> None:
    body = f"""
    subprocess.Popen(["/usr/bin/setsid", "--fork", "/usr/bin/env", "-i", "/bin/sleep", "{SLEEP}"]).wait()
    return Result({{}})
    """
    hang = "time.sleep(600)"
    async with at_work(account, folder / "engine", executor(body), watcher(hang, timeout=0.5)) as scene:
        await scene.act()
        await until(lambda: len(sleepers(account)) == 1)
        (stray,) = sleepers(account)
        await until(lambda: b"PULSE_HANDS" not in proc.environment(stray))  # once `env` has become it
        with suppress(Exception):
            await scene.look()
        await until(lambda: not sleepers(account))


async def test_what_a_living_program_answers_for_is_no_stray(
    account: Account,
) -> None:
    program = ("/bin/sleep", SLEEP)
    child = await asyncio.create_subprocess_exec(
        *program, user=account.uid, group=account.gid, extra_groups=[], env={}
    )
    try:
        await until(lambda: sleepers(account) == [child.pid])
        assert child.pid not in list(
            process_tree.orphans_of_user(account.uid)(process_tree.live_process_table())
        )
    finally:
        child.kill()
        await child.wait()


@pytest.mark.parametrize("depth", [1, 1_200])
async def test_a_link_is_not_followed_when_a_scratch_folder_goes(folder: Path, depth: int) -> None:
    treasure = folder / "treasure"
    treasure.mkdir(mode=0o711)
    (treasure / "coin").write_text("x")
    place = Scratch(str(folder))
    try:
        subprocess.run(
            (sys.executable, "-c", DIGS, str(depth), str(treasure)), cwd=place.path, check=True, timeout=60
        )
    finally:
        place.remove()
    assert (treasure.stat().st_mode & 0o777, [one.name for one in treasure.iterdir()]) == (0o711, ["coin"])
    assert not os.path.lexists(place.path)
