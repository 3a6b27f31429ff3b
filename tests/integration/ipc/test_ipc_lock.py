"""One writer a home: the lock is held by one, told to all, and dies with its holder."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from pulse_adapters.git.locks import repository_lock
from pulse_adapters.ipc import lock
from pulse_adapters.ipc.lock import HomeLock, LockUnusable, holder, own_pid
from pulse_core.model.errors import HomeBusy, NoHome
from pulse_core.model.home_status import LockHolder
from tests.processes import child_of_test
from tests.read_only_mount import read_only

HOLD = (
    "import sys, pathlib; from pulse_adapters.ipc.lock import HomeLock\n"
    "with HomeLock(pathlib.Path(sys.argv[1]), '9'): print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run" / "lock"


def test_a_second_holder_learns_the_pid_of_the_first(path: Path) -> None:
    with HomeLock(path, "1"), pytest.raises(HomeBusy, match=f"held by process {os.getpid()}") as caught:
        HomeLock(path, "1").__enter__()
    assert caught.value.pid == os.getpid()


def test_a_home_without_its_run_folder_is_held_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "run" / "lock"
    with pytest.raises(NoHome):
        HomeLock(path, "1").__enter__()
    (tmp_path / "events.db").touch()
    with HomeLock(path, "1"):
        assert path.exists()


def test_a_killed_holder_leaves_the_lock_free_and_its_words_readable(path: Path) -> None:
    with child_of_test(
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        found = holder(path)
        assert found
        assert (found.pid, found.version) == (other.pid, "9")
        with pytest.raises(HomeBusy):
            HomeLock(path, "1").__enter__()
        other.kill()
    assert holder(path) is None
    with HomeLock(path, "1"):
        assert found.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        now = holder(path)
    assert now
    assert (now.pid, now.since_at >= found.since_at) == (os.getpid(), True)


def test_on_a_read_only_file_system_one_holds_it_who_wants_that_and_it_is_told_who(path: Path) -> None:
    with HomeLock(path, "1"):
        pass
    with read_only(path.parent) as mend:
        with pytest.raises(LockUnusable, match="Read-only file system"):
            HomeLock(path, "1").__enter__()
        with HomeLock(path, "2", may_be_read_only=True) as lock:
            held = holder(path)
            assert held
            assert (held.pid, held.version) == (os.getpid(), "")  # the file says who held it before
            with pytest.raises(HomeBusy):
                HomeLock(path, "3", may_be_read_only=True).__enter__()
            mend()
            with pytest.raises(HomeBusy):
                HomeLock(path, "3").__enter__()
            lock.keep()
            held = holder(path)
            assert held
            assert (held.pid, held.version) == (os.getpid(), "2")
            with pytest.raises(HomeBusy):
                HomeLock(path, "3").__enter__()
        assert holder(path) is None


@pytest.mark.parametrize("refusal", [errno.EDQUOT, errno.EIO])
def test_on_a_disk_where_it_can_not_even_be_written_over_one_holds_it_who_wants_that(
    path: Path, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    with HomeLock(path, "1"):
        pass
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse)
        full.setattr(os, "write", refuse)
        with pytest.raises(LockUnusable, match=os.strerror(refusal)):
            HomeLock(path, "1").__enter__()
        lock = HomeLock(path, "2", may_be_read_only=True)
        lock.__enter__()
        held = holder(path)
        assert held
        assert held.pid == os.getpid()
        with pytest.raises(HomeBusy):
            HomeLock(path, "3", may_be_read_only=True).__enter__()
    lock.keep()
    held = holder(path)
    assert held
    assert (held.pid, held.version) == (os.getpid(), "2")
    lock.__exit__()
    assert holder(path) is None


def test_on_a_disk_that_answers_an_opening_for_writing_with_errors_one_holds_it_who_wants_that(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(name: Path, flags: int, *mode: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(name, flags, *mode)

    with HomeLock(path, "1"):
        pass
    with monkeypatch.context() as failing:
        failing.setattr(os, "open", refuse)
        with HomeLock(path, "2", may_be_read_only=True), pytest.raises(HomeBusy):
            HomeLock(path, "3", may_be_read_only=True).__enter__()
    assert holder(path) is None


def test_who_holds_it_is_known_without_the_folder_that_it_lies_in_and_makes_that_again(path: Path) -> None:
    beside = path.with_name("shadow")
    with HomeLock(path, "1") as lock, HomeLock(beside, "1"), repository_lock(path.parent.parent, wait=0.0):
        shutil.rmtree(path.parent)
        held = holder(path)
        assert held
        assert held.pid == os.getpid()
        assert holder(beside) is None
        lock.keep()
        assert path.with_name("pid").read_text() == f"{os.getpid()}\n"
        held = holder(path)
        assert held
        assert held.version == "1"
    shutil.rmtree(path.parent)
    assert holder(path) is None


def test_nonsense_counts_as_nobody(path: Path) -> None:
    path.write_text('{"pid": 5')
    assert holder(path) is None
    with HomeLock(path, "1"):
        assert set(json.loads(path.read_text())) == {"pid", "boot", "since_at", "version"}


def test_no_file_means_no_holder_and_asking_makes_none(path: Path) -> None:
    assert holder(path) is None
    assert not path.exists()


def test_of_a_lock_that_nobody_can_reach_nobody_is_said_to_hold_it_or_not(path: Path) -> None:
    path.parent.rmdir()
    path.parent.symlink_to(path.parent.name)
    with pytest.raises(LockUnusable, match="nobody can tell whether a daemon runs"):
        holder(path)


def test_what_lies_in_the_place_of_the_lock_s_folder_is_named_with_what_to_do(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()
    (path.parent.parent / "events.db").touch()
    words = f": {path.parent} is no directory; move it away$"
    with pytest.raises(LockUnusable, match=words):
        holder(path)
    with pytest.raises(LockUnusable, match=words):
        HomeLock(path, "1").__enter__()


def test_a_child_does_not_inherit_the_lock(path: Path) -> None:
    with HomeLock(path, "1"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert holder(path) is None
    finally:
        child.kill()
        child.wait(timeout=60)


def test_who_waits_gets_the_lock_when_the_holder_leaves(path: Path) -> None:
    first = HomeLock(path, "1")
    first.__enter__()
    leaving = threading.Timer(0.05, first.__exit__, (None, None, None))
    leaving.start()
    with HomeLock(path, "2", wait=20.0):
        assert (found := holder(path))
        assert found.version == "2"
    leaving.join(30)


def test_many_at_once_hold_it_one_after_another_and_nobody_reads_half(path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []
    over = threading.Event()

    def hold() -> None:
        for _ in range(20):
            with HomeLock(path, "1", wait=60.0):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    def ask() -> None:
        while not over.is_set():
            if path.exists() and (words := path.read_bytes()):
                json.loads(words)
            if found := holder(path):
                assert found.pid == os.getpid()

    asking = threading.Thread(target=ask)
    holding = [threading.Thread(target=hold) for _ in range(4)]
    asking.start()
    for thread in holding:
        thread.start()
    for thread in holding:
        thread.join(30)
    over.set()
    asking.join(30)
    assert (len(most), max(most)) == (80, 1)


def test_who_takes_it_at_this_moment_is_told_by_its_words(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = lock._holder_of_folder
    with ExitStack() as held:

        def taken_first(home: Path) -> LockHolder | None:
            monkeypatch.undo()
            held.enter_context(HomeLock(path, "1"))  # when its file was already looked for
            return asked(home)

        monkeypatch.setattr(lock, "_holder_of_folder", taken_first)
        found = holder(path)
        assert found
        assert (found.pid, found.version) == (os.getpid(), "1")


def test_where_there_is_no_home_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoHome, match="upulse init"):
        HomeLock(tmp_path / "home" / "run" / "lock", "1").__enter__()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").mkdir()
    with pytest.raises(LockUnusable, match="Is a directory"):
        HomeLock(tmp_path / "run" / "lock", "1").__enter__()


def test_links_that_another_user_put_there_lead_nobody_elsewhere(path: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    path.with_name("lock.new").symlink_to(tmp_path / "precious")
    with HomeLock(path, "1"):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    path.unlink()
    path.symlink_to(tmp_path / "new")
    with pytest.raises(LockUnusable, match="can't be locked"):
        HomeLock(path, "1").__enter__()
    with pytest.raises(LockUnusable, match="can't be opened"):  # as a start is refused for it
        holder(path)
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "new").exists()


@pytest.mark.timeout(120)
def test_a_pipe_in_the_place_of_the_lock_is_refused_and_stops_nobody(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(LockUnusable, match="is no plain file; remove it"):
        holder(path)
    with pytest.raises(LockUnusable, match="is no plain file; remove it"):
        HomeLock(path, "1").__enter__()


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", ["lock", "the folder of the lock"])
@pytest.mark.parametrize("kind", IN_ITS_PLACE)
def test_what_takes_the_place_of_a_held_lock_is_said_and_the_name_is_taken_again_once_it_is_gone(
    path: Path, kind: str, what: str
) -> None:
    place = path if what == "lock" else path.parent
    if (what, kind) == ("the folder of the lock", "a folder"):
        pytest.skip("a folder may be there")
    with HomeLock(path, "1") as lock:
        place.rename(path.parent.with_name("moved"))
        IN_ITS_PLACE[kind](place)
        for _ in range(2):
            with pytest.raises(LockUnusable, match="run/lock"):
                lock.keep()
        place.rename(path.parent.with_name("gone"))
        lock.keep()
        assert (found := holder(path))
        assert found.pid == os.getpid()
    assert holder(path) is None


def test_who_holds_a_home_that_was_moved_takes_none_that_is_made_in_its_place(tmp_path: Path) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    (home / "run").mkdir(parents=True)
    with HomeLock(home / "run" / "lock", "1") as lock, own_pid(home / "run" / "pid"):
        home.rename(moved)
        with HomeLock(make_run(home) / "lock", "2") as other, own_pid(home / "run" / "pid"):
            lock.keep()
            other.keep()
            for place in (home, moved):
                assert (found := holder(place / "run" / "lock"))
                assert found.version == {home: "2", moved: "1"}[place]
        assert holder(home / "run" / "lock") is None
        lock.keep()
        assert holder(home / "run" / "lock") is None
        (home / "run" / "pid").write_text("of another\n")
        shutil.rmtree(moved)  # now it was deleted, and who has the place of it would guard the same
        lock.keep()
        assert (found := holder(home / "run" / "lock"))
        assert found.version == "1"
        (home / "run" / "pid").write_text("of another\n")
    assert (home / "run" / "pid").read_text() == "of another\n"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.write_bytes(b"\xff")])
def test_what_takes_the_place_of_the_pid_is_left_and_stops_nobody(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    with own_pid(path):
        path.unlink()
        make(path)
    assert path.exists()
    path.unlink() if not path.is_dir() else path.rmdir()
    with own_pid(path):
        assert path.read_text() == f"{os.getpid()}\n"
    assert not path.exists()


def make_run(home: Path) -> Path:
    (home / "run").mkdir(parents=True)
    return home / "run"
