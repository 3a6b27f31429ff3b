"""Control groups of a home: made, limited, entered, ended with all that is in them, and found again."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from pulse_adapters.workers import control_group, proc
from pulse_adapters.workers.control_group import (
    DELEGATED,
    STARTED,
    ControlGroup,
    GroupLimits,
    NoControlGroups,
    all_home_groups,
    end_left_over,
    home_groups,
    home_name,
    is_left_over,
    log_identity,
    maker_prefix,
    own_group,
    parent_of_groups,
    remove_groups_of_gone_homes,
    remove_home_groups,
)
from pulse_adapters.workers.descriptor_share import SpareDescriptor
from pulse_adapters.workers.proc import is_alive, read_stat
from pulse_core.ports.host import Life, ProcessId
from tests.control_groups import NO_CONTROLLERS, skip_without_groups
from tests.engine_user import ROOT_ALONE, open_folder
from tests.processes import PATIENCE, child_of_test

FORKS = """
import os, sys, time
sys.stdin.read(1)
for _ in range(8):
    if not os.fork():
        os.setsid()
        if os.fork():
            print("forked", flush=True)
            os._exit(0)
        os.environ.clear()
        while True:
            if not os.fork():
                time.sleep(0.05)
                os._exit(0)
            time.sleep(0.005)
"""

LEADERLESS = """
import ctypes, os, sys, threading, time
def forks():
    while True:
        if {forks} and not os.fork():
            time.sleep(1000)
        time.sleep({forks} and 0.02 or 1000)
threading.Thread(target=forks).start()
ctypes.CDLL(None).pthread_exit(None)
"""
"""Its first thread ends; another one sleeps, or goes on to fork."""


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[ControlGroup]:
    skip_without_groups()
    folder = home_groups(tmp_path)
    try:
        yield folder
    finally:
        assert folder.end(PATIENCE)


def test_all_that_double_forks_with_sessions_of_its_own_ends_with_the_group(groups: ControlGroup) -> None:
    group = groups.child("bomb", GroupLimits(pids=200))
    argv = [sys.executable, "-c", FORKS]
    with child_of_test(
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    ) as child:
        group.add(child.pid)
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"x")
        child.stdin.close()
        assert [child.stdout.readline() for _ in range(8)] == [b"forked\n"] * 8
    members = [one for pid in group.members() if (one := read_stat(pid))]
    assert members
    assert child.pid not in {one.session for one in members}
    assert group.end(PATIENCE)
    assert not os.path.exists(group.path)
    assert not any(is_alive(one.found) for one in members)


@pytest.mark.parametrize("forks", [False, True])
def test_whose_first_thread_has_ended_ends_with_the_group(groups: ControlGroup, forks: bool) -> None:
    """The kernel's `cgroup.kill` signals that thread alone."""
    group = groups.child("bomb", GroupLimits(pids=200))
    argv = [sys.executable, "-c", LEADERLESS.format(forks=forks)]
    with child_of_test(subprocess.Popen(argv, start_new_session=True)) as child:
        group.add(child.pid)
        while not (seen := read_stat(child.pid)) or seen.state != "Z":
            assert child.poll() is None
        assert group.end(PATIENCE)
        assert child.wait(PATIENCE) == -signal.SIGKILL
    assert not group.members()


def test_a_process_moves_itself_and_what_is_nested_counts(groups: ControlGroup) -> None:
    group = groups.child("outer")
    inner = group.child("inner")
    with child_of_test(subprocess.Popen(["sleep", "1000"])) as one, child_of_test(
        subprocess.Popen(
            ["sh", "-c", 'echo 0 >"$0/cgroup.procs"; exec sleep 1000', inner.path], stdout=subprocess.PIPE
        )
    ) as other:  # fmt: skip
        group.add(one.pid)
        while inner.members() != {other.pid}:
            assert other.poll() is None
        assert group.members() == {one.pid, other.pid}
        assert group.is_populated()
        assert not group.remove()
        assert group.end(PATIENCE)
        assert {one.wait(PATIENCE), other.wait(PATIENCE)} == {-signal.SIGKILL}
    assert not group.members()
    assert not group.is_populated()
    assert group.end(PATIENCE)  # what is gone has ended


