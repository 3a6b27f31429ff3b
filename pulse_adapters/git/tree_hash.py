"""Computes git's tree hash of a folder, without running git and without trusting the repository's files."""

import hashlib
import os
import stat
import zlib
from pathlib import Path

_LINK, _FILE, _PROGRAM, _FOLDER = b"120000", b"100644", b"100755", b"40000"


def holds_commit(folder: Path, commit: str, objects: Path) -> bool:
    """Whether a folder holds exactly a commit's files; False, too, if that can't be determined here.

    objects: where the repository keeps its objects. One that was packed can't be read here.
    """
    return (tree := tree_of_commit(commit, objects)) is not None and tree == folder_hash(folder, commit)


def tree_of_commit(commit: str, objects: Path) -> str | None:
    """The hash of a commit's tree, read from what hashes to the commit; None if there is no such file."""
    try:
        raw = zlib.decompress((objects / commit[:2] / commit[2:]).read_bytes())
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
        return name, _LINK, name, _blob(os.fsencode(os.readlink(entry.path)), like)
    if entry.is_dir():
        return name + b"/", _FOLDER, name, _tree(entry.path, like)
    if not entry.is_file():
        raise ValueError(f"{entry.path} is no file")
    mode = _PROGRAM if entry.stat().st_mode & stat.S_IXUSR else _FILE
    return name, mode, name, _blob(Path(entry.path).read_bytes(), like)


def blob_hash(content: bytes, like: str) -> str:
    """The hash of a file's content, of the kind that this one is."""
    return _blob(content, like).hex()


def _blob(content: bytes, like: str) -> bytes:
    return _hash(like, b"blob %d\0" % len(content) + content)


def _hash(like: str, what: bytes) -> bytes:
    return (hashlib.sha1(what, usedforsecurity=False) if len(like) == 40 else hashlib.sha256(what)).digest()
