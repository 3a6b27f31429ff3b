"""What is laid out for the engine's user, and that nobody who writes it can have root do what only root may."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.engine_user.account import Account
from pulse_adapters.engine_user.layout import EngineUserLayout, layout_path
from pulse_adapters.sandbox.copy_tree import TreeRefused, copy_tree
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import CannotLoad
from tests.engine_user import ROOT_ALONE, open_folder

pytestmark = ROOT_ALONE
SOMEBODY = Account("somebody", 54321, 54321)
COMMIT = "0123456789" * 4


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as one:
        yield one


@pytest.fixture
def quarters(folder: Path) -> EngineUserLayout:
    home = folder / "home"
    home.mkdir(mode=0o700)
    return EngineUserLayout(SOMEBODY, home, folder / "base")


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def as_somebody(work: str) -> int:
    """The exit code of a process of that user that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(SOMEBODY.gid, SOMEBODY.gid, SOMEBODY.gid)
            os.setresuid(SOMEBODY.uid, SOMEBODY.uid, SOMEBODY.uid)
            exec(work)
        except PermissionError:
            os._exit(13)
        except BaseException:  # noqa: BLE001 - the exit code tells
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_commit_is_there_for_that_user_to_read_and_nobody_else(quarters: EngineUserLayout) -> None:
    commit = tree(quarters.home / "revisions" / COMMIT, engine="RULES = []", rules__a="A = 1")
    shown = Path(quarters.shown(str(commit)))
    assert shown == quarters.path / COMMIT
    assert (shown / "rules" / "a").read_text() == "A = 1"
    assert {mode(one) for one in (shown, shown / "rules")} == {0o555}
    assert mode(shown / "engine") == 0o444
    assert (mode(quarters.path), mode(quarters.base), mode(quarters.home)) == (0o750, 0o755, 0o700)
    assert as_somebody(f"open({str(shown / 'engine')!r})") == 0
    assert as_somebody(f"open({str(shown / 'engine')!r}, 'a')") == 13
    assert as_somebody(f"open({str(commit / 'engine')!r})") == 13
    shown.parent.chmod(0o700)  # as it is for whoever is not of the group
    assert as_somebody(f"open({str(shown / 'engine')!r})") == 13


def test_a_commit_is_laid_out_once_and_any_other_tree_as_it_is_now(quarters: EngineUserLayout) -> None:
    commit = tree(quarters.home / "revisions" / COMMIT, engine="one")
    first = quarters.shown(str(commit))
    tree(commit, engine="two")
    assert quarters.shown(str(commit)) == first
    staging = tree(quarters.home / "staging", engine="one")
    before = quarters.shown(str(staging))
    assert quarters.shown(str(staging)) == before
    tree(staging, engine="two")
    after = quarters.shown(str(staging))
    assert [(Path(path) / "engine").read_text() for path in (before, after)] == ["one", "two"]
    assert not [one for one in quarters.path.iterdir() if one.name.startswith(".begun-")]


def test_two_trees_that_look_alike_when_strung_together_are_two(folder: Path) -> None:
    one = copy_tree(tree(folder / "a", x="1", y="2"), folder / "to-a")
    other = copy_tree(tree(folder / "b", x="1\0y\x002"), folder / "to-b")
    assert one != other


def test_no_link_is_followed_neither_of_a_file_nor_of_a_folder(folder: Path) -> None:
    secret = tree(folder / "root", secret="s3cret")
    secret.chmod(0o700)
    staging = tree(folder / "staging", engine="x")
    (staging / "file").symlink_to(secret / "secret")
    (staging / "folder").symlink_to(secret)
    copy_tree(staging, folder / "to")
    assert os.readlink(folder / "to" / "file") == str(secret / "secret")
    assert os.readlink(folder / "to" / "folder") == str(secret)
    assert as_somebody(f"open({str(folder / 'to' / 'file')!r})") == 13
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        copy_tree(staging / "folder", folder / "other")


