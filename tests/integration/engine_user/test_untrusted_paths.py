"""Root deletes and changes nothing through a link that another user has swapped in, and for no longer than it wants."""

import os
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.workers.program_runner import ProgramRunner
from pulse_adapters.workers.spawn import ProcessUser
from pulse_adapters.workers.untrusted_paths import hand_over, make_private, remove_tree, run_as_user
from pulse_core.model.errors import PulseError
from tests.engine_user import ROOT_ALONE, open_folder

SOMEBODY = 54321, 54321


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as one:
        yield one


def treasure(folder: Path) -> Path:
    """A folder of root's that somebody would like to see opened, emptied or given away."""
    made = folder / "treasure"
    made.mkdir(mode=0o711)
    (made / "coin").write_text("x")
    return made


def is_untouched(treasure: Path) -> bool:
    found = treasure.stat()
    coin = (treasure / "coin").stat()
    return (stat.S_IMODE(found.st_mode), found.st_uid, coin.st_uid) == (0o711, 0, 0)


def of_somebody(path: Path) -> Path:
    """A folder of that user's with something in it."""
    (path / "a" / "b").mkdir(parents=True)
    (path / "a" / "file").write_text("x")
    for one in (path, *path.rglob("*")):
        os.chown(one, *SOMEBODY)
    return path


def test_a_tree_goes_whatever_its_modes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "kept").write_text("x")
    tree = tmp_path / "tree"
    (tree / "closed" / "below").mkdir(parents=True)
    (tree / "link").symlink_to(there)
    (tree / "closed").chmod(0)
    assert remove_tree(tree)
    assert remove_tree(tree)  # it is gone
    (tmp_path / "file").write_text("x")
    (tmp_path / "to").symlink_to(there)
    assert remove_tree(tmp_path / "file")
    assert remove_tree(tmp_path / "to")
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    assert (there / "kept").exists()


@ROOT_ALONE
def test_what_a_user_swaps_in_below_its_folder_is_not_followed(folder: Path) -> None:
    precious = treasure(folder)
    laid_out = folder / "laid-out"
    work = of_somebody(laid_out / "work")
    (laid_out / "commit").mkdir()
    (laid_out / "commit" / "engine.py").write_text("x")
    (laid_out / "commit").chmod(0o555)
    (work / "a" / "file").unlink()
    (work / "a" / "file").symlink_to(precious)
    (work / "a" / "b").rmdir()
    (work / "a" / "b").symlink_to(precious)
    assert remove_tree(laid_out)
    assert is_untouched(precious)


@ROOT_ALONE
def test_a_folder_that_was_swapped_for_a_link_is_not_followed(folder: Path) -> None:
    precious = treasure(folder)
    (folder / "work").symlink_to(precious)
    assert remove_tree(folder / "work")
    assert is_untouched(precious)


@ROOT_ALONE
def test_what_belongs_to_root_below_a_users_folder_is_left(folder: Path) -> None:
    work = of_somebody(folder / "work")
    precious = treasure(work / "a")  # as if that user had moved it there
    assert not remove_tree(work, patience=2)
    assert is_untouched(precious)
    assert not (work / "a" / "file").exists()


def test_a_folder_that_takes_for_ever_costs_its_time_and_none_of_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is filled as quickly as it is emptied."""
    endless = folder / "bin" / "find"
    endless.parent.mkdir()
    endless.write_text("#!/bin/sh\nexec sleep 60\n")
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{endless.parent}:{os.environ['PATH']}")
    (folder / "work" / "deep").mkdir(parents=True)
    began, computed = time.monotonic(), time.process_time()
    assert not remove_tree(folder / "work", patience=0.2)
    assert time.monotonic() - began < 10
    assert time.process_time() - computed < 0.2


@ROOT_ALONE
def test_only_what_is_roots_in_a_home_is_given_to_its_owner_and_through_no_link(folder: Path) -> None:
    precious, home = treasure(folder), folder / "home"
    home.mkdir()
    os.chown(home, *SOMEBODY)
    for name in ("of-root", "twice", "of-another"):
        (home / name).write_text("x")
    os.link(home / "twice", folder / "once-more")
    os.chown(home / "of-another", 54322, 54322)
    (home / "objects").symlink_to(precious)
    (home / "link").symlink_to(precious / "coin")
    names = ("of-root", "twice", "of-another", "objects", "objects/coin", "link", "gone")
    assert [name for name in names if hand_over(home / name, home)] == ["of-root"]
    assert (home / "of-root").stat().st_uid == SOMEBODY[0]
    assert is_untouched(precious)


@ROOT_ALONE
def test_no_folder_is_closed_where_another_user_led_the_way(folder: Path) -> None:
    precious, others = treasure(folder), folder / "others"
    others.mkdir()
    os.chown(others, *SOMEBODY)
    home = others / "home"
    home.symlink_to(precious)
    with pytest.raises(PulseError, match=r"others can change .*others"):
        make_private(home, home)
    home.unlink()
    home.mkdir()
    os.chown(home, *SOMEBODY)
    (home / "run").symlink_to(precious)
    with pytest.raises(OSError, match=r"symbolic links"):
        make_private(home / "run", home)
    (home / "run").unlink()
    (home / "run").mkdir()
    with pytest.raises(PulseError, match="is not of the user whose home"):
        make_private(home / "run", home)
    assert is_untouched(precious)
    make_private(home, home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() == 0, reason="root may act as any user")
def test_who_is_not_root_acts_as_nobody_else() -> None:
    with pytest.raises(PulseError, match="only root can act as another user"):
        run_as_user(("true",), SOMEBODY, None, 1.0)


@ROOT_ALONE
@pytest.mark.timeout(20)
def test_a_child_that_its_user_stops_before_it_executes_ends_with_its_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become, done = os.setuid, folder / "done"

    def become_and_be_stopped(uid: int) -> None:
        become(uid)
        os.kill(os.getpid(), signal.SIGSTOP)

    monkeypatch.setattr(os, "setuid", become_and_be_stopped)
    folder.chmod(0o777)
    run_as_user(("touch", str(done)), SOMEBODY, None, 0.1)
    somebody = ProcessUser("somebody", "/", *SOMEBODY, ())
    with pytest.raises(subprocess.TimeoutExpired):
        ProgramRunner().run(("touch", str(done)), os.environ, somebody, 0.1)
    assert not done.exists()


@ROOT_ALONE
def test_a_program_that_another_user_cannot_execute_is_told_as_that(folder: Path) -> None:
    program = folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    with pytest.raises(PermissionError):
        ProgramRunner().run((str(program),), os.environ, ProcessUser("somebody", "/", *SOMEBODY, ()), 1.0)
