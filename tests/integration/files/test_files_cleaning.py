"""Cleaning on real files, laid out by somebody who means ill."""

import mmap
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_adapters.files.clean import DEEPEST, LARGEST, SHOWN, WAITING, Ledger, clean_roots
from pulse_adapters.files.in_use import MountDevices, find_files_in_use
from pulse_adapters.files.safe_directory import mount_of, open_directory
from pulse_adapters.files.worker import CALLS_PER_CHECK, Deadline
from tests.engine_user import open_folder
from tests.integration.files.files_scene import (
    LATER,
    as_nobody,
    clean,
    cleaning_order,
    grow,
    ledger,
    left,
    portrait,
    program,
    use_up_small_numbers,
)
from tests.long_form import sample, sampled
from tests.processes import child_of_test
from tests.small_disk import small_disk

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and be somebody else")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    grow(path, "precious", "deep/er/precious")
    return path


# What goes


def test_all_that_is_old_goes_and_the_root_stays(root: Path, tmp_path: Path) -> None:
    grow(root, "a", "b/c", "b/d/e", "empty/")
    told = clean(tmp_path, root)
    assert left(tmp_path) - {"logs", "logs/cleaned.jsonl"} == {"cache"}
    assert (told["files"], told["directories"], told["finished"], told["faults"]) == (3, 3, True, [])
    assert told["bytes"] == 3 * 4096


def test_cleaning_again_changes_nothing(root: Path, tmp_path: Path) -> None:
    grow(root, "a")
    clean(tmp_path, root)
    assert clean(tmp_path, root)["files"] == 0
    assert len(ledger(tmp_path)) == 1


