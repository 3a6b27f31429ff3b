"""A plain file is opened as such, and what has taken its name is not: neither followed, nor waited for."""

import ast
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pulse_adapters.host.outputs import open_log_output
from pulse_adapters.workers import plain_file
from pulse_adapters.workers.plain_file import (
    UNFINISHED,
    end_of_plain,
    open_plain,
    read_plain,
    replace_plain,
    replacing,
)
from tests.dead_mount import dead
from tests.special_files import bound_socket

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(120)


OTHERS: dict[str, Callable[[Path], object]] = {
    "a link": lambda path: path.symlink_to("/etc/hostname"),
    "a pipe": os.mkfifo,
    "a socket": bound_socket,
    "a folder": Path.mkdir,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND])
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, what: str, flags: int) -> None:
    OTHERS[what](tmp_path / "one")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="one"):
        open_plain(tmp_path / "one", flags)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_link_is_followed_where_that_is_meant_but_not_to_a_device(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x" * 10)
    (tmp_path / "one").symlink_to("real")
    assert read_plain(tmp_path / "one", 10, follow=True) == b"x" * 10
    (tmp_path / "two").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="it is no plain file"):
        read_plain(tmp_path / "two", 10, follow=True)


def test_no_more_is_read_than_was_meant(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 11)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_plain("one", 11, within=folder) == b"x" * 11
        with pytest.raises(OSError, match="it has more than 10 bytes"):
            read_plain("one", 10, within=folder)
    finally:
        os.close(folder)


def test_reading_writes_nothing_to_the_disk(tmp_path: Path) -> None:
    """Not the time of the last read either: who reads would wait for a disk that hangs."""
    (tmp_path / "one").write_bytes(b"x")
    os.utime(tmp_path / "one", (1, 2))
    assert read_plain(tmp_path / "one", 1) == b"x"
    assert (tmp_path / "one").stat().st_atime == 1


def test_a_file_of_another_user_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, flags: int, mode: int, *, dir_fd: int | None) -> int:
        if flags & os.O_NOATIME:
            raise PermissionError
        return opened(path, flags, mode, dir_fd=dir_fd)

    (tmp_path / "one").write_bytes(b"x")
    opened = os.open
    monkeypatch.setattr(os, "open", refused)
    assert read_plain(tmp_path / "one", 1) == b"x"


