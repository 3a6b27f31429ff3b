"""The commits that are laid out to be run, each in a folder of its own name that nobody changes any more."""

import errno
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from pulse_adapters.git.errors import GitFailed, UnsafeTree
from pulse_adapters.git.git_files import COMMIT, DEEPEST, blob_hash, folder_hash, is_laid_out, revision_folder
from pulse_adapters.git.locks import repository_lock
from pulse_adapters.workers.untrusted_paths import remove_tree
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import Revision

if TYPE_CHECKING:
    from pulse_adapters.git.git_command import Git

ALTERED, BEGUN = ".altered-", ".begun-"
"""How the names of folders begin that were not any more what had been laid out there, or that are not whole."""
_LINK, _PROGRAM = "120000", "100755"


def altered_revisions(home: Path) -> Sequence[str]:
    """The commits whose files somebody had changed after they were laid out; what they were is still there."""
    return sorted(one.name.removeprefix(ALTERED) for one in (home / "revisions").glob(f"{ALTERED}*"))


def ensure_revision(home: Path, commit: str) -> Revision:
    """The commit's folder, laid out now if it was not before, or is not any more what was committed."""
    folder, aside = revision_folder(home, commit), None
    if not is_laid_out(home, commit):
        from pulse_adapters.git.git_command import Git  # slow to import, and mostly the commit lies there

        with repository_lock(home):
            aside = export(Git(home), commit, folder)
    return Revision(commit, str(folder), str(aside or ""))


def remove_revisions(home: Path, keep: Collection[str], age_s: float = 0.0) -> tuple[str, ...]:
    """Remove all but these commits and those laid out so lately, and what was left half-way; the commits that went.

    What can't be removed, as it holds what somebody else has put there, stays: it must keep nobody from the next commit.
    """
    revisions = home / "revisions"
    if not revisions.is_dir():
        return ()
    gone = list[str]()
    with repository_lock(home):
        for left in revisions.glob(f"{BEGUN}*"):
            remove_tree(left)
        old = time.time() - age_s
        for one in [*revisions.iterdir()]:
            if COMMIT.fullmatch(one.name) and one.name not in keep and one.lstat().st_mtime <= old:
                with suppress(OSError):
                    # Renamed first: half of it must not pass for all. What lies there already can't be removed either.
                    remove(one.rename(revisions / f"{BEGUN}{one.name}"))
                    gone.append(one.name)
    return tuple(sorted(gone))


def remove(folder: Path) -> None:
    """Remove a folder that was laid out, sealed or not, or what was put in its place; it may be gone already."""
    if not remove_tree(folder):
        raise OSError(errno.ENOTEMPTY, "it can't be removed", str(folder))


def export(git: "Git", commit: str, folder: Path) -> Path | None:
    """Lay out the commit in the folder, read-only and on disk, unless it is there as it was committed.

    If it is there otherwise it is made anew; where what was there lies now, else None.
    """
    tree = git.ask("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
    if tree is None:
        raise GitFailed(f"{git.folder} holds no commit {commit}")
    if folder_hash(folder, commit) == tree:
        return None
    aside = None
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(prefix=BEGUN, dir=folder.parent))
        try:
            _unpack(git, commit, begun)
            _refuse_ways_out(begun, commit)
            _seal(begun)
            if os.path.lexists(folder):
                if folder_hash(folder, commit) == folder_hash(begun, commit):
                    return None  # its tree's hash can't be told from files
                aside = folder.parent / f"{ALTERED}{commit}"
                if os.path.lexists(aside):
                    remove(aside)
                os.rename(folder, aside)
            os.rename(begun, folder)
        finally:
            remove(begun)
        _sync(folder.parent)
    except OSError as error:
        raise PulseError(f"{folder} can't be written: {error.strerror or error}") from error
    return aside


def _unpack(git: "Git", commit: str, folder: Path) -> None:
    """Write each file as it was committed, and the links last, so that none of them is on the way of another name.

    `git archive` would do what the commit's own attributes say, and leave out files or change them.
    """
    entries = []
    for line in filter(None, git("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")):
        head, _, name = line.partition("\t")
        mode, kind, oid = head.split()
        if {"", ".", ".."} & {*name.split("/")}:
            raise UnsafeTree(
                f"the commit {commit[:12]} can't be laid out as files: {name!r} is no name of one"
            )
        if name.count("/") > DEEPEST:
            raise UnsafeTree(
                f"the commit {commit[:12]} can't be laid out: {name[:60]!r}… is more than {DEEPEST} folders deep"
            )
        if kind == "blob":  # else it is another repository's commit
            entries.append((mode == _LINK, name, mode, oid))
    entries.sort()
    answer = git.run("cat-file", "--batch", told="".join(f"{oid}\n" for *_, oid in entries))
    if answer.exit:
        raise git.failure(("cat-file",), answer)
    told = BytesIO(os.fsencode(answer.text))
    for is_link, name, mode, oid in entries:
        words = told.readline().split()
        if words[:2] != [oid.encode(), b"blob"]:
            raise GitFailed(f"{git.folder} lacks the file {name} ({oid[:12]}); look with: git fsck")
        content = told.read(int(words[2]) + 1)[:-1]
        if blob_hash(content, oid).hex() != oid:
            raise GitFailed(f"{git.folder} holds a damaged {name} ({oid[:12]}); look with: git fsck")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_link:
            os.symlink(content, os.fsencode(path))
            continue
        with path.open("xb") as file:
            file.write(content)
        path.chmod(0o700 if mode == _PROGRAM else 0o600)


def _refuse_ways_out(folder: Path, commit: str) -> None:
    """Each link must lead to somewhere inside, whatever other links it passes."""
    root = Path(os.path.realpath(folder))
    for path in _beneath(folder):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            name, target = path.relative_to(folder), os.readlink(path)
            raise UnsafeTree(
                f"the commit {commit[:12]} holds the link {name} to {target}, which leads outside; remove it"
            )


def _seal(folder: Path) -> None:
    """Take away the right to write, and see everything on disk."""
    for path in (*_beneath(folder), folder):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            _sync(path)
            path.chmod(0o555 if runs else 0o444)


def _beneath(folder: Path) -> Iterator[Path]:
    """Everything in the folder, what is deeper first; links are not followed."""
    for place, folders, files in os.walk(folder, topdown=False):
        yield from (Path(place, name) for name in (*files, *folders))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
