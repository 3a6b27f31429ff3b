"""One file: read in whole lines, whatever pieces it is written in, and recognised again."""

from collections.abc import Iterator
from os import truncate
from pathlib import Path
from random import Random

import pytest

from pulse_adapters.logs.open_file import (
    CHUNK,
    PASSES,
    FileRewritten,
    FollowedFile,
    mark_from_json,
    open_regular_file,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "app.log").touch()
    return tmp_path / "app.log"


@pytest.fixture
def followed(path: Path) -> Iterator[FollowedFile]:
    one = open_regular_file(str(path))
    assert one is not None
    yield one
    one.close()


def append(path: Path, raw: bytes) -> None:
    with path.open("ab") as file:
        file.write(raw)


def test_only_whole_lines_count(path: Path, followed: FollowedFile) -> None:
    assert followed.read() == b""
    for piece in (b"E", b"RR", b"OR \xc3"):
        append(path, piece)
        assert followed.read() == b""
    append(path, b"\xa4\nnext")
    assert followed.read() == "ERROR ä\n".encode()
    assert followed.read() == b""
    append(path, b"\n\n")
    assert followed.read() == b"next\n\n"


def test_much_is_read_in_blocks_of_whole_lines(path: Path, followed: FollowedFile) -> None:
    lines = [b"%d %s\n" % (number, b"x" * (number % 300)) for number in range(10_000)]
    append(path, b"".join(lines))
    blocks = list(iter(followed.read, b""))
    assert b"".join(blocks) == b"".join(lines)
    assert all(len(block) <= CHUNK and block.endswith(b"\n") for block in blocks)
    assert len(blocks) > 3


def test_what_is_given_back_is_read_again_and_the_mark_is_before_it(
    path: Path, followed: FollowedFile
) -> None:
    lines, dice, told = [b"%d %s\n" % (number, b"x" * (number % 90)) for number in range(400)], Random(5), b""
    append(path, b"".join(lines))
    while block := followed.read():
        used = block.index(b"\n", min(dice.randrange(1, 3_000), len(block) - 1)) + 1
        followed.give_back(block, used)
        told += block[:used]
        other = open_regular_file(str(path))
        assert other is not None
        assert other.resume(followed.mark())
        assert (other.offset, other.head, other.tail) == (followed.offset, followed.head, followed.tail)
        other.close()
    assert told == b"".join(lines)


@pytest.mark.parametrize("length", [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_of_a_line_that_is_too_long_the_beginning_is_a_line(
    path: Path, followed: FollowedFile, length: int
) -> None:
    append(path, b"before\n" + b"x" * length + b"\nafter\n")
    whole = b"".join(iter(followed.read, b""))
    assert whole == b"before\n" + b"x" * min(length, CHUNK) + b"\nafter\n"


def test_a_line_that_is_too_long_is_one_line_in_pieces_and_over_a_restart_too(path: Path) -> None:
    first = open_regular_file(str(path))
    assert first is not None
    seen = b""
    for _ in range(9):
        append(path, b"x" * (CHUNK // 3))
        seen += first.read()
    assert seen == b"x" * CHUNK + b"\n"
    mark = mark_from_json(first.mark().as_json())
    first.close()
    again = open_regular_file(str(path))
    assert again is not None
    assert again.resume(mark)
    append(path, b"xxx\nafter\n")
    assert again.read() == b"after\n"
    again.close()


def test_the_rest_of_a_line_that_is_too_long_is_passed_over_in_turns(
    path: Path, followed: FollowedFile
) -> None:
    append(path, b"x" * (CHUNK * (PASSES + 3)) + b"\nafter\n")
    assert followed.read() == b"x" * CHUNK + b"\n"
    assert followed.read() == b""
    assert followed.is_in_long_line()
    assert followed.read() == b"after\n"
    assert not followed.is_in_long_line()


def test_of_a_hole_in_a_line_nothing_is_read(path: Path, followed: FollowedFile) -> None:
    append(path, b"x" * CHUNK)
    truncate(path, 1 << 40)
    assert followed.read() == b"x" * CHUNK + b"\n"
    assert followed.read() == b""
    assert not followed.is_in_long_line()
    append(path, b"\nafter\n")
    assert followed.read() == b"after\n"


def test_a_file_is_recognised_and_gone_on_with(path: Path, followed: FollowedFile) -> None:
    append(path, b"one\n" * 1_000)
    followed.read()
    mark = mark_from_json(followed.mark().as_json())
    append(path, b"two\n")
    again = open_regular_file(str(path))
    assert again is not None
    assert again.resume(mark)
    assert again.read() == b"two\n"
    again.close()


@pytest.mark.parametrize(
    "rewritten",
    [b"", b"one\n", b"ONE\n" + b"one\n" * 999, b"one\n" * 999 + b"ONE\n", b"quite another one\n" * 1_000],
    ids=["empty", "shorter", "another beginning", "another end", "another"],
)
def test_what_was_written_anew_is_not_taken_for_the_same(
    path: Path, followed: FollowedFile, rewritten: bytes
) -> None:
    append(path, b"one\n" * 1_000)
    followed.read()
    mark = followed.mark()
    path.write_bytes(rewritten)
    with pytest.raises(FileRewritten):
        followed.read()
    again = open_regular_file(str(path))
    assert again is not None
    assert not again.resume(mark)
    again.close()


def test_the_end_is_after_the_last_whole_line(path: Path, followed: FollowedFile) -> None:
    append(path, b"one\ntwo\nthr")
    followed.to_the_end()
    assert followed.read() == b""
    append(path, b"ee\nfour\n")
    assert followed.read() == b"three\nfour\n"


def test_the_end_of_a_line_that_is_too_long_is_after_that_line(path: Path, followed: FollowedFile) -> None:
    append(path, b"x" * (2 * CHUNK))
    followed.to_the_end()
    append(path, b"xxx\nafter\n")
    assert followed.read() == b"after\n"


def test_last_words_count_once_nobody_goes_on(path: Path, followed: FollowedFile) -> None:
    append(path, b"one\nERROR: dying")
    assert followed.read() == b"one\n"
    assert followed.last_words() == b"ERROR: dying\n"
    assert followed.last_words() == b""


@pytest.mark.parametrize(
    "spelled", [{}, {"device": 1}, {"device": "1", "inode": 2, "offset": 3, "head": 4, "tail": 5}]
)
def test_a_mark_of_another_version_is_refused(spelled: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        mark_from_json(spelled)


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    assert open_regular_file(str(tmp_path)) is None
    assert open_regular_file(str(tmp_path / "missing")) is None
    assert open_regular_file("/dev/null") is None
