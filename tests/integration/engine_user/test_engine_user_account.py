"""The engine's user: found, made, refused, and what it can read."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.engine_user import account as accounts
from pulse_adapters.engine_user.account import (
    NAME,
    Account,
    NoAccount,
    create_account,
    engine_account,
    find_account,
    first_unreadable,
)
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
def test_one_that_is_named_must_be_there_and_the_usual_one_need_not(account: Account) -> None:
    assert engine_account(account.name) == account
    assert engine_account(None) == find_account(NAME)
    with pytest.raises(
        NoAccount, match="there is no user 'pulse-nobody-at-all' on this machine; make it with"
    ):
        engine_account("pulse-nobody-at-all")
    with pytest.raises(NoAccount, match="'root' is root"):
        engine_account("root")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may give a process any user")
def test_who_is_not_root_has_none_to_give() -> None:
    assert engine_account("root") is None


@ROOT_ALONE
def test_what_can_not_be_made_says_why_and_leaves_nothing() -> None:
    with pytest.raises(NoAccount, match="no user can be made"):
        create_account("No User: at all")
    assert not (accounts.SYSUSERS / "No User: at all.conf").exists()


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
