"""Archiving on real files: nothing is deleted that does not stand in an archive, byte for byte."""

import os
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_adapters.files import archive, tarball
from pulse_adapters.files.in_use import FilesInUse
from pulse_adapters.files.safe_directory import open_directory
from pulse_adapters.files.sessions import SessionReader, delete_session
from pulse_adapters.files.worker import Deadline, OrderRefused
from pulse_adapters.workers.framing import encode
from tests.engine_user import open_folder
from tests.integration.files.files_scene import (
    LATER,
    archive_order,
    archives,
    as_nobody,
    grow,
    left,
    portrait,
    program,
    put_away,
    use_up_small_numbers,
)
from tests.long_form import sample, sampled
from tests.processes import as_worker, child_of_test
from tests.small_disk import small_disk

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and be somebody else")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "sessions"
    path.mkdir()
    return path


def unpacked(file: Path, where: Path) -> Path:
    """What comes out of an archive with the ordinary tool."""
    where.mkdir(exist_ok=True)
    subprocess.run(["tar", "--extract", "--gzip", "--preserve-permissions", "--file", file, "--directory", where],
                   check=True, timeout=60)  # fmt: skip
    return where


def contents(root: Path) -> Mapping[str, object]:
    """What a tree holds: names, types, modes, times, bytes; of links where they lead."""
    found: dict[str, object] = {}
    for path, said in portrait(root).items():
        mode, _, _, size, mtime, _, owner, content = said
        assert isinstance(mode, int)
        time = None if stat.S_ISLNK(mode) else mtime
        found[path.replace(str(root), "")] = (
            mode,
            None if stat.S_ISDIR(mode) else size,
            time,
            owner,
            content,
        )
    del found["b'/.'"]
    return found


# What is archived


