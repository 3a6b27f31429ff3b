"""A user for the engine of each home: recorded, made, taken instead of the shared one, and removed without a rest."""

import grp
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from pulse_adapters.engine_user import account as accounts
from pulse_adapters.engine_user import account_record, account_removal, account_setup, layout
from pulse_adapters.engine_user.account import Account, engine_account, find_account
from pulse_adapters.engine_user.account_record import (
    SHARED,
    NoAccount,
    free_name,
    is_ours,
    record_name,
    recorded_name,
)
from pulse_adapters.engine_user.account_removal import remove_account
from pulse_adapters.engine_user.account_setup import (
    AccountChecks,
    account_state,
    make_account,
    set_up_account,
)
from pulse_adapters.engine_user.layout import EngineUserLayout, layout_path
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.sandbox import scratch_folder
from pulse_adapters.workers import process_tree
from pulse_core.app.doctor import OK, WARN
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from tests.engine_user import ROOT_ALONE, open_folder, throwaway
from tests.golden.make_home import unpack_home
from upulse_cli.wiring.daemon_control import uninstall_daemon
from upulse_cli.wiring.engine import run_as
from upulse_cli.wiring.home import home_context


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with what Pulse writes on a machine, of which the users alone are real; none is left."""
    with open_folder() as folder:
        records = folder / "sysusers.d"
        monkeypatch.setattr(account_record, "SYSUSERS", records)
        monkeypatch.setattr(account_removal, "EVERYBODYS", (str(folder / "tmp"),))
        monkeypatch.setattr(scratch_folder, "OF_ROOT", str(folder / "scratch"))
        for module in (account_setup, layout):
            monkeypatch.setattr(module, "first_unreadable", lambda account: "")
        yield folder
        for file in records.glob("*.conf"):
            with suppress(KeyError):
                pwd.getpwnam(file.stem)
                subprocess.run(["userdel", file.stem], check=True, timeout=60)


def home(machine: Path, name: str = "home") -> Path:
    made = machine / name
    (made / "engine").mkdir(parents=True)
    made.chmod(0o700)
    return made


def eventually(holds: object, until: float = 60.0) -> None:
    end = time.monotonic() + until
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_home_keeps_its_name_and_no_other_home_gets_it(machine: Path) -> None:
    one, other = home(machine), home(machine, "other")
    assert recorded_name(one) is None
    name = free_name(one)
    assert record_name(one) == name == record_name(one) == recorded_name(one)
    assert name.startswith(f"{SHARED}-")
    assert len(name) <= 32
    (machine / "link").symlink_to(one)
    assert recorded_name(machine / "link") == name
    assert record_name(other) not in ("", name)
    assert is_ours(name)


def test_of_two_homes_with_one_short_id_the_second_gets_another(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        account_record, "_names", lambda home: (f"{SHARED}-test{number}" for number in count())
    )
    one, other = home(machine), home(machine, "other")
    assert (record_name(one), record_name(other)) == (f"{SHARED}-test0", f"{SHARED}-test1")
    assert (recorded_name(one), recorded_name(other)) == (f"{SHARED}-test0", f"{SHARED}-test1")
    assert len(list(account_record.SYSUSERS.iterdir())) == 2  # nothing unfinished


def test_a_name_that_the_machine_has_already_is_not_taken(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_record, "_names", lambda home: iter(("root", f"{SHARED}-test")))
    assert record_name(home(machine)) == f"{SHARED}-test"


def test_where_no_record_can_be_written_none_is_made(machine: Path) -> None:
    (machine / "sysusers.d").write_text("")
    with pytest.raises(NoAccount, match="can't be written"):
        record_name(home(machine))


def test_the_folder_of_records_is_open_to_all_whatever_the_umask(machine: Path) -> None:
    before = os.umask(0o077)
    try:
        record_name(home(machine))
    finally:
        os.umask(before)
    assert account_record.SYSUSERS.stat().st_mode & 0o777 == 0o755


@ROOT_ALONE
def test_of_a_persons_home_no_record_is_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = home(machine)
    (mine / "engine").mkdir(exist_ok=True)
    os.chown(mine, 65534, 65534)
    monkeypatch.setattr(
        account_record, "SYSUSERS", machine / ("x" * 300)
    )  # can't be looked at, by root either
    (found,) = AccountChecks(mine, lambda: None, lambda: False).engine_user()
    assert found.level == OK
    assert found.words.startswith("isolation: partial (no user): the daemon runs as")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do that")
def test_who_is_not_root_removes_nobody(machine: Path) -> None:
    with pytest.raises(NoAccount, match="only root ends those of another user"):
        account_removal._end_processes(Account("me", os.geteuid(), os.getegid()))


@ROOT_ALONE
def test_no_removal_ends_the_processes_of_root(machine: Path) -> None:
    with pytest.raises(NoAccount, match="only root ends those of another user"):
        account_removal._end_processes(Account("root", 0, 0))


@ROOT_ALONE
def test_a_home_of_roots_gets_a_user_of_its_own_and_the_settings_win(machine: Path) -> None:
    one, other = home(machine), home(machine, "other")
    now = account_state(one, None)
    assert (now.can_be_made, now.missing) == (True, "the home has no user of its own")
    assert set_up_account(one, None) == f"Rules of your own run as the user {now.account}."
    own, others = engine_account(one, None), make_account(other, None)
    assert own is not None
    assert own.name == recorded_name(one)
    assert own.ids != others.ids
    assert engine_account(one, others.name) == others  # the settings name it
    (found,) = AccountChecks(one, lambda: None, lambda: False).engine_user()
    assert (found.level, found.words) == (OK, f"rules of your own run as {own.name}")
    subprocess.run(["userdel", own.name], check=True, timeout=60)
    with pytest.raises(NoAccount, match=r"there is no user .*; make it with: upulse doctor --repair"):
        engine_account(one, None)
    (found,) = AccountChecks(one, lambda: None, lambda: False).engine_user()
    assert found.words == f"rules of your own don't run: there is no user {own.name}"
    assert found.repair is not None
    assert found.repair() == f"made the user {own.name}; restart the daemon"
    for one_home in (one, other):
        assert len(list(remove_account(one_home, machine / "base"))) == 1


@ROOT_ALONE
def test_one_home_reads_nothing_that_was_laid_out_for_another(machine: Path) -> None:
    one, other = home(machine), home(machine, "other")
    layouts = [EngineUserLayout(make_account(each, None), each, machine / "base") for each in (one, other)]
    for laid_out in layouts:
        (laid_out.home / "staging").mkdir()
        (laid_out.home / "staging" / "engine.py").write_text("RULES = []\n")
        laid_out.shown(str(laid_out.home / "staging"))
    code = next(layouts[0].path.glob("lying-*/engine.py"))
    for laid_out, is_allowed in zip(layouts, (True, False), strict=True):
        uid, gid = laid_out.account.ids
        read = subprocess.run(
            ["cat", str(code)],
            user=uid,
            group=gid,
            extra_groups=(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert (read.returncode == 0) is is_allowed
    for each in (one, other):
        list(remove_account(each, machine / "base"))


@ROOT_ALONE
def test_nothing_is_left_of_a_user_and_what_its_links_lead_to_stays(machine: Path) -> None:
    one = home(machine)
    account = make_account(one, None)
    laid_out = EngineUserLayout(account, one, machine / "base")
    work = worked_in(laid_out)
    (machine / "precious").mkdir(mode=0o711)
    (machine / "precious" / "coin").write_text("x")
    (machine / "tmp").mkdir()
    (machine / "tmp").chmod(0o1777)
    (machine / "tmp" / "of-root").write_text("x")
    closed = "mkdir -p d/e/f; touch d/e/f/x; chmod 0 d/e/f d/e; chmod 500 d"
    litter = f"mkdir -p a/b; chmod 0 a/b; ln -s {machine}/precious link; cd {machine}/tmp; {closed}"
    uid, gid = account.ids
    subprocess.run(
        ["sh", "-c", litter], cwd=work, user=uid, group=gid, extra_groups=(), check=True, timeout=60
    )
    (machine / "scratch" / "pulse-rules-of-one-that-was-killed").mkdir(parents=True)
    # A process in a session of its own that forks as quickly as it can, as hands may leave one.
    fork = "while :; do setsid sleep 300 & sleep 0.02; done"
    child = subprocess.Popen(
        ["sh", "-c", fork], cwd="/", user=uid, group=gid, extra_groups=(), start_new_session=True
    )
    eventually(lambda: len(of_user(uid)) > 2)
    key = [sys.executable, "-c", ADDS_KEY, str(gid), str(uid)]
    assert int(subprocess.run(key, check=True, stdout=subprocess.PIPE, timeout=60).stdout) > 0
    assert keys_of(uid)
    # A copy of a shell that another user runs with the rights of this one.
    shell = shutil.copy("/bin/sleep", machine / "tmp" / "sleep")
    os.chown(shell, uid, gid)
    os.chmod(shell, 0o4755)
    lent = subprocess.Popen([shell, "300"], cwd="/", user=65534, group=65534, extra_groups=())
    assert list(remove_account(one, machine / "base")) == [f"Removed the user {account.name}."]
    child.wait(timeout=60)
    lent.wait(timeout=60)
    assert of_user(uid) == []
    eventually(lambda: not keys_of(uid))
    assert find_account(account.name) is None
    with pytest.raises(KeyError):
        grp.getgrnam(account.name)
    assert sorted(path.name for path in machine.iterdir()) == ["home", "precious", "sysusers.d", "tmp"]
    assert list(account_record.SYSUSERS.iterdir()) == []
    assert [path.name for path in (machine / "tmp").iterdir()] == ["of-root"]
    assert (machine / "precious").stat().st_mode & 0o777 == 0o711
    assert (machine / "precious" / "coin").exists()
    assert list(remove_account(one, machine / "base")) == []  # nor is anything to be done again


def worked_in(laid_out: EngineUserLayout) -> Path:
    """A folder of the user's own in its place, as earlier versions made one."""
    work = laid_out.cache().parent / f"work-{laid_out.account.uid}"
    work.mkdir(mode=0o700)
    os.chown(work, *laid_out.account.ids)
    return work


