"""Which user the engine of a home gets: one that is named must do, the usual one may be missing."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.engine_user import account as accounts
from pulse_adapters.engine_user import account_record
from pulse_adapters.engine_user.account import READABLE, Account, first_unreadable
from pulse_adapters.engine_user.layout import engine_user_of
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import CannotLoad
from tests.engine_user import ROOT_ALONE, throwaway
from upulse_cli.wiring.engine import run_as
from upulse_cli.wiring.home import home_context

pytestmark = ROOT_ALONE


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with throwaway() as one:
        yield one


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(account_record, "SYSUSERS", tmp_path / "sysusers.d")
    made = Home(tmp_path / "home")
    made.create()
    return made


def closed(home: Home) -> Path:
    """A Python that is root's alone."""
    path = home.path / "python"
    path.write_text("")
    return path


def test_an_older_home_goes_on_with_the_user_that_homes_shared_if_it_can_read_python(
    account: Account, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SHARED", account.name)
    found = engine_user_of(home.path, None)
    assert (found and found.account) == (None if first_unreadable(account) else account)
    monkeypatch.setattr(sys, "executable", str(closed(home)))
    assert engine_user_of(home.path, None) is None


def test_one_that_is_named_must_be_able_to_read_python(
    account: Account, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(closed(home)))
    with pytest.raises(PulseError, match=f"{account.name} can't read .*; {READABLE}"):
        engine_user_of(home.path, account.name)


def test_the_owner_of_the_home_is_no_user_for_its_engine(account: Account, home: Home) -> None:

    os.chown(home.path, account.uid, -1)
    with pytest.raises(PulseError, match=r"belongs to the user .* who must not read it"):
        engine_user_of(home.path, account.name)


def test_settings_that_are_refused_let_no_rule_run_as_root(home: Home) -> None:
    home.config.write_text("[engine]\nuser = 7\n")
    with pytest.raises(CannotLoad, match=r"engine\.user"):
        run_as(home, lambda: home_context(home).settings().settings)