def test_a_file_of_another_user_that_was_linked_into_the_tree_is_not_given_away(folder: Path) -> None:
    secret = tree(folder / "root", secret="s3cret") / "secret"
    staging = tree(folder / "staging", engine="x")
    os.chown(staging, SOMEBODY.uid, SOMEBODY.gid)
    os.link(secret, staging / "stolen")
    with pytest.raises(TreeRefused, match="stolen is another user's file"):
        copy_tree(staging, folder / "to")


def test_pipes_and_sockets_hold_nobody_up(folder: Path) -> None:
    staging = tree(folder / "staging", engine="x")
    os.mkfifo(staging / "pipe")
    copy_tree(staging, folder / "to")
    assert os.listdir(folder / "to") == ["engine"]


def test_what_is_no_part_of_an_engine_is_left_out(folder: Path) -> None:
    staging = tree(folder / "staging", engine="x")
    tree(staging / ".git", config="secret")
    tree(staging / "rules" / "__pycache__", a="x")
    copy_tree(staging, folder / "to")
    assert sorted(path.name for path in (folder / "to").rglob("*")) == ["engine", "rules"]


def test_a_tree_without_end_is_refused(quarters: EngineUserLayout) -> None:
    deep = quarters.home / "staging"
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    with pytest.raises(CannotLoad, match="more than 40 folders deep"):
        quarters.shown(str(quarters.home / "staging"))
    assert os.listdir(quarters.path) == []


def test_a_place_that_is_somebody_elses_is_not_used(quarters: EngineUserLayout) -> None:
    commit = tree(quarters.home / "revisions" / COMMIT, engine="x")
    elsewhere = quarters.base.parent / "elsewhere"
    elsewhere.mkdir()
    quarters.base.symlink_to(elsewhere)
    with pytest.raises(CannotLoad, match="is not root's own folder; move it away"):
        quarters.shown(str(commit))
    assert os.listdir(elsewhere) == []
    quarters.base.unlink()
    quarters.base.mkdir()
    os.chown(quarters.base, SOMEBODY.uid, SOMEBODY.gid)
    with pytest.raises(PulseError, match="is not root's own folder"):
        quarters.cache()


def test_a_home_that_somebody_opened_is_closed_before_that_user_comes(quarters: EngineUserLayout) -> None:
    commit = tree(quarters.home / "revisions" / COMMIT, engine="x")
    quarters.home.chmod(0o755)
    quarters.shown(str(commit))
    assert mode(quarters.home) == 0o700


def test_there_is_a_folder_which_it_may_read_and_not_write_to(quarters: EngineUserLayout) -> None:
    cache = quarters.cache()
    assert quarters.cache() == cache
    assert as_somebody(f"import os; os.listdir({str(cache)!r})") == 0
    assert as_somebody(f"open({str(cache / 'x')!r}, 'w')") == 13
    assert as_somebody(f"import os; os.rename({str(cache)!r}, {str(cache) + '-2'!r})") == 13


def test_what_the_home_no_longer_lays_out_goes_and_what_was_tried_lately_stays(
    quarters: EngineUserLayout,
) -> None:
    old = tree(quarters.home / "revisions" / ("a" * 40), engine="old")
    staging = tree(quarters.home / "staging", engine="x")
    for path in (old, staging):
        quarters.shown(str(path))
    (old / "engine").unlink()
    old.rmdir()
    cache = quarters.cache()
    quarters.shown(str(tree(quarters.home / "revisions" / COMMIT, engine="new")))
    names = sorted(one.name.partition("-")[0] for one in quarters.path.iterdir())
    assert names == [COMMIT, "cache", "lying"]
    long_ago = time.time() - 8 * 86_400
    lying = next(quarters.path.glob("lying-*"))
    os.utime(lying, (long_ago, long_ago))
    os.utime(cache, (long_ago, long_ago))
    quarters.shown(str(tree(quarters.home / "revisions" / ("b" * 40), engine="newer")))
    assert sorted(one.name.partition("-")[0] for one in quarters.path.iterdir()) == [
        COMMIT,
        "b" * 40,
        "cache",
    ]


def test_homes_of_one_name_have_places_of_their_own(folder: Path) -> None:
    one, other = layout_path(folder / "a" / ".upulse"), layout_path(folder / "b" / ".upulse")
    assert one != other
    assert one.name.startswith("upulse-")
