"""Who a user is, while the machine does not say it: it may ask systemd or a server, which may hang."""

import ast
import asyncio
import os
import pwd
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.workers import users
from pulse_core.model.errors import PulseError

OTHER = pwd.struct_passwd(("other", "x", 4_242, 4_242, "", "/", "/bin/sh"))


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Whether the machine answers at once; while this is not set, it does not answer."""
    answers = threading.Event()

    def groups_of(name: str, gid: int) -> tuple[int, ...]:
        answers.wait(60)
        return gid, 7

    monkeypatch.setattr(users, "_answers", {})
    monkeypatch.setattr(users, "_asked", {})
    monkeypatch.setattr(users, "FIRST_S", 0.2)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(users, "groups_of", groups_of)
    monkeypatch.setattr(pwd, "getpwnam", {"other": OTHER}.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {4_242: OTHER}.__getitem__)
    yield answers
    answers.set()


def test_a_machine_that_does_not_say_who_a_user_is_holds_nobody_up(hangs: threading.Event) -> None:
    began = time.monotonic()
    for _ in range(200):  # they wait together, not each for itself
        with pytest.raises(PulseError, match="the machine does not say who the user 'other' is"):
            users.process_user("other")
    assert users.user_name(4_242) == "uid 4242"
    hangs.set()
    while users._asked:
        time.sleep(0.01)
    known = users.process_user("other")
    assert known is not None
    assert users.user_name(4_242) == "other"
    assert (known.uid, known.groups) == (4_242, (4_242, 7))
    hangs.clear()
    for _ in range(20):
        assert users.process_user("other") == known
    assert time.monotonic() - began < 30


async def test_a_loop_waits_a_moment_for_all_that_the_machine_does_not_say(
    hangs: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "FIRST_S", 1.0)
    monkeypatch.setattr(users, "PATIENCE_S", 0.1)
    monkeypatch.setattr(pwd, "getpwnam", lambda name: OTHER)
    began = time.monotonic()
    for name in map(str, range(50)):
        with pytest.raises(PulseError, match=f"the machine does not say who the user '{name}' is"):
            users.process_user(name)
    assert users.user_name(4_242) == "uid 4242"
    assert time.monotonic() - began < 30
    hangs.set()
    while users._asked:
        await asyncio.sleep(0.01)
    assert users.process_user("7") == users.find_user(4_242)


def test_a_user_whom_the_machine_does_not_know_is_named(hangs: threading.Event) -> None:
    hangs.set()
    with pytest.raises(PulseError, match="there is no user 'nosuch' on this machine"):
        users.process_user("nosuch")


def asks(path: Path) -> set[str]:
    """What this module has that asks the machine about users, by itself or by way of Python's library."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=names):
                found |= {one.name for one in names} & {"pwd", "grp", "getpass"}
            case ast.ImportFrom(module=module) if module in ("pwd", "grp", "getpass"):
                found.add(module)
            case ast.Attribute(attr=("getgrouplist" | "initgroups" | "expanduser") as name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="Path"), attr="home"):
                found.add("Path.home")
    return found


def test_nobody_else_asks_the_machine_who_users_are() -> None:
    """A machine may ask systemd or a server for that, which may hang, and with it whoever has not bounded the wait.

    Commands may: nobody but who gave them waits for them.
    """
    root = Path(users.__file__).parents[2]
    modules = [
        path for package in ("pulse_core", "pulse_adapters") for path in (root / package).rglob("*.py")
    ]
    modules += [root / "upulse_cli" / "serve.py", *(root / "upulse_cli" / "wiring").rglob("*.py")]
    assert len(modules) > 300
    found = {str(path.relative_to(root)): what for path in modules if (what := asks(path))}
    assert found.pop("pulse_adapters/workers/users.py") >= {"pwd", "grp"}
    assert found == {}


def test_the_groups_of_a_user_are_those_that_the_machine_has() -> None:
    for user in pwd.getpwall():
        found = users.groups_of(user.pw_name, user.pw_gid)
        assert sorted(found) == sorted(os.getgrouplist(user.pw_name, user.pw_gid))