def test_the_ledger_names_each_file_with_its_size_and_time(root: Path, tmp_path: Path) -> None:
    grow(root, "a")
    os.utime(root / "a", (1_000, 1_000))
    clean(tmp_path, root)
    (line,) = ledger(tmp_path)
    assert (line["path"], line["size"], line["mtime_us"]) == (str(root / "a"), 4096, 1_000_000_000)
    assert stat.S_IMODE((tmp_path / "logs" / "cleaned.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "name", sampled([b"two\nlines", b"\xff\xfe", b"\xe2\x80\xa8", b'"quoted\\', b" ", b"-rf", b"a" * 255], 3)
)
def test_no_name_is_too_odd(root: Path, tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(root), name)
    os.mkdir(path)
    with open(os.path.join(path, name), "wb"):
        pass
    told = clean(tmp_path, root)
    assert (told["files"], told["directories"], left(root)) == (1, 1, set())
    assert [os.fsencode(line["path"]) for line in ledger(tmp_path)] == [os.path.join(path, name)]


def test_a_root_that_is_not_there_has_nothing_to_clean(root: Path, tmp_path: Path) -> None:
    told = clean(tmp_path, tmp_path / "none", root)
    assert (told["passed"], told["faults"]) == ({str(tmp_path / "none"): "is not there"}, [])


def test_a_root_that_cannot_be_cleaned_keeps_none_of_the_others(root: Path, tmp_path: Path) -> None:
    grow(root, "a")
    grow(tmp_path, "file")
    told = clean(tmp_path, tmp_path / "file", "/etc", root)
    assert (left(root), told["files"], len(told["faults"])) == (set(), 1, 2)


# What stays


@pytest.mark.parametrize("times", [(LATER, 1), (1, LATER)], ids=["read", "written"])
def test_what_was_touched_lately_stays(root: Path, tmp_path: Path, times: tuple[int, int]) -> None:
    grow(root, "young", "old")
    os.utime(root / "young", times)
    told = clean(tmp_path, root)
    assert (left(root), told["kept"]) == ({"young"}, {"young": 1})


def test_what_was_unpacked_lately_stays_however_old_it_looks(root: Path, tmp_path: Path) -> None:
    grow(root, "unpacked/file")
    os.utime(root / "unpacked" / "file", (1, 1))
    told = clean(tmp_path, root, older_than_us=60_000_000)
    assert (left(root), told["kept"]) == ({"unpacked", "unpacked/file"}, {"young": 1})


def test_links_go_and_what_they_lead_to_stays(root: Path, tmp_path: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "precious")
    (root / "directory").symlink_to(outside)
    (root / "circle").symlink_to(root)
    before = portrait(outside)
    assert clean(tmp_path, root)["files"] == 3
    assert (left(root), portrait(outside)) == (set(), before)


def test_a_file_with_another_name_stays_and_frees_nothing(root: Path, tmp_path: Path, outside: Path) -> None:
    os.link(outside / "precious", root / "linked")
    before = portrait(outside)
    told = clean(tmp_path, root)
    assert (told["kept"], told["bytes"], portrait(outside)) == ({"has another name": 1}, 0, before)


def test_what_is_no_plain_file_stays(root: Path, tmp_path: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
    assert clean(tmp_path, root)["kept"] == {"no plain file": 2}


HOLD = """
import mmap, os, sys
way, path = sys.argv[1:]
if way == "chdir":
    os.chdir(path)
else:
    file = open(path, "rb")
    if way == "map":
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.close()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("way", "name"), [("open", "it"), ("map", "it"), ("chdir", "directory")])
def test_what_somebody_uses_stays(root: Path, tmp_path: Path, way: str, name: str) -> None:
    grow(root, "it", "directory/", "other")
    argv = [sys.executable, "-c", HOLD, way, str(root / name)]
    with child_of_test(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == b"held\n"
        clean(tmp_path, root)
        assert left(root) == {name}
        user.communicate(b"")
    clean(tmp_path, root)
    assert left(root) == set()


@pytest.mark.parametrize("way", ["open", "map"])
def test_what_was_opened_after_the_look_at_all_processes_stays(root: Path, tmp_path: Path, way: str) -> None:
    """The look leaves out this very process; the kernel's lease does not."""
    grow(root, "it", "other")
    with (root / "it").open("rb") as file:
        if way == "open":
            told = clean(tmp_path, root)
    if way == "map":
        with (root / "it").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
            file.close()
            told = clean(tmp_path, root)
    assert (left(root), told["kept"]) == ({"it"}, {"open": 1})


def test_files_of_another_device_with_the_same_number_are_not_taken_for_open(root: Path) -> None:
    grow(root, "it")
    inode = (root / "it").stat().st_ino
    with (root / "it").open() as file:
        device = MountDevices().device(mount_of(file.fileno()))
        with child_of_test(subprocess.Popen(["sleep", "1000"], stdin=file)) as user:
            used = find_files_in_use()
            user.kill()
    assert used.holds(device, inode, "/another/name")
    assert not used.holds("999:1", inode, "/another/name")


def test_no_file_is_left_open(root: Path, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    grow(root, "a", "b/c")
    clean(tmp_path, root)
    clean(tmp_path, "/etc", tmp_path / "none")
    assert os.listdir("/proc/self/fd") == before


@only_root
def test_what_may_not_be_read_or_deleted_is_told_and_keeps_nothing_else(open_python: str) -> None:
    with open_folder() as place:
        grow(root := place / "cache", "closed/file", "theirs/file", "mine", "unreadable")
        for path in (root, root / "closed", root / "mine", root / "unreadable"):
            os.chown(path, 65534, 65534)
        (root / "closed").chmod(0)
        (root / "unreadable").chmod(0)
        told = program("clean", cleaning_order(place, root), *as_nobody(), python=open_python)
        assert left(root) == {"closed", "closed/file", "theirs", "theirs/file"}
    assert told["kept"] == {"Permission denied": 2}
    assert (told["files"], told["unwritten"]) == (2, 2)  # a ledger that may not be written stops nothing


@only_root
@pytest.mark.parametrize("mount", ["-t tmpfs tmpfs", "--bind {outside}"])
def test_what_is_mounted_in_the_root_stays(root: Path, tmp_path: Path, outside: Path, mount: str) -> None:
    grow(root, "there/hidden", "old", "file")
    where = root / "there"
    before = portrait(outside)
    how = f'mount {mount.format(outside=outside)} {where} && exec "$@"'
    told = program("clean", cleaning_order(tmp_path, root), "unshare", "--mount", "sh", "-c", how, "sh")
    assert told["kept"] == {"on another file system": 1}
    assert left(root) == {"there", "there/hidden"}
    assert portrait(outside) == before


def test_only_roots_near_the_full_disk_are_cleaned(root: Path, tmp_path: Path) -> None:
    grow(root, "a")
    told = clean(tmp_path, root, near="/proc")
    assert told["passed"] == {str(root): "is on another file system"}
    assert clean(tmp_path, root, near=str(tmp_path))["files"] == 1


# How far


def test_a_dry_run_tells_and_does_nothing(root: Path, tmp_path: Path) -> None:
    grow(root, "a", "b/c", *(f"many/{number}" for number in range(2 * SHOWN)))
    before = portrait(tmp_path)
    told = clean(tmp_path, root, dry_run=True)
    assert portrait(tmp_path) == before
    assert (told["files"], told["bytes"]) == (2 + 2 * SHOWN, 4096 * (2 + 2 * SHOWN))
    assert len(told["would"]) == SHOWN
    assert all(Path(path).is_file() and size == 4096 for path, size in told["would"])


def test_no_more_than_the_limit_goes(root: Path, tmp_path: Path) -> None:
    grow(root, *"abcd")
    told = clean(tmp_path, root, limit_bytes=2 * 4096 + 1)
    assert (told["bytes"], told["kept"], len(left(root))) == (2 * 4096, {"over the limit": 2}, 2)


def test_what_lies_too_deep_stays_and_harms_nobody(root: Path, tmp_path: Path) -> None:
    grow(root, "z")
    here = os.open(root, os.O_RDONLY)
    for _ in range(DEEPEST + 500):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    told = clean(tmp_path, root)
    assert (told["files"], told["kept"]) == (1, {"too deep": 1})
    subprocess.run(["rm", "-rf", str(root)], check=True, timeout=60)


def test_who_runs_out_of_time_says_so_and_what_went_is_told(root: Path, tmp_path: Path) -> None:
    grow(root, *(str(number) for number in range(4 * CALLS_PER_CHECK)))
    told = clean_roots(cleaning_order(tmp_path, root), Deadline(0))
    assert not told["finished"]
    assert 0 < told["files"] == len(ledger(tmp_path)) < 4 * CALLS_PER_CHECK


def test_a_child_whose_parent_died_ends(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(root, *(str(number) for number in range(4 * CALLS_PER_CHECK)))
    deadline = Deadline(60)
    monkeypatch.setattr(os, "getppid", os.getpid)  # not 1: that is the parent of a run by `nohup make test &`
    assert not clean_roots(cleaning_order(tmp_path, root), deadline)["finished"]


def test_two_runs_at_a_time_leave_each_other_alone(root: Path, tmp_path: Path) -> None:
    grow(root, "a")
    place = open_directory(str(root))
    assert place.lock()
    assert clean(tmp_path, root)["passed"] == {str(root): "is being cleaned already"}
    place.close()
    assert clean(tmp_path, root)["files"] == 1


# Where to


@pytest.mark.parametrize(
    "path",
    sampled(
        ["/", "/etc", "/etc/ssl", "/usr", "/var", "/home", "/home/ada", "/proc/self", "/sys/kernel", "/root"],
        3,
    ),
)
def test_what_belongs_to_all_is_never_cleaned(path: str, tmp_path: Path) -> None:
    told = clean(tmp_path, path, dry_run=True)
    assert told["files"] == 0
    assert told["faults"] or told["passed"] == {path: "is not there"}


@pytest.mark.parametrize(
    "path", sampled([".", "work", "work/home", "work/home/pulse", "work/home/pulse/objects"], 2)
)
def test_what_holds_a_home_is_never_cleaned(path: str, tmp_path: Path) -> None:
    grow(tmp_path / "work" / "home", "letter", "pulse/objects/blob")
    own = tmp_path / "work" / "home" / "pulse"
    told = clean(tmp_path, tmp_path / path, home=str(tmp_path / "work" / "home"), own=str(own))
    assert told["files"] == 0
    assert "name a" in told["faults"][0]


def test_a_root_that_leads_elsewhere_than_before_is_not_cleaned(
    root: Path, tmp_path: Path, outside: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    told = clean(tmp_path, link)
    assert told["real"] == {str(link): str(root)}
    link.unlink()
    link.symlink_to(outside)
    before = portrait(outside)
    again = clean(tmp_path, link, known=told["real"])
    assert again["faults"] == [f"{link} leads to {outside} now, and led to {root} before"]
    assert portrait(outside) == before


@only_root
def test_nobody_elses_link_is_followed(tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(outside)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    told = clean(tmp_path, link / "deep")
    assert told["faults"] == [f"{link} is a link of the user 65534; name the directory it leads to"]
    assert left(outside) == {"precious", "deep", "deep/er", "deep/er/precious"}


@pytest.mark.parametrize("path", ["cache/..", "cache/../outside", "link/../outside", "./cache//.."])
def test_dots_lead_where_they_lead(path: str, root: Path, tmp_path: Path, outside: Path) -> None:
    """Step by step, `..` of a link's target is not what stands before it in the text."""
    (tmp_path / "far").mkdir()
    grow(tmp_path, "far/inner/x", "far/outside/rubbish")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "inner")
    text = f"{tmp_path}/{path}"
    place = open_directory(text)
    assert place.path == os.path.realpath(text)
    place.close()


def test_links_in_a_circle_are_no_directory(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "too many links" in clean(tmp_path, tmp_path / "a")["faults"][0]


# While somebody is at it


def test_a_directory_that_is_swapped_for_a_link_leads_nowhere(
    root: Path, tmp_path: Path, outside: Path
) -> None:
    """Somebody swaps a directory in the root for a link out of it, all the time, while it is cleaned again and again."""
    aside, over = tmp_path / "aside", threading.Event()
    before = portrait(outside)

    def swap() -> None:
        for number in count():
            if over.is_set():
                return
            with suppress(OSError):
                (root / "d").mkdir()
                (root / "d" / "deep").mkdir()
                (root / "d" / "precious").write_text("rubbish")
                (root / "d" / "deep" / "precious").write_text("rubbish")
                os.rename(root / "d", aside / str(number))
                os.symlink(outside, root / "d")
                os.unlink(root / "d")
                os.rename(aside / str(number), root / "d")

    aside.mkdir()
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        went = sum(clean(tmp_path, root)["files"] for _ in range(sample(5, 80)))
    finally:
        over.set()
        thread.join(30)
    assert went > 0
    assert portrait(outside) == before


@pytest.mark.parametrize(
    ("call", "name"),
    sampled(
        [
            ("open", "d"),
            ("lstat", "precious"),
            ("open", "precious"),
            ("unlink", "precious"),
            ("rmdir", "deep"),
            ("rmdir", "d"),
        ],
        2,
    ),
)
def test_a_swap_just_before_any_step_leads_nowhere(
    root: Path, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    """The same at the worst moment: between what was looked at and what is done."""
    grow(root, "d/precious", "d/deep/er/precious")
    before, real = portrait(outside), getattr(os, call)
    swapped: list[str] = []

    def swapping(path: str, *args: object, **more: object) -> object:
        if path == name and not swapped:
            swapped.append(name)
            os.rename(root / "d", root / "aside")
            os.symlink(outside, root / "d")
        return real(path, *args, **more)

    monkeypatch.setattr(os, call, swapping)
    clean(tmp_path, root)
    assert swapped
    assert portrait(outside) == before


def test_a_directory_that_is_moved_out_takes_its_files_along(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(root, *(f"d/{number}" for number in range(20)))
    real, moved = os.lstat, tmp_path / "moved"

    def moving(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        if dir_fd is not None and path.isdecimal() and not moved.exists():
            os.rename(root / "d", moved)
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", moving)
    told = clean(tmp_path, root)
    assert told["kept"] == {"was moved out of the root meanwhile": 20}
    assert len(left(moved)) == 20


names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
deeds = st.lists(
    st.tuples(
        st.sampled_from(["file", "young", "link", "hard", "pipe", "directory"]), st.booleans(), paths, paths
    ),
    max_size=25,
)


@settings(max_examples=sample(8, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=deeds, dry=st.booleans())
def test_nothing_outside_of_the_roots_ever_changes(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, bool, str, str]], dry: bool
) -> None:
    place = tmp_path_factory.mktemp("tree")
    root, outside = place / "root", place / "outside"
    root.mkdir()
    outside.mkdir()
    young = set()
    for what, inside, path, target in deeds:
        here, there = (root, outside) if inside else (outside, root)
        with suppress(OSError):
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            if what in ("file", "young") and not os.path.lexists(here / path):
                (here / path).write_text(path)
            if what == "young" and (here / path).is_file():
                os.utime(here / path, (LATER, LATER))
                young.add(here / path)
            if what == "link":
                (here / path).symlink_to(there / target)
            if what == "hard":
                os.link(there / target, here / path)
            if what == "pipe":
                os.mkfifo(here / path)
            if what == "directory":
                (here / path).mkdir()
    before, inside_before = portrait(outside), portrait(root)
    told = clean(place, root, dry_run=dry)
    assert portrait(outside) == before
    assert all(path.exists() for path in young if not path.is_symlink() and path.parent.exists())
    assert told["faults"] == []
    if dry:
        assert portrait(root) == inside_before
    else:
        gone = {line["path"] for line in ledger(place)}
        assert told["files"] == len(gone)
        assert all(Path(path).is_relative_to(root) for path in gone)


# The ledger


def test_the_ledger_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b"x" * (LARGEST + 1))
    book = Ledger(str(path))
    book.add(path="a")
    assert path.read_text() == '{"path": "a"}\n'
    assert Path(f"{path}.1").stat().st_size == LARGEST + 1


def test_a_ledger_that_leads_elsewhere_is_not_written(tmp_path: Path, outside: Path) -> None:
    before = portrait(outside)
    (tmp_path / "ledger").symlink_to(outside / "precious")
    book = Ledger(str(tmp_path / "ledger"))
    for _ in range(WAITING + 5):
        book.add(path="a")
    assert (book.unwritten, portrait(outside)) == (WAITING + 5, before)


@only_root
def test_a_full_disk_does_not_stop_cleaning_and_the_ledger_is_written_as_soon_as_there_is_room(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        use_up_small_numbers(disk)
        grow(disk, "cache/a", "cache/b")
        with suppress(OSError), (disk / "cache" / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        (disk / "logs").mkdir()
        told = clean(disk, disk / "cache")
        assert (told["files"], told["unwritten"]) == (3, 0)
        assert len(ledger(disk)) == 3
