"""Who a user is, while the machine does not say it: it may ask systemd or a server, which may hang."""

import os
import pwd
import threading
import time
from collections.abc import Iterator

import pytest

from pulse_adapters.workers import run_as
from pulse_core.model.errors import PulseError

OTHER = pwd.struct_passwd(("other", "x", 4_242, 4_242, "", "/", "/bin/sh"))


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Whether the machine answers at once; while this is not set, it does not answer."""
    answers = threading.Event()

    def groups_of(name: str, gid: int) -> tuple[int, ...]:
        answers.wait(60)
        return gid, 7

    monkeypatch.setattr(run_as, "_known", {})
    monkeypatch.setattr(run_as, "_asked", {})
    monkeypatch.setattr(run_as, "FIRST_S", 0.2)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(run_as, "groups_of", groups_of)
    monkeypatch.setattr(pwd, "getpwnam", {"other": OTHER}.__getitem__)
    yield answers
    answers.set()


def test_a_machine_that_does_not_say_who_a_user_is_holds_nobody_up(hangs: threading.Event) -> None:
    began = time.monotonic()
    with pytest.raises(PulseError, match="the machine does not say who the user 'other' is"):
        run_as.process_user("other")
    hangs.set()
    known = run_as.process_user("other")
    assert known is not None
    assert (known.uid, known.groups) == (4_242, (4_242, 7))
    hangs.clear()
    for _ in range(20):
        assert run_as.process_user("other") == known
    assert time.monotonic() - began < 30


def test_a_user_whom_the_machine_does_not_know_is_named(hangs: threading.Event) -> None:
    hangs.set()
    with pytest.raises(PulseError, match="there is no user 'nosuch' on this machine"):
        run_as.process_user("nosuch")


def test_the_groups_of_a_user_are_those_that_the_machine_has() -> None:
    for user in pwd.getpwall():
        found = run_as.groups_of(user.pw_name, user.pw_gid)
        assert sorted(found) == sorted(os.getgrouplist(user.pw_name, user.pw_gid))