def test_old_sessions_go_into_an_archive_that_the_ordinary_tool_unpacks(root: Path, tmp_path: Path) -> None:
    grow(root, "one/log", "one/empty/", "one/deep/er/log", "two.jsonl")
    (root / "one" / "link").symlink_to("../../nowhere")
    (root / "one" / "log").chmod(0o640)
    os.utime(root / "two.jsonl", ns=(1, 1_234_567_890_123_456_789))
    before = contents(root)
    told = put_away(tmp_path, root)
    assert left(root) == set()
    assert (told["sessions"], told["left"], told["finished"]) == (2, {}, True)
    (file,) = archives(tmp_path)
    assert [file.name] == told["archives"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert contents(unpacked(file, tmp_path / "out")) == before


@pytest.mark.parametrize(
    "name", sampled([b"two\nlines", b"\xff\xfe", b"\xe2\x80\xa8", b"a" * 255, b"-rf", b" "], 3)
)
def test_no_name_is_too_odd(root: Path, tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(root), name)
    os.mkdir(path)
    os.symlink(name, os.path.join(path, b"link"))
    with open(os.path.join(path, name), "wb") as file:
        file.write(name)
    before = contents(root)
    assert put_away(tmp_path, root)["sessions"] == 1
    assert contents(unpacked(archives(tmp_path)[0], tmp_path / "out")) == before


def test_nothing_to_archive_makes_no_archive(root: Path, tmp_path: Path) -> None:
    assert put_away(tmp_path, root)["sessions"] == 0
    assert archives(tmp_path) == []


def test_many_and_large_sessions_are_archived_a_few_at_a_time(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "BATCH_BYTES", 1_000)
    for number in range(8):
        grow(root, f"{number}", text="x" * 300)
    grow(root, "large", text="x" * 5_000)
    told = put_away(tmp_path, root)
    assert (told["sessions"], len(told["archives"]), len(archives(tmp_path))) == (9, 4, 4)
    with tarfile.open(archives(tmp_path)[-1]) as last:
        assert last.getnames() == ["large"]


def test_no_file_is_left_open(root: Path, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    grow(root, "a", "b/c")
    put_away(tmp_path, root)
    put_away(tmp_path, root, finish_only=True)
    refusal(tmp_path, Path("/usr"))
    assert os.listdir("/proc/self/fd") == before


# What stays


def test_what_was_touched_lately_stays_whole(root: Path, tmp_path: Path) -> None:
    grow(root, "young/old", "young/deep/young", "old/old")
    os.utime(root / "young" / "deep" / "young", (1, LATER))
    told = put_away(tmp_path, root)
    assert (left(root), told["left"]) == (
        {"young", "young/old", "young/deep", "young/deep/young"},
        {"touched": 1},
    )


def test_keep_is_how_long_nobody_touched_it(root: Path, tmp_path: Path) -> None:
    grow(root, "it")
    assert put_away(tmp_path, root, keep_us=3_600_000_000)["left"] == {"touched": 1}


def other_name(place: Path) -> None:
    os.link(place / "log", place.parent.parent / "other")


def pipe(place: Path) -> None:
    os.mkfifo(place / "pipe")


@pytest.mark.parametrize(
    ("odd", "reason"), [(other_name, "has a file with another name"), (pipe, "holds what is no plain file")]
)
def test_what_cannot_be_archived_stays_whole(
    root: Path, tmp_path: Path, odd: Callable[[Path], None], reason: str
) -> None:
    grow(root, "odd/log", "plain/log")
    odd(root / "odd")
    before = portrait(root / "odd")
    told = put_away(tmp_path, root)
    assert (told["sessions"], told["left"], portrait(root / "odd")) == (1, {reason: 1}, before)


def test_a_link_among_the_sessions_is_none(root: Path, tmp_path: Path) -> None:
    grow(tmp_path, "outside/precious")
    (root / "link").symlink_to(tmp_path / "outside")
    assert put_away(tmp_path, root)["left"] == {"a link": 1}
    assert left(root) == {"link"}


def test_what_a_link_leads_to_is_not_archived(root: Path, tmp_path: Path) -> None:
    grow(tmp_path, "outside/precious")
    grow(root, "it/")
    (root / "it" / "link").symlink_to(tmp_path / "outside")
    before = portrait(tmp_path / "outside")
    put_away(tmp_path, root)
    assert portrait(tmp_path / "outside") == before
    with tarfile.open(archives(tmp_path)[0]) as file:
        assert file.getnames() == ["it", "it/link"]


def test_what_somebody_has_open_stays(root: Path, tmp_path: Path) -> None:
    grow(root, "it/log", "it/other", "closed/log")
    argv = [sys.executable, "-c", "import sys; file = open(sys.argv[1]); print(flush=True); sys.stdin.read()"]
    with child_of_test(
        subprocess.Popen([*argv, str(root / "it" / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ) as user:
        assert user.stdout is not None
        user.stdout.readline()
        told = put_away(tmp_path, root)
        user.communicate(b"")
    assert (told["left"], left(root)) == ({"open": 1}, {"it", "it/log", "it/other"})


def test_what_is_opened_after_the_look_stays_whole_and_leaves_no_archive(root: Path, tmp_path: Path) -> None:
    grow(root, "it/a", "it/log")
    with (root / "it" / "log").open():
        told = put_away(tmp_path, root)
    assert told["left"] == {"could not be deleted": 1}
    assert (left(root), archives(tmp_path)) == ({"it", "it/a", "it/log"}, [])


@only_root
@pytest.mark.parametrize("mode", [0, 0o555])
def test_what_may_not_be_read_or_deleted_stays_and_is_not_archived_again_and_again(
    mode: int, open_python: str
) -> None:
    with open_folder() as place:
        grow(root := place / "sessions", "closed/log", "theirs", "mine")
        (place / "archive").mkdir()
        for path in (root, place / "archive", root / "closed", root / "closed" / "log", root / "mine"):
            os.chown(path, 65534, 65534)
        (root / "closed").chmod(mode)
        (root / "theirs").chmod(0o600)
        told = program("archive", archive_order(place, root), *as_nobody(), python=open_python)
        assert told["sessions"] == 1
        assert set(told["left"].values()) == {1}
        assert left(root) == {"closed", "closed/log", "theirs"}
        again = program("archive", archive_order(place, root), *as_nobody(), python=open_python)
        assert (again["sessions"], len(archives(place))) == (0, 1)


# Verified before anything goes


def flipped(place: int) -> Callable[[bytes], bytes]:
    """One bit of what was written is another one when it is read."""

    def flip(data: bytes) -> bytes:
        where = place % len(data)
        return data[:where] + bytes([data[where] ^ 4]) + data[where + 1 :]

    return flip


def refusal(place: Path, root: Path) -> str:
    """Why it could not be archived; nothing if it could."""
    try:
        put_away(place, root)
    except OrderRefused as error:
        return str(error)
    return ""


@pytest.mark.parametrize("place", range(0, 4_000, sample(797, 97)))
@pytest.mark.parametrize("spoil", [flipped, lambda place: lambda data: data[: place % len(data)]])
def test_an_archive_that_is_not_what_was_written_costs_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, spoil: Any
) -> None:
    for number in range(5):
        (root / str(number)).write_bytes(os.urandom(500))
    before, real = portrait(root), tarball.write_archive

    def spoiling(file: Any, *args: Any) -> None:
        real(file, *args)
        name = f"/proc/self/fd/{file.fileno()}"
        data = Path(name).read_bytes()
        Path(name).write_bytes(spoil(place)(data))

    monkeypatch.setattr(archive, "write_archive", spoiling)
    refused = refusal(tmp_path, root)
    gone = before.keys() - portrait(root).keys()
    if refused:
        assert "could not be read back" in refused
        assert (gone, archives(tmp_path)) == (set(), [])
    elif gone:  # a bit that nobody needs, as of the time in the header: all that is gone can be unpacked
        assert len(left(unpacked(archives(tmp_path)[0], tmp_path / "out"))) == 5


def test_an_archive_of_something_else_costs_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is sound and readable, and yet another file's: only the comparison finds that."""
    grow(root, "it", text="one")
    real = tarball.write_archive

    def write(*args: Any) -> None:
        (root / "it").write_text("two")
        os.utime(root / "it", (1, 1))
        fresh = SessionReader(args[1], sys.maxsize, FilesInUse(), args[3]).session("it")
        real(args[0], args[1], [fresh], args[3])
        (root / "it").write_text("one")

    monkeypatch.setattr(archive, "write_archive", write)
    told = put_away(tmp_path, root)
    assert told["left"] == {"changed meanwhile, or unreadable": 1}
    assert ((root / "it").read_text(), archives(tmp_path)) == ("one", [])


@pytest.mark.parametrize("when", ["write_archive", "read_back", "delete_session"])
@pytest.mark.parametrize("how", sampled(["append", "replace", "add", "remove", "touch"], 2))
def test_what_changes_meanwhile_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, how: str
) -> None:
    grow(root, "busy/a", "busy/b", "quiet/a")
    real = getattr(archive, when)

    def change() -> None:
        if how == "append":
            with (root / "busy" / "a").open("a") as file:
                file.write("more")
        if how == "replace":
            (root / "busy" / "new").write_text("rubbish")
            os.replace(root / "busy" / "new", root / "busy" / "a")
        if how == "add":
            grow(root, "busy/c")
        if how == "remove":
            (root / "busy" / "a").unlink()
        if how == "touch":
            (root / "busy" / "a").touch()

    once = iter([change])

    def meanwhile(*args: Any) -> Any:
        next(once, lambda: None)()
        return real(*args)

    monkeypatch.setattr(archive, when, meanwhile)
    put_away(tmp_path, root)
    assert not (root / "quiet").exists()
    whole = (
        {path.name: path.read_text() for path in (root / "busy").iterdir()}
        if (root / "busy").exists()
        else {}
    )
    if when != "delete_session" or how in ("append", "replace", "touch"):
        assert {"append": whole.get("a") == "rubbishmore", "add": "c" in whole}.get(how, bool(whole))
    out = unpacked(archives(tmp_path)[0], tmp_path / "out")
    for name, text in {"a": "rubbish", "b": "rubbish"}.items():
        kept = (out / "busy" / name).exists() and (out / "busy" / name).read_text() == text
        assert kept or name in whole or how == "remove"


def test_who_writes_all_the_time_loses_nothing(root: Path, tmp_path: Path) -> None:
    """A session is written to by a thread while it is archived again and again: every line is somewhere."""
    over, lines = threading.Event(), 0
    log = root / "it" / "log"
    log.parent.mkdir()

    def write() -> None:
        nonlocal lines
        while not over.is_set():
            with suppress(FileNotFoundError):
                log.parent.mkdir(exist_ok=True)
                with log.open("a") as file:
                    file.write(f"{lines}\n")
                lines += 1
            time.sleep(0.001 * (lines % 7))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(sample(5, 40)):
            put_away(tmp_path, root, effect=f"effect-{number}")
    finally:
        over.set()
        thread.join(30)
    said = set(log.read_text().split()) if log.exists() else set()
    for number, file in enumerate(archives(tmp_path)):
        with suppress(FileNotFoundError):
            said |= set((unpacked(file, tmp_path / f"out{number}") / "it" / "log").read_text().split())
    assert said == {str(number) for number in range(lines)}


# Crashes


def killed_at(name: str, order: Mapping[str, Any]) -> None:
    """Run the program and kill it as it is about to call this function of `os` for the `nth` time."""
    call, _, nth = name.partition("#")
    code = f"""
import os, signal, sys
from pulse_adapters.files import archive, worker
real, left = os.{call}, [{nth or 1}]
def deadly(*args, **more):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **more)
os.{call} = deadly
worker.run_order(archive.archive_root, idle=True)
"""
    done = subprocess.run(
        as_worker(sys.executable, "-c", code), input=encode(order), capture_output=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


POINTS = ["fsync#1", "rename#1", "fsync#2", *(f"unlink#{n}" for n in range(1, 5)), "rmdir#1", "rmdir#2"]


@pytest.mark.parametrize("point", sampled(POINTS, 2))
def test_after_a_crash_anywhere_nothing_is_lost_nor_left_half_done(
    root: Path, tmp_path: Path, point: str
) -> None:
    grow(root, "one/a", "one/b", "two/a", "three")
    before = contents(root)
    killed_at(point, archive_order(tmp_path, root))
    told = program("archive", archive_order(tmp_path, root, finish_only=True))
    names = [file.name for file in archives(tmp_path)]
    assert not [name for name in names if name.endswith(".part")]
    assert told["archives"] == names
    if names:
        assert (left(root), len(names)) == (set(), 1)
        assert contents(unpacked(archives(tmp_path)[0], tmp_path / "out")) == before
    else:
        assert contents(root) == before
        assert program("archive", archive_order(tmp_path, root))["sessions"] == 3


def test_what_is_used_again_after_a_crash_is_not_deleted(root: Path, tmp_path: Path) -> None:
    grow(root, "one/a", "two/a")
    killed_at("unlink#1", archive_order(tmp_path, root))
    survivors = {name for name in left(root) if "/" in name}
    for name in survivors:
        with (root / name).open("a") as file:
            file.write("more")
    program("archive", archive_order(tmp_path, root, finish_only=True))
    assert {name for name in left(root) if "/" in name} == survivors


def test_another_effects_archives_are_left_alone(root: Path, tmp_path: Path) -> None:
    grow(root, "one")
    put_away(tmp_path, root, effect="another")
    grow(root, "one")
    told = put_away(tmp_path, root, finish_only=True)
    assert (told["archives"], left(root)) == ([], {"one"})


# Retention


def test_archives_are_kept_as_long_as_they_have_to_be(root: Path, tmp_path: Path) -> None:
    store = tmp_path / "archive"
    old, young = "sessions-20200101T000000Z-e-1.tar.gz", "sessions-20200101T000000Z-e-2.tar.gz"
    others = {"notes.txt", "sessions-20200101T000000Z.tar.gz.bak", "sessions-20191301T000000Z-e-1.tar.gz"}
    grow(store, old, young, *others)
    for name in (old, *others):
        os.utime(store / name, (1, 1))
    told = put_away(tmp_path, root, retain_us=3_600_000_000)
    assert told["expired"] == [old]
    assert left(store) == {young, *others}


# No room


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "2m") as disk:
        use_up_small_numbers(disk)
        yield disk


@only_root
def test_no_room_for_the_archive_costs_nothing_and_leaves_nothing(
    root: Path, tmp_path: Path, small: Path
) -> None:
    (root / "it").write_bytes(os.urandom(4 << 20))
    before = portrait(root)
    with pytest.raises(OrderRefused, match=f"there is no room in {small}/archive for an archive"):
        put_away(small, root)
    assert (portrait(root), archives(small)) == (before, [])


@only_root
def test_small_sessions_make_room_for_large_ones(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each archive takes less than what it frees, and the disk is nearly full at first."""
    monkeypatch.setattr(archive, "BATCH_BYTES", 50_000)
    root = small / "sessions"
    root.mkdir()
    for number in range(30):
        (root / f"small{number}").write_bytes(os.urandom(100) * 300)
    (root / "large").write_bytes(os.urandom(250) * 4_000)
    with suppress(OSError), (small / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    os.truncate(small / "ballast", (small / "ballast").stat().st_size - 20 * 4096)
    told = put_away(small, root)
    assert (told["sessions"], left(root)) == (31, set())


# Where to


@pytest.mark.parametrize(("sessions", "store"), [("s", "s/archive"), ("a/s", "a"), ("s", "s")])
def test_archives_and_sessions_do_not_lie_in_one_another(tmp_path: Path, sessions: str, store: str) -> None:
    grow(tmp_path, f"{sessions}/", f"{store}/")
    with pytest.raises(OrderRefused, match="lie in one another"):
        put_away(tmp_path, tmp_path / sessions, archive=str(tmp_path / store))


def test_a_root_that_is_not_there_or_everybodys_is_told(tmp_path: Path) -> None:
    with pytest.raises(OrderRefused, match="is not there; name a directory"):
        put_away(tmp_path, tmp_path / "none")
    with pytest.raises(OrderRefused, match="belongs to the system"):
        put_away(tmp_path, Path("/usr"))


def test_a_directory_for_archives_that_cannot_be_made_is_told(root: Path, tmp_path: Path) -> None:
    with pytest.raises(OrderRefused, match="cannot be made: No such file or directory; make it by hand"):
        put_away(tmp_path, root, archive=str(tmp_path / "no" / "such" / "place"))


def test_sessions_elsewhere_make_no_room_here(root: Path, tmp_path: Path) -> None:
    grow(root, "it")
    told = put_away(tmp_path, root, near="/proc")
    assert (told["sessions"], left(root)) == (0, {"it"})
    assert "is on another file system than /proc" in told["passed"]


def test_two_runs_at_a_time_are_one_too_many(root: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        archive.open_directories(archive_order(tmp_path, root), stack)
        with pytest.raises(OrderRefused, match="are being archived"):
            put_away(tmp_path, root)
    assert put_away(tmp_path, root)["finished"]


def test_who_runs_out_of_time_leaves_nothing_half_done(root: Path, tmp_path: Path) -> None:
    for number in range(200):
        grow(root, f"{number}")
    told = archive.archive_root(archive_order(tmp_path, root), Deadline(0))
    assert (told["finished"], told["sessions"], archives(tmp_path)) == (False, 0, [])
    assert len(left(root)) == 200


# The law


paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)
deeds = st.lists(
    st.tuples(
        st.sampled_from(["file", "young", "link", "hard", "directory"]),
        paths,
        paths,
        st.binary(max_size=2_000),
    ),
    max_size=20,
)


@settings(max_examples=sample(8, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=deeds)
def test_every_byte_is_where_it_was_or_in_an_archive(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, str, str, bytes]]
) -> None:
    place = tmp_path_factory.mktemp("tree")
    root, outside = place / "root", place / "outside"
    root.mkdir()
    grow(outside, "a", "b/c")
    for what, path, target, data in deeds:
        with suppress(OSError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if what in ("file", "young") and not (root / path).is_symlink():
                (root / path).write_bytes(data)
            if what == "young" and (root / path).is_file():
                os.utime(root / path, (LATER, LATER))
            if what == "link":
                (root / path).symlink_to(outside / target)
            if what == "hard":
                os.link(outside / target, root / path)
            if what == "directory":
                (root / path).mkdir()
    before, elsewhere = contents(root), portrait(outside)
    put_away(place, root)
    assert portrait(outside) == elsewhere
    now = dict(contents(root))
    for file in archives(place):
        now |= contents(unpacked(file, place / "out"))
    assert now == before


def test_a_session_that_is_moved_away_is_not_followed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(root, "it/deep/log")
    place = open_directory(str(root))
    session = SessionReader(place, sys.maxsize, FilesInUse(), Deadline(60)).session("it")
    real = os.lstat

    def moving(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        with suppress(OSError):
            os.rename(root / "it" / "deep", tmp_path / "moved")
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", moving)
    assert not delete_session(place, session) or (tmp_path / "moved" / "log").exists()
    place.close()
