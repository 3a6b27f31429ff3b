"""Commits laid out as files: whole, read-only, nowhere else, and gone when nobody needs them."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from pulse_adapters.git import worker
from pulse_adapters.git.errors import GitFailed, UnsafeTree
from pulse_adapters.git.git_files import revision_folder
from pulse_adapters.git.revisions import remove_revisions
from pulse_core.model.errors import PulseError
from tests.integration.git.git_scene import FILES, edited, files, git, laid_out, made, promoted, write


def test_a_revision_is_what_its_commit_says_and_read_only(tmp_path: Path) -> None:
    repository = made(tmp_path)
    runs = repository.home / "staging" / "run me"
    write(runs, "#!/bin/sh\n")
    runs.chmod(0o755)
    commit = edited(repository, "rules/ü.py", "U = 1\n")
    write(repository.home / "staging" / "rules" / "ü.py", "U = 2\n")
    path = laid_out(repository, commit)
    assert path == repository.home / "revisions" / commit
    assert files(path) == {**FILES, "rules/ü.py": "U = 1\n", "run me": "#!/bin/sh\n"}
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in (path, *path.rglob("*"))}
    assert modes == {path.name: 0o555, "rules": 0o555, "run me": 0o555, **dict.fromkeys(
        ("engine.py", "__init__.py", "ü.py", ".gitignore"), 0o444)}  # fmt: skip


def test_laid_out_again_it_is_the_same_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commit = repository.head()
    first = laid_out(repository, commit).stat().st_ino
    assert laid_out(repository, commit).stat().st_ino == first
    assert [one.name for one in (repository.home / "revisions").iterdir()] == [commit]


def test_one_that_was_begun_by_somebody_killed_is_begun_anew(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commit = repository.head()
    write(repository.home / "revisions" / ".begun-xyz" / "engine.py", "half of")
    assert files(laid_out(repository, commit)) == FILES
    assert remove_revisions(repository.home, {commit}) == ()
    assert [one.name for one in (repository.home / "revisions").iterdir()] == [commit]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_cannot_be_removed_keeps_no_other_commit_from_being_laid_out(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commits = [repository.head(), promoted(repository, "rules/a.py"), promoted(repository, "rules/b.py")]
    paths = [laid_out(repository, commit) for commit in commits[:2]]
    for folder in (paths[0], repository.home / "revisions" / ".begun-xyz" / "rules"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__pycache__").mkdir()
        write(folder / "__pycache__" / "a.pyc", "another user's")
        os.chown(folder / "__pycache__" / "a.pyc", 12_345, 12_345)
    request = {"home": str(repository.home), "verb": "ensure", "words": [commits[2]]}
    assert Path(worker.answer(request).path).is_dir()
    assert remove_revisions(repository.home, {commits[2]}) == (commits[1],)
    assert Path(worker.answer(request).path).is_dir()


@pytest.mark.parametrize(
    ("name", "target"),
    [("out", "/etc/passwd"), ("rules/out", "../../x"), ("out", "rules/../../x"), ("a", "link/../x")],
)
def test_a_link_that_leads_outside_is_refused(tmp_path: Path, name: str, target: str) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    (staging / "link").symlink_to(".")  # with this one, `link/../x` looks as if it stayed inside
    (staging / name).symlink_to(target)
    commit = edited(repository)
    with pytest.raises(UnsafeTree, match=r"outside|absolute path"):
        laid_out(repository, commit)
    assert list((repository.home / "revisions").iterdir()) == []


@pytest.mark.parametrize("trick", ["a link and a folder of one name", "a name that leads up"])
def test_a_tree_that_no_git_would_make_writes_nothing_outside(tmp_path: Path, trick: str) -> None:
    repository, outside = made(tmp_path), tmp_path / "outside"
    outside.mkdir()

    def git(*words: str, said: bytes = b"") -> str:
        argv = ["git", "-C", str(repository.home / "engine"), *words]
        return (
            subprocess.run(argv, input=said, capture_output=True, check=True, timeout=60)
            .stdout.decode()
            .strip()
        )

    def tree(*entries: tuple[str, str, str]) -> str:
        raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
        return git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", said=raw)

    link = git("hash-object", "-w", "--stdin", said=str(outside).encode())
    folder = tree(("100644", "written", git("hash-object", "-w", "--stdin", said=b"x")))
    if trick.startswith("a link"):
        top = tree(("120000", "a", link), ("40000", "a", folder))
    else:
        top = tree(("40000", "..", folder))
    commit = git("-c", "user.name=a", "-c", "user.email=a", "commit-tree", top, "-m", "x")
    with pytest.raises(PulseError, match=r"can't be written|can't be laid out"):
        laid_out(repository, commit)
    assert list(outside.iterdir()) == list((repository.home / "revisions").iterdir()) == []
    assert not list(tmp_path.rglob("written"))


def test_a_link_that_stays_inside_is_kept(tmp_path: Path) -> None:
    repository = made(tmp_path)
    (repository.home / "staging" / "rules" / "same.py").symlink_to("../engine.py")
    path = laid_out(repository, edited(repository))
    assert (path / "rules" / "same.py").is_symlink()
    assert (path / "rules" / "same.py").read_text() == FILES["engine.py"]


def test_a_link_in_a_circle_is_kept_for_the_gates_to_judge(tmp_path: Path) -> None:
    repository = made(tmp_path)
    (repository.home / "staging" / "rules" / "circle.py").symlink_to("circle.py")
    path = laid_out(repository, edited(repository))
    assert (path / "rules" / "circle.py").is_symlink()


def test_what_is_no_commit_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    repository = made(tmp_path)
    with pytest.raises(GitFailed, match="holds no commit 0123"):
        laid_out(repository, "0123456789" * 4)
    assert not (repository.home / "revisions").exists()
    for word in ("main", "0123456", "../engine", "A" * 40):
        with pytest.raises(PulseError, match="is no whole commit hash"):
            revision_folder(repository.home, word)


def test_a_sweep_takes_what_nobody_keeps_read_only_or_not(tmp_path: Path) -> None:
    repository = made(tmp_path)
    assert remove_revisions(repository.home, set()) == ()
    commits = [repository.head(), promoted(repository, "rules/a.py"), promoted(repository, "rules/b.py")]
    for commit in commits:
        laid_out(repository, commit)
    assert remove_revisions(repository.home, {commits[1]}, age_s=60) == ()
    assert remove_revisions(repository.home, {commits[1]}) == tuple(sorted((commits[0], commits[2])))
    assert [one.name for one in (repository.home / "revisions").iterdir()] == [commits[1]]
    assert files(laid_out(repository, commits[0])) == FILES


def test_a_disk_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    repository = made(tmp_path)
    write(repository.home / "revisions", "a file in its place")
    with pytest.raises(PulseError, match="can't be written"):
        laid_out(repository, repository.head())


def test_an_export_does_not_need_the_worktrees(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commit = promoted(repository)
    shutil.rmtree(repository.home / "staging")
    os.unlink(repository.home / "engine" / "engine.py")
    assert files(laid_out(repository, commit))["engine.py"] == FILES["engine.py"]
    assert git(repository.home / "engine", "status", "--porcelain") == "D engine.py"