ADDS_KEY = """
import ctypes, os, platform, sys
add_key, libc = {"x86_64": 248, "aarch64": 217}[platform.machine()], ctypes.CDLL(None)
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[2]))
print(libc.syscall(add_key, b"user", b"secret", b"abc", 3, -4))
"""


def keys_of(uid: int) -> int:
    """How many keys the kernel keeps for a user."""
    lines = (line.split() for line in Path("/proc/key-users").read_text().splitlines())
    return next((int(one[3].partition("/")[0]) for one in lines if one[0] == f"{uid}:"), 0)


@ROOT_ALONE
def test_a_user_that_has_left_what_it_can_not_delete_stays_and_that_is_named(machine: Path) -> None:
    account = make_account(one := home(machine), None)
    kept = machine / "tmp" / "of-root"
    kept.mkdir(parents=True)
    (kept / "x").touch()
    os.chown(kept / "x", *account.ids)
    for mended in (False, True):
        if mended:
            (kept / "x").unlink()
            assert list(remove_account(one, machine / "base")) == [f"Removed the user {account.name}."]
        else:
            with pytest.raises(NoAccount, match=r"has left '.*/of-root/x', which it can't delete"):
                list(remove_account(one, machine / "base"))


def of_user(uid: int) -> list[int]:
    return list(process_tree.of_user(uid)(process_tree.live_process_table()))


