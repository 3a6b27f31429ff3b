"""A commit laid out as files that nobody changes any more."""

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.git.calls import Git
from pulse_adapters.git.faults import Unsafe
from pulse_core.model.errors import PulseError

BEGUN = ".begun-"
"""How the names of folders begin that are not whole yet, or no more."""


def export(git: Git, commit: str, folder: Path) -> None:
    """Lay out the commit in the folder, read-only and on disk; one that is there is whole already."""
    if folder.exists():
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        begun = Path(tempfile.mkdtemp(prefix=BEGUN, dir=folder.parent))
        try:
            _unpack(git, commit, begun)
            _refuse_ways_out(begun, commit)
            _seal(begun)
            os.rename(begun, folder)
        finally:
            remove(begun)
        _sync(folder.parent)
    except OSError as error:
        raise PulseError(f"{folder} can't be written: {error.strerror or error}") from error


def _unpack(git: Git, commit: str, folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        answer = git.run("archive", "--format=tar", commit, into=file)
        if answer.exit:
            raise git.failure(("archive",), answer)
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                archive.extractall(folder, filter="data")
        except tarfile.FilterError as error:
            raise Unsafe(f"the commit {commit[:12]} can't be laid out as files: {error}") from error


def _refuse_ways_out(folder: Path, commit: str) -> None:
    """Each link must lead to somewhere inside, whatever other links it passes."""
    root = folder.resolve()
    for path in _beneath(folder):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            name, target = path.relative_to(folder), os.readlink(path)
            raise Unsafe(
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


def remove(folder: Path) -> None:
    """Remove a folder that was laid out, sealed or not; it may be gone already."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=not folder.exists())
