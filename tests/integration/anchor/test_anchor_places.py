"""Lines that are kept outside of a home: in a file, and in the journal."""

import errno
import os
import resource
import signal
import socket
from pathlib import Path

import pytest

from pulse_adapters.anchor.places import add_to_file, add_to_journal, lines_of_file, lines_of_journal
from pulse_core.model.errors import PulseError


def test_lines_are_added_to_a_file_and_none_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    path.write_text("first\n")
    assert not add_to_file(path, "second")
    assert add_to_file(tmp_path / "another", "first")
    assert list(lines_of_file(path)) == ["first\n", "second\n"]


def test_a_line_without_an_end_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    path.write_text("x" * 1_000_000 + "\nlast\n")
    *pieces, last = lines_of_file(path)
    assert max(map(len, pieces)) < 100_000
    assert last == "last\n"


def test_a_file_that_is_larger_than_any_anchor_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    path.touch()
    os.truncate(path, 20 * 2**30)
    with pytest.raises(PulseError, match="more than 1024 MiB"):
        next(lines_of_file(path))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), Path.mkdir])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, make: object) -> None:
    path = tmp_path / "anchor"
    make(path)  # type: ignore[operator]
    with pytest.raises((PulseError, OSError)):
        add_to_file(path, "line")
    with pytest.raises(PulseError):
        list(lines_of_file(path))


def test_a_line_of_which_only_a_part_was_written_is_an_error(tmp_path: Path) -> None:
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN  # as Python has it
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        with pytest.raises(PulseError, match="only a part"):
            add_to_file(tmp_path / "anchor", "a line")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert add_to_file(tmp_path / "anchor", "a line"), "that the file is begun is still to be said"
    assert (tmp_path / "anchor").read_text() == "a line\n"


def test_a_first_line_that_fails_takes_no_line_with_it_that_another_home_has_added_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "anchor"

    def fail(handle: int) -> None:
        with path.open("a") as other:
            other.write("another's\n")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        add_to_file(path, "a line")
    assert "another's\n" in lines_of_file(path)


@pytest.mark.parametrize("end", ["sec", "\0" * 9])
def test_a_line_behind_one_that_was_broken_off_is_a_line_of_its_own(tmp_path: Path, end: str) -> None:
    path = tmp_path / "anchor"
    path.write_text(f"first\n{end}")
    add_to_file(path, "third")
    assert list(lines_of_file(path)) == ["first\n", f"{end}\n", "third\n"]


def test_the_journal_is_told_who_speaks(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(tmp_path / "journal"))
        add_to_journal("a line", tmp_path / "journal")
        said = journal.recv(1000).decode().splitlines()
    assert said == ["MESSAGE=a line", "SYSLOG_IDENTIFIER=pulse-anchor", "PRIORITY=6"]


def test_the_journal_is_read_by_who_has_spoken(tmp_path: Path) -> None:
    program = tmp_path / "journalctl"
    program.write_text('#!/bin/sh\necho "$@"\nprintf "\\\\377\\\\n"\necho a line\n')
    program.chmod(0o755)
    asked, binary, line = lines_of_journal({7, 0}, str(program))
    assert asked.endswith(" SYSLOG_IDENTIFIER=pulse-anchor _TRANSPORT=journal _UID=0 _UID=7")
    assert (binary, line) == ("\ufffd", "a line")
    program.write_text("#!/bin/sh\nexec yes")
    endless = lines_of_journal({7, 0}, str(program))
    assert next(endless) == "y"
    endless.close()  # type: ignore[attr-defined]
    program.write_text("#!/bin/sh\necho first; exec sleep 60")
    with pytest.raises(PulseError, match=r"within 0\.1 s"):
        list(lines_of_journal({7, 0}, str(program), 0.1))
    program.write_text("#!/bin/sh\necho it is broken >&2; exit 1")
    with pytest.raises(PulseError, match="it is broken"):
        list(lines_of_journal({7, 0}, str(program)))
    with pytest.raises(PulseError, match="no journalctl"):
        list(lines_of_journal({7, 0}, str(tmp_path / "nothing")))
