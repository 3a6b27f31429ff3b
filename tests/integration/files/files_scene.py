"""Files to be cleaned or archived, and what became of them."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.files import archive
from pulse_adapters.files.clean import clean_roots
from pulse_adapters.files.worker import Deadline
from pulse_adapters.workers.framing import LARGEST_REPLY, Frames, encode
from tests.processes import as_worker

LATER = 4_000_000_000
"""Seconds since the epoch: nobody has touched a file of that time long ago."""

EFFECT = "0198c0de-0000-7000-8000-000000000001"


def grow(root: Path, *names: str, text: str = "rubbish") -> None:
    """Files with a little in them; what ends with a slash is a directory."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(text)


def left(root: Path) -> set[str]:
    """What is beneath a directory."""
    return {os.path.relpath(path, root) for path in sorted(root.rglob("*"))}


def cleaning_order(place: Path, *roots: str | Path, **more: Any) -> dict[str, Any]:
    """An order for `cleaning`, which takes everything that exists for old."""
    return {
        "roots": [str(root) for root in roots], "older_than_us": 0, "dry_run": False, "limit_bytes": None,
        "near": None, "known": {}, "ledger": str(place / "logs" / "cleaned.jsonl"), "effect": EFFECT,
        "home": "/nobody/home", "own": str(place / "pulse"), "seconds": 60, **more,
    }  # fmt: skip


def clean(place: Path, *roots: str | Path, **more: Any) -> Mapping[str, Any]:
    """Clean in this process."""
    return clean_roots(cleaning_order(place, *roots, **more), Deadline(60))


def ledger(place: Path) -> list[Mapping[str, Any]]:
    """What the ledger says, oldest first."""
    file = place / "logs" / "cleaned.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def archive_order(place: Path, root: Path, **more: Any) -> dict[str, Any]:
    """An order for `archive`, which takes everything that exists for old."""
    return {
        "root": str(root), "archive": str(place / "archive"), "keep_us": 0, "retain_us": 10**15, "near": None,
        "home": "/nobody/home", "own": str(place / "pulse"), "effect": EFFECT, "finish_only": False,
        "seconds": 60, **more,
    }  # fmt: skip


def put_away(place: Path, root: Path, **more: Any) -> Mapping[str, Any]:
    """Archive in this process."""
    return archive.archive_root(archive_order(place, root, **more), Deadline(60))


def archives(place: Path) -> list[Path]:
    """The archives there are, and whatever lies beside them."""
    return sorted((place / "archive").iterdir())


def program(
    name: str, order: Mapping[str, Any], *around: str, python: str = sys.executable
) -> Mapping[str, Any]:
    """The answer of a program of the room, run as a child, perhaps by another program around it."""
    argv = [*around, python, "-m", f"pulse_adapters.files.{name}"]
    done = subprocess.run(as_worker(*argv), input=encode(order), capture_output=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
    (reply,) = map(json.loads, Frames(LARGEST_REPLY).take(done.stdout))
    answer: Mapping[str, Any] = reply.get("answer", reply)
    return answer


def portrait(root: Path) -> Mapping[str, tuple[object, ...]]:
    """All that can be seen of a tree: if two are equal, nothing in between has changed it."""
    found: dict[str, tuple[object, ...]] = {}
    for place, directories, files in os.walk(os.fsencode(root)):
        for name in (b".", *directories, *files):
            path = os.path.join(place, name)
            said = os.lstat(path)
            content = ""
            if stat.S_ISREG(said.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            if stat.S_ISLNK(said.st_mode):
                content = os.fsdecode(os.readlink(path))
            found[repr(path)] = (said.st_mode, said.st_ino, said.st_nlink, said.st_size, said.st_mtime_ns,
                                 said.st_ctime_ns, said.st_uid, content)  # fmt: skip
    return found


def as_nobody(*argv: str) -> Sequence[str]:
    """A command as a user without rights."""
    return ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv)


def use_up_small_numbers(disk: Path) -> None:
    """Have later files on a tmpfs bear inode numbers that no file of another one is likely to have.

    Of an open file whose file system is not mounted any more nobody can say on which device it lies.
    """
    for number in range(3_000):
        (disk / str(number)).touch()
        (disk / str(number)).unlink()