def test_what_a_dead_maker_left_is_found_and_ended_and_nothing_else(
    groups: ControlGroup, tmp_path: Path
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait(PATIENCE)
    namespace = os.stat("/proc/self/ns/pid").st_ino
    left = groups.child(f"of-{namespace}-{gone.pid}-1-host")
    containers = groups.child(f"of-{namespace + 1}-{gone.pid}-1-host")
    mine, process = groups.child(f"{maker_prefix()}host"), groups.child("process-web")
    with child_of_test(subprocess.Popen(["sleep", "1000"])) as survivor:
        left.add(survivor.pid)
        assert is_left_over(left)
        assert not is_left_over(mine)
        assert not is_left_over(process)
        assert end_left_over(tmp_path, PATIENCE) == []
        assert survivor.wait(PATIENCE) == -signal.SIGKILL
    assert {one.name for one in groups.children()} == {mine.name, process.name, containers.name}


def test_what_is_empty_is_removed_at_a_stop_and_of_homes_that_are_gone(
    groups: ControlGroup, tmp_path: Path
) -> None:
    gone, lives = [home_groups(make_home(tmp_path / name)) for name in ("gone", "lives")]
    for folder in (groups, gone, lives):
        folder.child("life-1").child("of its own")
    (tmp_path / "gone").rmdir()
    remove_groups_of_gone_homes()
    assert [os.path.exists(one.path) for one in (groups, gone, lives)] == [True, False, True]
    remove_home_groups(home_name(tmp_path / "lives"))
    assert not os.path.exists(lives.path)
    with child_of_test(subprocess.Popen(["sleep", "1000"])) as guarded:
        groups.child("life-2").add(guarded.pid)
        groups.child("life-2").child("of its own")
        remove_home_groups(home_name(tmp_path))
        assert [one.name for one in groups.children()] == ["life-2"]
        assert list(groups.child("life-2").children())
        guarded.kill()


def make_home(path: Path) -> Path:
    path.mkdir()
    return path


def test_groups_are_found_wherever_the_home_made_them_and_no_other_homes_are(
    groups: ControlGroup, tmp_path: Path
) -> None:
    elsewhere = own_group().child("elsewhere").child(groups.name)
    other = tmp_path / "other"
    other.mkdir()
    try:
        assert {one.path for one in all_home_groups(tmp_path)} == {groups.path, elsewhere.path}
        assert all_home_groups(other) == []
    finally:
        assert ControlGroup(os.path.dirname(elsewhere.path)).remove()


def test_groups_of_a_log_are_found_wherever_its_home_lay_and_none_of_another_pid_namespace_are(
    groups: ControlGroup, tmp_path: Path
) -> None:
    there, identity = make_home(tmp_path / "there"), log_identity("log")
    name = home_name(there)
    folder = home_groups(there, name, identity)
    try:
        assert all_home_groups(tmp_path) == [groups]
        assert set(all_home_groups(tmp_path, identity)) == {groups, folder}
        assert all_home_groups(tmp_path, "log.1") == all_home_groups(tmp_path, log_identity("x")) == [groups]
        there.rename(tmp_path / "moved")
        assert home_groups(there, name, identity) == folder
    finally:
        assert folder.end(PATIENCE)


def test_groups_nested_deeper_than_anybody_nests_them_hold_nothing_up(
    groups: ControlGroup, tmp_path: Path
) -> None:
    nested = deepest = groups.child("nested")
    try:
        for _ in range(300):
            deepest = deepest.child("x")
        assert all_home_groups(tmp_path) == [groups]
        assert not nested.remove()
        assert len(list(nested.whole())) < 100
    finally:
        while deepest.path != groups.path:
            os.rmdir(deepest.path)
            deepest = ControlGroup(os.path.dirname(deepest.path))


def test_a_unit_of_pulses_is_delegated_though_a_persons_manager_sets_no_attribute(
    groups: ControlGroup,
) -> None:
    for name, is_one in (("upulse_service", False), ("upulse.service", True), ("upulse@x.service", True)):
        leaf = ControlGroup(f"{groups.path}/{name}/daemon")
        assert (parent_of_groups(leaf).path == f"{groups.path}/{name}") is is_one


@pytest.mark.parametrize("is_delegated", [True, False])
def test_a_process_in_a_leaf_of_a_delegated_unit_makes_groups_beside_it(
    is_delegated: bool, groups: ControlGroup, tmp_path: Path
) -> None:
    code = (
        "import sys; from pulse_adapters.workers.control_group import *\n"
        "g = ControlGroup(sys.argv[1]); g.add(0); print(home_groups(sys.argv[2]).path)"
    )
    unit = groups.child("unit")
    leaf = unit.child("daemon")
    if is_delegated:
        os.setxattr(unit.path, DELEGATED, b"1")
    home = tmp_path / "home"
    home.mkdir()
    argv = [sys.executable, "-c", code, leaf.path, str(home)]
    made = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout
    assert Path(made.strip()).parent == Path(unit.path if is_delegated else leaf.path)


AS_NOBODY = """
import os, subprocess, sys
from pulse_adapters.workers.control_group import *
from pulse_adapters.workers.drop_privileges import become_user
from pulse_adapters.workers.host_groups import RULES, end_hosts_left_over, host_group
leaf, home = ControlGroup(sys.argv[1]), sys.argv[2]
leaf.add(0)
become_user(65534, 65534)
host = host_group(home, RULES, 64)
assert host.group, host.missing
child = subprocess.Popen(["sh", "-c", 'echo 0 >"$0/cgroup.procs"; echo in; exec sleep 1000', host.path], stdout=-1)
assert child.stdout.readline() == b"in\\n"
assert host.group.members() == {child.pid}
assert host.end_now() and child.wait() == -9
end_hosts_left_over(home)
assert all_home_groups(home) == []
"""


@ROOT_ALONE
def test_a_user_to_whom_a_unit_is_delegated_may_make_groups_in_it(
    groups: ControlGroup, tmp_path: Path
) -> None:
    """As a service manager delegates it: the folder and the files by which processes are moved are the user's."""
    unit = groups.child("unit")
    leaf = unit.child("daemon")
    os.setxattr(unit.path, DELEGATED, b"1")
    for group in (unit, leaf):
        os.chown(group.path, 65534, 65534)
        for file in ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
            os.chown(f"{group.path}/{file}", 65534, 65534)
    with open_folder() as home:
        argv = [sys.executable, "-c", AS_NOBODY, leaf.path, str(home)]
        done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_limits_are_written_where_their_controllers_are(tmp_path: Path) -> None:
    """A folder that looks like a group."""
    for file, content in {
        "cgroup.controllers": "cpuset cpu memory pids\n",
        "cgroup.subtree_control": "",
    }.items():
        (tmp_path / file).write_text(content)
    host = tmp_path / "host"
    host.mkdir()
    for file in ("pids.max", "memory.max", "cgroup.subtree_control"):
        (host / file).write_text("max")
    group = ControlGroup(str(tmp_path))
    assert group.controllers() == {"cpu", "memory", "pids"}
    group.enable_controllers()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"  # a kernel adds what is written
    limited = group.child("host", GroupLimits(pids=64, memory=1 << 30, cpu_weight=20))
    assert (host / "pids.max").read_text() == "64"
    assert (host / "memory.max").read_text() == str(1 << 30)
    assert not (host / "cpu.weight").exists()
    assert limited.controllers() == frozenset()


@pytest.mark.parametrize(
    ("above", "here", "words"),
    [
        ("cpu memory pids", "cpu memory pids", ""),
        ("cpu memory pids", "", "run it as a service under systemd 254 or later"),
        ("cpu", "", "no controller of pids, memory, cpu, as on a machine with cgroup v1; boot it with"),
        ("cpu pids", "cpu pids", "no controller of memory,"),
    ],
)
def test_limits_without_effect_are_told_with_the_reason_and_what_to_do(
    above: str, here: str, words: str, tmp_path: Path
) -> None:
    """Folders that look like groups: systemd before 254 leaves the daemon in the one above."""
    (tmp_path / "cgroup.controllers").write_text(above)
    (host := tmp_path / "host").mkdir()
    (host / "cgroup.controllers").write_text(here)
    told = ControlGroup(str(host)).missing_limits(ControlGroup(str(tmp_path)))
    assert words in told
    assert bool(told) is bool(words)


@pytest.mark.parametrize(("above", "left"), [("max\n", "max"), ("4684\n", "4428"), ("40\n", "30")])
def test_of_the_processes_of_a_unit_some_are_left_to_the_daemon(
    above: str, left: str, tmp_path: Path
) -> None:
    """Folders that look like groups."""
    folder = tmp_path / "pulse-1"
    folder.mkdir()
    (tmp_path / "pids.max").write_text(above)
    (folder / "pids.max").write_text("max")
    ControlGroup(str(folder)).leave_share(ControlGroup(str(tmp_path)))
    assert (folder / "pids.max").read_text() == left


def limited(groups: ControlGroup, limits: GroupLimits) -> ControlGroup:
    """A group with these limits; the test is skipped where no controller holds them."""
    if not {"pids", "memory", "cpu"} <= groups.controllers():
        pytest.skip(NO_CONTROLLERS)
    return groups.child("small", limits)


def run_within(group: ControlGroup, script: str) -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-c", f'echo 0 >"$0/cgroup.procs"; {script}', group.path]
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_no_more_processes_begin_than_a_group_may_have(groups: ControlGroup) -> None:
    group = limited(groups, GroupLimits(pids=4))
    done = run_within(group, "for i in 1 2 3 4 5 6; do sleep 100 >/dev/null 2>&1 & done")
    assert "fork" in done.stderr
    assert len(group.members()) <= 4


def test_who_takes_more_memory_than_the_group_may_have_is_killed(groups: ControlGroup) -> None:
    group = limited(groups, GroupLimits(memory=64 << 20))
    takes = f"{sys.executable} -c 'bytearray({{}} << 20); print(1)'; echo $?"
    assert run_within(group, takes.format(16)).stdout.split() == ["1", "0"]
    assert run_within(group, takes.format(200)).stdout.split() == [str(128 + signal.SIGKILL)]


def test_who_forks_without_end_leaves_its_share_to_the_daemon_of_its_unit(
    groups: ControlGroup, tmp_path: Path
) -> None:
    unit = limited(groups, GroupLimits(pids=40))
    unit.child("daemon")
    os.setxattr(unit.path, DELEGATED, b"1")
    (tmp_path / "home").mkdir()
    code = "import sys; from pulse_adapters.workers.control_group import *\nhome_groups(sys.argv[1])"
    argv = [sys.executable, "-c", code, str(tmp_path / "home")]
    enter = ["sh", "-c", 'echo 0 >"$0/cgroup.procs"; exec "$@"', f"{unit.path}/daemon"]
    subprocess.run([*enter, *argv], timeout=PATIENCE, check=True)
    (folder,) = (one for one in unit.children() if one.name != "daemon")
    done = run_within(folder.child("life-1"), "for i in $(seq 60); do sleep 100 >/dev/null 2>&1 & done")
    assert "fork" in done.stderr
    assert len(folder.members()) <= 30
    subprocess.run([*enter, "true"], timeout=PATIENCE, check=True)


def test_a_group_of_less_weight_gives_way(groups: ControlGroup) -> None:
    light = limited(groups, GroupLimits(cpu_weight=20))
    other = groups.child("other", GroupLimits(cpu_weight=100))
    spins = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"
    begun = partial(
        subprocess.Popen, [sys.executable, "-c", spins, str(min(os.sched_getaffinity(0)))], stdout=-1
    )
    with child_of_test(begun()) as one, child_of_test(begun()) as two:
        for group, child in ((light, one), (other, two)):
            assert child.stdout
            assert child.stdout.readline()
            group.add(child.pid)
        before = used_us(light), used_us(other)
        until = time.monotonic() + PATIENCE
        while (spent := used_us(other) - before[1]) < 500_000 and time.monotonic() < until:
            time.sleep(0.05)
        given_way = used_us(light) - before[0]
        light.kill()
        other.kill()
    assert given_way < spent / 2.5


def used_us(group: ControlGroup) -> int:
    """Microseconds of a processor that a group has had."""
    return int(Path(group.path, "cpu.stat").read_text().split()[1])


@pytest.mark.parametrize("words", ["worker pid ticks", "worker 7 soon sum", "worker 7", "worker"])
def test_what_a_group_says_of_a_start_in_other_words_names_the_process_and_no_life(
    groups: ControlGroup, words: str
) -> None:
    """Whoever may write to the group may have written it, and so may a daemon of another version."""
    group = groups.child("life-it")
    os.setxattr(group.path, STARTED, words.encode())
    assert group.started() == ("worker", None)
    life = Life("it", ProcessId(7, 70), "sum")
    group.tell_started("worker", life)
    assert group.started() == ("worker", life)


@ROOT_ALONE
def test_groups_are_found_beside_a_mount_whose_name_is_no_text(tmp_path: Path) -> None:
    group = skip_without_groups()
    code = "from pulse_adapters.workers.control_group import own_group; print(own_group().path)"
    odd = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(odd)
    script = 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"'
    argv = ("unshare", "--mount", "sh", "-c", script, "sh", odd, sys.executable, "-c", code)
    assert subprocess.run(argv, stdout=subprocess.PIPE, timeout=60).stdout.decode().strip() == group.path


@pytest.mark.parametrize("has_spare", [True, False])
def test_without_descriptors_nobody_is_missed_in_a_group(
    groups: ControlGroup, monkeypatch: pytest.MonkeyPatch, has_spare: bool
) -> None:
    group, spare = groups.child("life-1"), SpareDescriptor()
    for module in (control_group, proc):
        monkeypatch.setattr(module, "SPARE", spare)
    with child_of_test(subprocess.Popen(["sleep", "987.75"])) as one:
        group.child("nested").add(one.pid)
        if has_spare:
            spare.hold()
        usual = resource.getrlimit(resource.RLIMIT_NOFILE)
        with ExitStack() as filled:
            numbers = [os.open(os.devnull, os.O_RDONLY) for _ in range(32)]
            for number in numbers:
                filled.callback(os.close, number)
            filled.callback(resource.setrlimit, resource.RLIMIT_NOFILE, usual)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(numbers) + 1, usual[1]))
            if has_spare:
                assert (group.members(), group.is_populated()) == (frozenset({one.pid}), True)
            for look in () if has_spare else (group.members, group.is_populated):
                with pytest.raises(OSError, match="Too many open files"):
                    look()
        one.kill()
    spare._give_up()


def test_a_name_can_not_lead_out_of_the_folder(groups: ControlGroup) -> None:
    assert Path(groups.child("../../x").path).parent == Path(groups.path)


def test_who_may_not_change_its_group_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_groups()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(NoControlGroups, match="may not make control groups below /"):
        home_groups(tmp_path)
