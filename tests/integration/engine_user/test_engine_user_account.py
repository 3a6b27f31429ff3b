"""The engine's user: found, made, refused, and what it can read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.engine_user import account_record
from pulse_adapters.engine_user.account import (
    Account,
    create_account,
    engine_account,
    find_account,
    first_unreadable,
)
from pulse_adapters.engine_user.account_record import NoAccount
from tests.engine_user import ROOT_ALONE, open_folder, throwaway


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with throwaway() as one:
        yield one


@ROOT_ALONE
def test_it_is_made_once_without_a_login_a_home_or_other_groups(account: Account) -> None:
    import grp
    import pwd

    assert create_account(account.name) == account == find_account(account.name)
    entry = pwd.getpwnam(account.name)
    assert (entry.pw_dir, Path(entry.pw_shell).name) == ("/", "nologin")
    assert 0 < account.uid < 1000
    assert os.getgrouplist(account.name, account.gid) == [account.gid]
    assert grp.getgrgid(account.gid).gr_name == account.name


@ROOT_ALONE
def test_one_that_is_named_must_be_there(account: Account, tmp_path: Path) -> None:
    assert engine_account(tmp_path, account.name) == account
    with pytest.raises(
        NoAccount, match="there is no user 'pulse-nobody-at-all' on this machine; make it with"
    ):
        engine_account(tmp_path, "pulse-nobody-at-all")
    with pytest.raises(NoAccount, match="'root' is root"):
        engine_account(tmp_path, "root")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may give a process any user")
def test_who_is_not_root_has_none_to_give(tmp_path: Path) -> None:
    assert engine_account(tmp_path, "root") is None


@ROOT_ALONE
def test_what_can_not_be_made_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_record, "SYSUSERS", tmp_path / "sysusers.d")
    for name in ("No User: at all", "../passwd", ""):
        with pytest.raises(NoAccount, match="no user can be made"):
            create_account(name)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "systemd-sysusers").write_text("#!/bin/sh\necho no room >&2; exit 1\n")
    (tools / "systemd-sysusers").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(NoAccount, match="systemd-sysusers: no room"):
        create_account("pulse-test-none")
    assert list((tmp_path / "sysusers.d").iterdir()) == []


def test_the_first_folder_on_the_way_that_is_closed_is_named() -> None:
    somebody = Account("somebody", 54321, 54321)
    with open_folder() as folder:
        file = folder / "a" / "b" / "file"
        file.parent.mkdir(parents=True)
        file.write_text("x")
        for one, mode in ((folder / "a", 0o711), (folder / "a" / "b", 0o755), (file, 0o644)):
            one.chmod(mode)

        def seen() -> str:
            return first_unreadable(somebody, [str(file)])

        python = first_unreadable(somebody)
        assert seen() == python  # nothing of ours is in the way
        for one, mode, again in (
            (folder / "a", 0o700, 0o711),
            (folder / "a" / "b", 0o754, 0o755),
            (file, 0o640, 0o644),
        ):
            one.chmod(mode)
            assert seen() == (python or str(one))
            one.chmod(again)
        link = folder / "link"
        link.symlink_to(file)
        (folder / "a" / "b").chmod(0o700)
        assert first_unreadable(somebody, [str(link)]) == (python or str(folder / "a" / "b"))
        (folder / "a" / "b").chmod(0o750)
        if os.geteuid() == 0:
            os.chown(folder / "a" / "b", -1, somebody.gid)
            assert seen() == python