@ROOT_ALONE
def test_an_older_home_leaves_the_shared_user_which_goes_with_its_last_home(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine / "home", home(machine, "other")
    unpack_home("0.1.0", one)
    with throwaway() as shared:
        for module in (accounts, account_setup, account_removal):
            monkeypatch.setattr(module, "SHARED", shared.name)
        settings = home_context(HomeLayout(one)).settings().settings
        assert run_as(HomeLayout(one), lambda: settings).user == shared.ids
        for each in (one, other):  # as an earlier version laid it out
            assert engine_account(each, None) == shared
            worked_in(EngineUserLayout(shared, each, machine / "base"))
        (found,) = AccountChecks(one, lambda: None, lambda: False).engine_user()
        assert found.level == WARN
        assert found.words == f"rules of your own run as {shared.name}: the home has no user of its own"
        assert "run as the user" in set_up_account(one, None)
        own = engine_account(one, None)
        assert own is not None
        assert own != shared
        assert engine_account(other, None) == shared
        laid_out = EngineUserLayout(own, one, machine / "base")
        laid_out.shown(str(one / "staging"))
        assert not list(laid_out.path.glob(f"work-{shared.uid}"))  # nothing is left of the one before
        assert list(remove_account(one, machine / "base")) == [f"Removed the user {own.name}."]
        assert find_account(shared.name) == shared
        words = f"Removed the user {shared.name}, which no home uses any more."
        removed = f"Removed {layout_path(other, machine / 'base')}."
        assert list(remove_account(other, machine / "base")) == [removed, words]
        assert find_account(shared.name) is None
        subprocess.run(["useradd", "--system", shared.name], check=True, timeout=60)  # for who takes it away


@ROOT_ALONE
def test_what_does_not_end_or_go_is_told_and_the_record_stays_for_another_try(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = home(machine)
    account = make_account(one, None)
    monkeypatch.setattr(account_removal, "PATIENCE", 0.05)
    uid, gid = account.ids
    child = subprocess.Popen(["sleep", "300"], cwd="/", user=uid, group=gid, extra_groups=())
    try:
        with monkeypatch.context() as stubborn:
            stubborn.setattr(account_removal, "run_as_user", lambda *_: None)
            with pytest.raises(
                NoAccount, match=rf"1 process of the user {account.name} did not end, as {child.pid}"
            ):
                list(remove_account(one, machine / "base"))
    finally:
        child.kill()
        child.wait(timeout=60)
    with monkeypatch.context() as stubborn:
        stubborn.setattr(account_removal, "remove_tree", lambda path: False)
        with pytest.raises(NoAccount, match=r"base/home-.* can't be emptied; try again"):
            list(remove_account(one, machine / "base"))
    with monkeypatch.context() as stubborn:
        tools = machine / "bin"
        tools.mkdir()
        (tools / "userdel").write_text("#!/bin/sh\necho it is logged in >&2; exit 8\n")
        (tools / "userdel").chmod(0o755)
        stubborn.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        with pytest.raises(NoAccount, match="userdel: it is logged in"):
            list(remove_account(one, machine / "base"))
    assert recorded_name(one) == account.name
    assert list(remove_account(one, machine / "base")) == [f"Removed the user {account.name}."]


@ROOT_ALONE
def test_where_systemd_does_not_run_the_machine_an_uninstall_removes_the_user(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulse_adapters.systemd.manager._SYSTEM", machine / "units")
    one = HomeLayout(home(machine))
    with pytest.raises(PulseError, match="no systemd unit serves"):
        list(uninstall_daemon(one))  # which has nothing on the machine
    (one.path / "run").mkdir(mode=0o700)
    account = make_account(one.path, None)
    with HomeLock(one.lock, "1"), pytest.raises(PulseError, match=r"runs|holds|held"):
        list(uninstall_daemon(one))
    assert find_account(account.name) == account
    assert list(uninstall_daemon(one)) == [f"Removed the user {account.name}."]


@ROOT_ALONE
def test_an_uninstall_that_was_broken_off_is_finished_by_the_next_one(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulse_adapters.systemd.manager._SYSTEM", machine / "units")
    one = HomeLayout(home(machine))
    (one.path / "run").mkdir(mode=0o700)
    laid_out = layout_path(one.path)
    laid_out.mkdir(parents=True)  # its unit is gone, and no user was recorded
    try:
        assert list(uninstall_daemon(one)) == [f"Removed {laid_out}."]
        assert not laid_out.exists()
    finally:
        shutil.rmtree(laid_out, ignore_errors=True)
