"""Reads git's files and those of revisions without running git, which is slow, and without trusting the repository."""

import hashlib
import os
import re
import stat
import zlib
from pathlib import Path

from pulse_adapters.workers.file_systems import answer_in_time
from pulse_adapters.workers.plain_file import read_plain
from pulse_core.model.errors import PulseError
from pulse_core.model.shortages import shortage

DEEPEST = 90
"""Folders that a file of the engine may lie in, each in the one before; backups hold a few more."""
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
LARGEST = 256 * 2**20
"""Bytes of a file that is read here: what a commit may hold."""
LARGEST_COMMIT = 1 << 20
"""Bytes of a commit that is read here, packed and unpacked: what claims to be one may unpack to a thousand times as much."""
_MAIN = "refs/heads/main"
_LINK, _FILE, _PROGRAM, _FOLDER = b"120000", b"100644", b"100755", b"40000"


def read_main(home: Path) -> str:
    """The commit of main; empty if the files don't tell it, or can't be opened just now."""
    try:
        return _commit_of(home / "engine" / ".git", _MAIN)
    except OSError:
        return ""


def _commit_of(folder: Path, branch: str) -> str:
    """The commit of a branch, by its full name (`refs/…`); empty if the files don't tell it.

    Raises OSError where something is lacking to open them, which says nothing about the branch.
    """
    if not branch.startswith("refs/") or ".." in branch:
        return ""
    for file in (folder / branch, folder / "packed-refs"):
        try:
            lines = read_plain(file, LARGEST).decode(errors="replace").splitlines()
        except (OSError, ValueError) as error:
            if shortage(error):
                raise
            continue
        if file.name == "packed-refs":
            lines = [line.split(" ")[0] for line in lines if line.endswith(f" {branch}")]
        return lines[0] if lines and COMMIT.fullmatch(lines[0]) else ""
    return ""


def has_repository(home: Path) -> bool:
    """Whether the home has a repository for the user's rules. Raises PulseError if its file system can't tell in time."""
    folder = home / "engine" / ".git"
    try:
        return answer_in_time(str(folder), folder.exists)
    except OSError as error:
        raise PulseError(f"{folder} can't be looked at: {error}") from error


def repository_fault(home: Path) -> str:
    """What can be seen to be wrong with the repository without running git; empty if nothing can.

    Raises OSError where something is lacking to look at it.
    """
    folder = home / "engine" / ".git"
    if not folder.exists():
        return f"{folder} is gone"
    if not _commit_of(folder, _MAIN):
        return f"{folder} does not say which commit main is"
    try:
        head = read_plain(folder / "HEAD", LARGEST).decode().rstrip(" \t\r\n")
    except (OSError, ValueError) as error:
        if shortage(error):
            raise
        return f"{folder}/HEAD can't be read ({error})"
    branch = head.removeprefix("ref: ")
    if not COMMIT.fullmatch(_commit_of(folder, branch) if branch != head else head):
        return f"{folder}/HEAD names no branch that is there, and no commit"
    if not (folder / "objects").is_dir():
        return f"{folder}/objects is gone"
    return ""


def revision_folder(home: Path, commit: str) -> Path:
    """Where a commit is laid out to be run, there or not; takes the whole hash."""
    if not COMMIT.fullmatch(commit):
        raise PulseError(f"{commit!r} is no whole commit hash")
    return home / "revisions" / commit


def is_laid_out(home: Path, commit: str) -> bool:
    """Whether the folder of a commit holds exactly its files; False, too, if that can't be determined here."""
    tree = tree_of_commit(home, commit)
    return tree is not None and tree == folder_hash(revision_folder(home, commit), commit)


def tree_of_commit(home: Path, commit: str) -> str | None:
    """The hash of a commit's tree, read from what hashes to the commit; None if there is no such file.

    A commit that was packed, or is larger than any that Pulse makes, can't be read here.
    """
    try:
        packed = read_plain(home / "engine/.git/objects" / commit[:2] / commit[2:], LARGEST_COMMIT)
        raw = zlib.decompressobj().decompress(packed, LARGEST_COMMIT)
    except (OSError, zlib.error):
        return None
    head, _, body = raw.partition(b"\0")
    first = body.split(b"\n", 1)[0]
    is_whole = head.startswith(b"commit ") and _hash(commit, raw).hex() == commit
    return first.removeprefix(b"tree ").decode("ascii", "replace") if is_whole else None


def folder_hash(folder: Path, commit: str) -> str | None:
    """The hash of a folder as a tree, of the kind that this commit's is; None for what no tree can hold."""
    try:
        return None if folder.is_symlink() else _tree(os.fspath(folder), commit).hex()
    except (OSError, ValueError, RecursionError):
        return None


def _tree(folder: str, like: str) -> bytes:
    with os.scandir(folder) as entries:
        found = [_entry(entry, like) for entry in entries]
    body = b"".join(mode + b" " + name + b"\0" + oid for _, mode, name, oid in sorted(found))
    return _hash(like, b"tree %d\0" % len(body) + body)


def _entry(entry: "os.DirEntry[str]", like: str) -> tuple[bytes, bytes, bytes, bytes]:
    """By what it is sorted, its mode, its name, and its hash."""
    name = os.fsencode(entry.name)
    if entry.is_symlink():
        return name, _LINK, name, blob_hash(os.fsencode(os.readlink(entry.path)), like)
    if entry.is_dir():
        return name + b"/", _FOLDER, name, _tree(entry.path, like)
    if not entry.is_file():
        raise ValueError(f"{entry.path} is no file")
    mode = _PROGRAM if entry.stat().st_mode & stat.S_IXUSR else _FILE
    return name, mode, name, blob_hash(read_plain(entry.path, LARGEST), like)


def blob_hash(content: bytes, like: str) -> bytes:
    """The hash of a file's content, of the kind that this one is."""
    return _hash(like, b"blob %d\0" % len(content) + content)


def _hash(like: str, what: bytes) -> bytes:
    return (hashlib.sha1(what, usedforsecurity=False) if len(like) == 40 else hashlib.sha256(what)).digest()
