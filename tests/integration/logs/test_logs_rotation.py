"""Every way of rotation, with the reader alive or down: each line once, as long as it can be found."""

import os
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from pulse_adapters.logs import followed_files
from pulse_adapters.logs.open_file import CHUNK, PASSES
from tests.engine_user import open_folder
from tests.integration.logs.logs_scene import Following, copytruncate, delete, numbered, rename, write
from tests.long_form import sample

WAYS = {
    "rename": rename,
    "rename without create": lambda path: rename(path, create=False),
    "copytruncate": copytruncate,
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "app.log"


@pytest.fixture
def following(log: Path) -> Iterator[Following]:
    made = Following(log.parent / "*.log")
    yield made
    made.close()


@pytest.mark.parametrize("way", WAYS)
def test_lines_before_and_after_a_rotation_come_once_and_in_order(
    log: Path, following: Following, way: str
) -> None:
    lines = list(islice(numbered(), 30))
    write(log, *lines[:10])
    assert following.drain() == lines[:10]
    write(log, *lines[10:20])
    WAYS[way](log)
    write(log, *lines[20:])
    assert following.drain() == lines[10:]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_rotated_while_nobody_reads_is_found_again(
    log: Path, following: Following, way: str, times: int
) -> None:
    lines = list(islice(numbered(), 100))
    write(log, *lines[:10])
    following.drain()
    written = 10
    for _ in range(times):
        write(log, *lines[written : written + 10])
        WAYS[way](log)
        written += 10
    write(log, *lines[written : written + 10])
    following.restart()
    assert following.drain() == lines[10 : written + 10]


DAY_NS = 86_400 * 10**9


def set_clock(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    """Have the reader's clock be off by so many nanoseconds; that of the files goes right."""
    now = time.clock_gettime_ns
    monkeypatch.setattr(time, "time_ns", lambda: now(time.CLOCK_REALTIME) + by)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_rotated_while_nobody_reads_is_found_again_after_the_clock_was_set_back(
    log: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    set_clock(monkeypatch, by=DAY_NS)
    following, lines = Following(log.parent / "*.log", known=True), list(islice(numbered(), 40))
    write(log, *lines[:10])
    following.drain()
    for written in (10, 20):
        write(log, *lines[written : written + 10])
        WAYS[way](log)
    write(log, *lines[30:])
    set_clock(monkeypatch, by=0)
    following.restart()
    assert following.drain() == lines[10:]
    following.close()


def test_old_rotated_files_are_no_news_after_the_clock_was_set_forward(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, by=-DAY_NS)
    following, lines = Following(log.parent / "*.log", known=True), list(islice(numbered(), 30))
    for line in lines:
        write(log, line)
        assert following.drain() == [line]
        rename(log)
    following.drain()
    set_clock(monkeypatch, by=0)
    following.restart()
    assert following.drain() == []
    following.close()


@pytest.mark.parametrize("names", ["app.log.{}", "app.{}.log"])
def test_what_is_rotated_twice_between_two_looks_is_read(log: Path, names: str) -> None:
    following = Following(log)
    first, second = (log.with_name(names.format(number)) for number in (1, 2))
    write(log, "one")
    assert following.drain() == ["one"]
    write(log, "two")
    log.rename(first)
    write(log, "three")
    first.rename(second)
    log.rename(first)
    write(log, "four")
    assert following.drain() == ["two", "three", "four"]
    following.close()


def test_what_could_not_be_read_for_a_while_is_read_on_where_it_was(
    log: Path, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the descriptor is the memory of a process: each read of it fails, as of a disk or server that is gone."""
    monkeypatch.setattr(followed_files, "UNREADABLE", 0.0)
    write(log, "one", "two")
    assert following.drain() == ["one", "two"]
    (followed,) = following.files.trails[str(log)].files
    break_reads(followed.file)
    write(log, "three")
    assert following.drain() == []
    assert "it can't be read: Input/output error" in following.told[0][1]
    assert following.drain() == ["three"]


def break_reads(file: int) -> None:
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    os.dup2(memory, file)
    os.close(memory)


def test_of_rotated_files_the_one_that_can_not_be_read_is_named(log: Path, following: Following) -> None:
    write(log, "one")
    following.drain()
    (followed,) = following.files.trails[str(log)].files
    rename(log)
    write(log, "two")
    break_reads(followed.file)
    following.drain()
    assert [whose for whose, _ in following.told] == [f"{log}.1"]


def test_a_deleted_file_is_read_to_its_end_and_let_go(log: Path, following: Following) -> None:
    write(log, "one")
    following.drain()
    write(log, "two")
    delete(log)
    write(log, "three")
    assert following.drain() == ["two", "three"]
    assert len(following.files.trails[str(log)].files) == 1


def test_who_still_writes_to_the_rotated_file_is_heard(log: Path, following: Following) -> None:
    with log.open("a", buffering=1) as writer:
        writer.write("one\n")
        following.drain()
        rename(log)
        write(log, "new")
        writer.write("late\n")
        assert sorted(following.drain()) == ["late", "new"]
        writer.write("later\n")
        assert following.drain(scan=False) == ["later"]


def test_only_so_many_rotated_files_are_held(log: Path, following: Following) -> None:
    for number in range(12):
        write(log, f"line {number}")
        assert following.drain() == [f"line {number}"]
        rename(log)
    following.drain()
    assert len(following.files.trails[str(log)].files) <= 5


def test_a_pattern_that_means_rotated_files_too_reads_nothing_twice(log: Path) -> None:
    following, lines = Following(log.parent / "*.log*"), numbered()
    for turn in range(30):
        new = [next(lines) for _ in range(3)]
        write(log, *new)
        seen = following.drain() if turn % 3 else []
        (rename if turn % 2 else copytruncate)(log)
        seen += following.drain()
        assert seen == new, turn
        if turn % 5 == 4:
            following.restart()
            assert following.drain() == []
    following.close()


def test_a_copy_under_way_is_not_taken_for_news(log: Path) -> None:
    following = Following(log.parent / "*.log*")
    lines = list(islice(numbered(), 200))
    write(log, *lines)
    following.drain()
    text, copy = log.read_text(), log.with_name("app.log.1")
    for end in (0, 10, 300, 5_000, len(text)):
        copy.write_text(text[:end])
        assert following.drain() == []
        assert following.files.in_doubt
    write(log, "after the copy")
    assert following.drain() == ["after the copy"]
    following.close()


def test_a_neighbour_that_says_the_same_is_no_copy(log: Path, following: Following) -> None:
    write(log, "ERROR: no config")
    write(log.with_name("app-2.log"), "ERROR: no config")
    assert following.drain() == ["ERROR: no config"] * 2


def test_a_file_that_is_written_anew_is_read_anew(log: Path, following: Following) -> None:
    write(log, *islice(numbered(), 5))
    following.drain()
    log.write_text("anew, and longer than before\n" * 100)
    assert following.drain() == ["anew, and longer than before"] * 100


def test_a_file_written_anew_at_the_same_length_is_read_anew(log: Path, following: Following) -> None:
    log.write_text("aaaa\n")
    following.drain()
    with log.open("r+") as file:
        file.write("bbbb\n")
    following.drain()
    write(log, "cccc")
    following.drain()
    assert [line for _, line in following.lines] == ["aaaa", "bbbb", "cccc"]


def test_another_file_with_the_same_number_is_not_taken_for_the_first(
    log: Path, following: Following
) -> None:
    write(log, "one", "two", "three")
    following.drain()
    places = following.places()
    mark = places[str(log)]["files"][0]
    log.unlink()
    write(log, "quite another file", "with other lines", "and more of them")
    following.restart({str(log): {"total": 5, "files": [{**mark, "inode": log.stat().st_ino}]}})
    assert following.drain() == ["quite another file", "with other lines", "and more of them"]


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_whose_disk_has_another_number_since_a_boot_is_gone_on_with(
    log: Path, following: Following, linked: bool
) -> None:
    if linked:
        log.symlink_to(log.parent.parent / "elsewhere")
    write(log, "one")
    assert following.drain() == ["one"]
    places = following.places()
    (mark,) = places[str(log)]["files"]
    write(log, "two")
    following.restart({str(log): {**places[str(log)], "files": [{**mark, "device": mark["device"] + 1}]}})
    assert following.drain() == ["two"]


def test_a_file_moved_away_and_back_is_gone_on_with(log: Path, following: Following) -> None:
    write(log, "one")
    following.drain()
    elsewhere = log.parent.parent / "elsewhere"
    log.rename(elsewhere)
    following.restart()
    assert following.drain() == []
    elsewhere.rename(log)
    write(log, "two")
    assert following.drain() == ["two"]


def test_a_link_that_points_elsewhere_is_followed(log: Path, following: Following) -> None:
    first, second = log.with_name("2026-01-01"), log.with_name("2026-01-02")
    write(first, "one")
    log.symlink_to(first)
    assert following.drain() == ["one"]
    write(first, "two")
    write(second, "three")
    log.unlink()
    log.symlink_to(second)
    assert following.drain() == ["two", "three"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
@pytest.mark.parametrize("name", ["app.log", "inner/app.log"])
def test_a_link_of_another_user_leads_to_nothing_that_one_may_not_read(name: str) -> None:
    """Else whoever may change a folder below the pattern would have lines recorded that only root may read."""
    with open_folder() as folder:
        (secret := folder / "secret").mkdir()
        write(there := secret / "app.log", "of root")
        (theirs := folder / "theirs").mkdir()
        link = theirs / name.split("/")[0]
        link.symlink_to(secret if "/" in name else there)
        os.chown(link, 65_534, 65_534, follow_symlinks=False)
        secret.chmod(0o700)
        said = f"{link.name!r}, a link of the user 65534, leads to {there}, which that one may not read"
        pattern = theirs / ("*/*.log" if "/" in name else "*.log")
        for may_read in (False, True):
            following = Following(pattern, known=True)
            assert following.drain() == (["of root"] if may_read else [])
            assert [words.split(";")[0] for _, words in following.told[:1]] == ([] if may_read else [said])
            following.close()
            secret.chmod(0o755)  # a log that all may read may lie elsewhere, as that of an earlier release
        there.chmod(0)
        os.chown(there, 65_534, 65_534)
        following = Following(pattern, known=True)
        assert following.drain() == ["of root"]
        following.close()


def test_a_line_of_any_length_keeps_no_other_log_from_being_read(log: Path, following: Following) -> None:
    write(log)
    write(other := log.with_name("other.log"))
    following.drain()
    with log.open("wb") as file:
        file.write(b"x" * (3 * PASSES * CHUNK))
    following.read_a_little()
    write(other, "first")
    for _ in range(2):
        following.read_a_little()
    assert following.lines[-1] == (str(other), "first")
    assert str(log) in following.files.dirty
    write(log, "", "last")
    assert following.drain(scan=False) == ["last"]


def test_the_same_file_under_two_names_is_read_once(log: Path, following: Following) -> None:
    write(log, "one")
    log.with_name("other.log").hardlink_to(log)
    assert following.drain() == ["one"]


@pytest.mark.parametrize("pattern", ["*.log", "*.log*"])
@pytest.mark.parametrize("seed", range(sample(5, 60)))
def test_whatever_happens_each_line_comes_once(
    log: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, seed: int
) -> None:
    write(log, "the first line")
    following = Following(log.parent / pattern, known=True)
    following.drain()
    dice, lines, expected = random.Random(seed), numbered(), ["the first line"]
    for _ in range(60):
        match dice.choice(
            ["write", "write", "write", "read", "a little", "rotate", "crash", "clock", "piece"]
        ):
            case "write":
                expected += (new := list(islice(lines, dice.randrange(1, 2_000))))
                write(log, *new)
            case "piece" if log.exists():
                expected.append(line := next(lines))
                with log.open("a", buffering=1) as file:
                    file.write(line[: len(line) // 2])
                    following.read_a_little()
                    file.write(f"{line[len(line) // 2 :]}\n")
            case "read":
                following.drain()
            case "a little":
                following.read_a_little()
            case "rotate" if log.exists():
                if dice.random() < 0.2:
                    following.drain()  # what was deleted before it was read is lost
                    delete(log)
                else:
                    WAYS[dice.choice(list(WAYS))](log)
            case "crash":
                following.restart()
            case "clock":
                set_clock(monkeypatch, by=dice.randrange(-9_999, 9_999) * DAY_NS)
    following.drain()
    following.close()
    read = [line for _, line in following.lines]
    assert len(read) == len(expected)
    assert sorted(read) == sorted(expected)