def test_it_is_made_where_that_is_asked_for_and_private(tmp_path: Path) -> None:
    os.close(open_plain(tmp_path / "one", os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600


KNOWN = {
    "pulse_adapters/files/in_use.py": "asks for a lease, and compares the inode",
    "pulse_adapters/host/outputs.py": "appends as a child's output; and truncates",
    "pulse_adapters/host/system_watcher.py": "a trigger of the kernel, and no plain file",
    "pulse_adapters/ipc/lock.py": "another error for what is no plain file",
    "pulse_adapters/sandbox/tool_sandbox.py": "a pipe of ours",
    "pulse_adapters/sqlite/connect.py": "the log's own files",
    "pulse_adapters/sqlite/log_files.py": "the log's own files",
    "pulse_adapters/sqlite/wal_watch.py": "the log's own files",
    "pulse_adapters/workers/inotify.py": "inotify",
    "pulse_adapters/workers/plain_file.py": "here",
    "pulse_adapters/workers/untrusted_paths.py": "folders, too",
    "pulse_adapters/host/daemon_log_file.py": "as the logging module opens it; a pipe that nobody reads is refused",
}


def test_nobody_else_opens_files_so_by_itself() -> None:
    found = set[str]()
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for file in (ROOT / package).rglob("*.py"):
            if re.search(r"\.O_NONBLOCK\b", file.read_text()):
                found.add(str(file.relative_to(ROOT)))
    assert found == KNOWN.keys()


WRITERS = {
    "pulse_adapters/host/daemon_log_file.py": "in the home, as its owner",
    "pulse_adapters/metrics/process.py": "the kernel's",
    "pulse_adapters/workers/priority.py": "the same",
    "pulse_core/app/demo.py": "a home that was made for it",
    "upulse_cli/wiring/demo.py": "the same",
}


def makes_files(function: ast.AST) -> bool:
    """Whether it makes or empties files by their names, whatever has those: a link, a pipe."""
    nodes = list(ast.walk(function))
    names = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    called = {one.func.id for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    opened = (one for one in nodes if isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "open")
    modes = {one.value for call in opened for one in call.args[:1] if isinstance(one, ast.Constant)}
    is_open = "O_CREAT" in names and not {"O_EXCL", "O_NOFOLLOW"} & names and "open_plain" not in called
    return bool(names & {"write_text", "write_bytes"} or modes & {"w", "wb", "a", "ab"} or is_open)


def test_nobody_else_makes_files_where_a_link_may_lie() -> None:
    found = set[str]()
    for package in ("pulse_core", "pulse_adapters", "upulse_cli"):
        for file in (ROOT / package).rglob("*.py"):
            if not re.search(r"write_text|write_bytes|O_CREAT|open\(", text := file.read_text()):
                continue
            functions = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef))
            if any(makes_files(one) for one in functions):
                found.add(str(file.relative_to(ROOT)))
    assert found == WRITERS.keys()


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_plain(path, b"old")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"old", 0o600)
    replace_plain(path, b"new", 0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    with pytest.raises(IsADirectoryError):
        replace_plain(tmp_path, b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_whole_has_no_name_so_that_a_kill_leaves_nothing(tmp_path: Path) -> None:
    path, found = tmp_path / "file", list[list[str]]()
    for text in (b"old", b"new"):
        with replacing(path) as file:
            file.write(text)
            file.flush()
            found.append([one.name for one in tmp_path.iterdir()])
        assert path.read_bytes() == text
    assert found == [[], ["file"]]


@pytest.mark.parametrize("has_unnamed", [True, False])
def test_a_file_that_is_there_is_kept_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_unnamed: bool
) -> None:
    if not has_unnamed:  # as on NFS
        monkeypatch.setattr(plain_file, "_open_unnamed", lambda *_: None)
    path = tmp_path / "file"
    replace_plain(path, b"old", keep=True)
    with pytest.raises(FileExistsError) as refused:
        replace_plain(path, b"new", keep=True)
    assert path.read_bytes() == b"old"
    replace_plain(path, b"new", 0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    if has_unnamed:
        assert str(refused.value) == f"[Errno 17] File exists: '{path}'"


def test_what_a_kill_can_leave_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_file, "_open_unnamed", lambda *_: None)
    with replacing(tmp_path / "file"):
        (found,) = tmp_path.iterdir()
    assert fnmatch(found.name, UNFINISHED)


def test_a_file_that_the_disk_does_not_take_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space") as refused:
        write_to_full_disk(path)
    assert refused.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read", [read_plain, end_of_plain])
def test_a_file_that_cannot_be_read_is_named(read: Callable[[str, int], object]) -> None:
    with pytest.raises(OSError, match="/proc/self/mem") as refused:  # there is nothing at its begin
        read("/proc/self/mem", 10)
    assert refused.value.filename == "/proc/self/mem"


def test_a_file_that_cannot_be_made_is_named_and_not_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "file"
    with pytest.raises(FileNotFoundError) as refused:
        replace_plain(path, b"new")
    assert refused.value.filename == str(path)


def write_to_full_disk(path: Path) -> None:
    with replacing(path) as file:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)
        file.write(b"x")


def test_the_end_of_a_file_is_read_as_text_whatever_it_holds(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"begin\n" + b"\xff" + b"end")
    assert [end_of_plain(one, most) for most in (0, 4, 100)] == ["", "\ufffdend", "begin\n\ufffdend"]
    (link := tmp_path / "link").symlink_to(one)
    with pytest.raises(OSError, match="Too many levels"):
        end_of_plain(link, 4)
    assert end_of_plain(link, 3, follow=True) == "end"


OPENS_AND_FAILS = """
import os, struct
FOUND = struct.pack("<4Q2I6Q10I", 2, *14 * [0], 0o100600, 1, *5 * [0])
while True:
    code, number = struct.unpack_from("<IQ", os.read(0, 1 << 17), 4)
    said = {1: FOUND, 14: bytes(16)}.get(code)  # a lookup, and an open: all else fails
    if code not in (2, 42):  # to forget needs no answer
        os.write(0, struct.pack("<IiQ", 16 + len(said or b""), 0 if said else -5, number) + (said or b""))
"""


@pytest.mark.parametrize("open_", [open_plain, open_log_output])
def test_a_file_of_a_file_system_that_fails_once_it_is_open_is_closed(
    tmp_path: Path, open_: Callable[[Path], object]
) -> None:
    with dead(tmp_path, reads=True, reader=(sys.executable, "-c", OPENS_AND_FAILS)):
        place = os.path.realpath(tmp_path)
        with suppress(OSError):
            open_(tmp_path / "one")
        held = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
        assert not [one for one in held if one.startswith(f"{place}/")]
