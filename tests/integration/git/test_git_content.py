"""The hash that is reckoned from files is the one that git reckons, and whoever changes anything is found out."""

import os
import shutil
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pulse_adapters.git.errors import GitFailed
from pulse_adapters.git.git_files import folder_hash, is_laid_out, revision_folder, tree_of_commit
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import altered_revisions, ensure_revision, remove
from pulse_core.ports.engine import Revision
from tests.integration.git.git_scene import FILES, edited, files, git, laid_out, made, write
from tests.long_form import sampled


def varied(place: Path) -> tuple[Repository, str]:
    """A commit of all that a tree can hold."""
    repository = made(place)
    staging = repository.home / "staging"
    for name in ("a.py", "a/b.py", "a-b.py", "a0.py", "ü/ö.py", "leer", "rules/deep/er/x.py"):
        write(staging / name, f"# {name}\r\n" if name != "leer" else "")
    (staging / "a" / "b.py").chmod(0o755)
    (staging / "link").symlink_to("a/b.py")
    write(staging / ".gitattributes", "*.py text eol=crlf ident\na.py export-ignore\na0.py export-subst\n")
    return repository, edited(repository, "a0.py", "$Format:%H$ $Id$\n")


def test_it_is_what_git_says(tmp_path: Path) -> None:
    repository, commit = varied(tmp_path)
    path = laid_out(repository, commit)
    tree = git(repository.home / "engine", "rev-parse", f"{commit}^{{tree}}")
    assert folder_hash(path, commit) == tree_of_commit(repository.home, commit) == tree
    assert is_laid_out(repository.home, commit)


def test_attributes_change_nothing_of_what_is_laid_out(tmp_path: Path) -> None:
    repository, commit = varied(tmp_path)
    path = laid_out(repository, commit)
    assert (path / "a0.py").read_text() == "$Format:%H$ $Id$\n"
    for name in ("a.py", "a/b.py"):
        blob = git(repository.home / "engine", "cat-file", "blob", f"{commit}:{name}")
        assert (path / name).read_text().strip() == blob


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file": lambda path: (path / "rules" / "__init__.py").write_text("x"),
    "one more file": lambda path: (path / "rules" / "more.py").write_text(""),
    "one more folder": lambda path: (path / "rules" / "more").mkdir(),
    "a file less": lambda path: (path / "a0.py").unlink(),
    "a link": lambda path: [(path / "link").unlink(), (path / "link").symlink_to("a0.py")],
    "a link for a file": lambda path: [(path / "a0.py").unlink(), (path / "a0.py").symlink_to("a.py")],
    "a pipe for a file": lambda path: [(path / "a0.py").unlink(), os.mkfifo(path / "a0.py")],
    "a program": lambda path: (path / "a0.py").chmod(0o755),
    "compiled code": lambda path: write(path / "rules" / "__pycache__" / "x.cpython-311.pyc", "x"),
    "all of it": lambda path: [remove(path), path.mkdir()],
    "a link for all of it": lambda path: [
        shutil.copytree(path, path.parent / "same", symlinks=True), remove(path), path.symlink_to("same")
    ],
}  # fmt: skip


@pytest.mark.parametrize("change", sampled(CHANGES, 3))
def test_whatever_is_changed_it_is_made_anew_and_what_was_found_is_kept(tmp_path: Path, change: str) -> None:
    repository, commit = varied(tmp_path)
    path = laid_out(repository, commit)
    before = files(path)
    for folder in (path, path / "rules"):
        folder.chmod(0o755)
    for file in (path / "rules" / "__init__.py", path / "a0.py"):
        file.chmod(0o644)
    assert is_laid_out(repository.home, commit)
    CHANGES[change](path)
    laid = ensure_revision(repository.home, commit)
    assert laid.altered == str(repository.home / "revisions" / f".altered-{commit}")
    assert files(path) == before
    assert not path.is_symlink()
    assert altered_revisions(repository.home) == [commit]
    assert ensure_revision(repository.home, commit) == Revision(commit, str(path))
    for folder in (path, path / "rules"):
        folder.chmod(0o755)
    (path / "more").mkdir()
    assert ensure_revision(repository.home, commit).altered == laid.altered
    assert (Path(laid.altered) / "more").is_dir()


def test_one_that_was_packed_is_laid_out_and_found_again(tmp_path: Path) -> None:
    repository, commit = varied(tmp_path)
    git(repository.home / "engine", "gc", "--prune=now")
    assert tree_of_commit(repository.home, commit) is None
    made = laid_out(repository, commit).stat().st_ino
    assert ensure_revision(repository.home, commit) == Revision(
        commit, str(revision_folder(repository.home, commit))
    )
    assert revision_folder(repository.home, commit).stat().st_ino == made


def test_what_unpacks_to_very_much_is_no_commit_and_takes_no_memory(tmp_path: Path) -> None:
    commit = "a" * 40
    place = tmp_path / "engine/.git/objects" / commit[:2] / commit[2:]
    place.parent.mkdir(parents=True)
    place.write_bytes(zlib.compress(b"commit 5\0tree " + bytes(100 << 20)))
    tracemalloc.start()
    try:
        assert tree_of_commit(tmp_path, commit) is None
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_another_repository_within_is_left_out_and_the_rest_is_not_made_again_and_again(
    tmp_path: Path,
) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    git(staging, "update-index", "--add", "--cacheinfo", f"160000,{repository.head()},other")
    git(staging, "commit", "-m", "with another repository")
    commit = git(staging, "rev-parse", "HEAD")
    path = laid_out(repository, commit)
    assert files(path) == FILES
    inode = path.stat().st_ino
    assert ensure_revision(repository.home, commit) == Revision(commit, str(path))
    assert path.stat().st_ino == inode


def test_a_repository_that_was_tampered_with_is_not_believed(tmp_path: Path) -> None:
    repository, commit = varied(tmp_path)
    store = repository.home / "engine" / ".git" / "objects"
    oid = git(repository.home / "engine", "rev-parse", f"{commit}:a.py")
    file = store / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"blob 3\0bad"))
    with pytest.raises(GitFailed, match=r"damaged a.py|cat-file failed"):
        laid_out(repository, commit)
    other = repository.head()
    head = store / commit[:2] / commit[2:]
    head.chmod(0o644)
    head.write_bytes((store / other[:2] / other[2:]).read_bytes())
    assert tree_of_commit(repository.home, commit) is None
