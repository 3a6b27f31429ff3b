"""`upulse redact`: what an event says is taken out, and where else it is, is said."""

import shutil
import sqlite3
from contextlib import closing

from tests.integration.cli.cli_home import CliHome

SECRET = "sesame-open-the-door"


def paused(quiet: CliHome) -> str:
    quiet.upulse("pause", "--why", SECRET)
    return str(quiet.upulse("events", "--kind", "paused", "--json").lines[-1]["id"])


def test_what_is_redacted_is_shown_to_nobody_and_the_chain_holds(quiet: CliHome) -> None:
    name = paused(quiet)
    told = quiet.upulse("redact", name, "--why", "a password", "--yes")
    assert "Redacted: 1 event" in told.err
    shown = quiet.upulse("events", "--json")
    assert SECRET not in shown.out
    said = next(event for event in shown.lines if event["kind"] == "event-redacted")
    assert (said["subject"], said["data"]["why"]) == (name, "a password")
    assert len(said["data"]["sha256"]) == 64
    quiet.upulse("verify")
    assert "already" in quiet.upulse("redact", name, "--why", "again", "--yes", code=1).err


def test_what_a_redaction_that_was_killed_has_left_is_gone_once_somebody_redacts_again(
    quiet: CliHome,
) -> None:
    name, killed = paused(quiet), quiet.path / "killed"
    killed.mkdir()
    with closing(sqlite3.connect(quiet.path / "events.db")) as reader:  # so that the -wal stays
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM event").fetchone()
        quiet.upulse("redact", name, "--why", "a password", "--yes")
        for file in ("events.db", "events.db-wal"):
            shutil.copy(quiet.path / file, killed)
    for copy in killed.iterdir():
        copy.replace(quiet.path / copy.name)
    assert SECRET.encode() in (quiet.path / "events.db").read_bytes()
    assert "already" in quiet.upulse("redact", name, "--why", "again", "--yes", code=1).err
    for left in quiet.path.glob("events.db*"):
        assert SECRET.encode() not in left.read_bytes(), left


def test_the_same_call_finishes_a_redaction_that_was_killed_between_two_events(quiet: CliHome) -> None:
    first, second = paused(quiet), paused(quiet)
    quiet.upulse("redact", first, "--why", "a password", "--yes")
    told = quiet.upulse("redact", first, second, "--why", "a password", "--yes")
    assert "Redacted: 1 event" in told.err
    assert SECRET not in quiet.upulse("events", "--json").out
    quiet.upulse("verify")
    told = quiet.upulse("redact", first, second, "--why", "a password", "--yes", code=1)
    assert f"what {first} said was taken out already" in told.err


def test_what_may_not_be_redacted_is_refused_before_anything_else_is(quiet: CliHome) -> None:
    first, second = paused(quiet), paused(quiet)
    quiet.upulse("redact", first, "--why", "a password", "--yes")
    kept = str(quiet.upulse("events", "--kind", "event-redacted", "--json").lines[-1]["id"])
    told = quiet.upulse("redact", second, kept, "--why", "x", "--yes", code=1)
    assert "can't be redacted" in told.err
    assert SECRET in quiet.upulse("events", "--json").out


def test_a_person_is_asked_first_and_may_refuse(quiet: CliHome) -> None:
    name = paused(quiet)
    quiet.upulse("redact", name, "--why", "a password", code=1)  # nobody answers
    assert SECRET in quiet.upulse("events", "--json").out


def test_the_files_that_still_have_it_are_named(quiet: CliHome) -> None:
    name = paused(quiet)
    copy = quiet.path / "notes.txt"
    copy.write_text(f"… {SECRET} …")
    told = quiet.upulse("redact", name, "--why", "a password", "--yes", "--json")
    assert told.json["remains"] == [str(copy)]


def test_indexes_are_mended_by_the_doctor(quiet: CliHome) -> None:
    for _ in range(3):
        paused(quiet)
    with closing(sqlite3.connect(quiet.path / "events.db")) as hand:
        root = hand.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event_subject'").fetchone()[0]
        size = hand.execute("PRAGMA page_size").fetchone()[0]
    with (quiet.path / "events.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes([0x0A, 0, 0, 0, 0, 0x10, 0, 0]) + bytes(size - 8))
    assert "an index of the log does not agree" in quiet.upulse("verify", code=1).out
    quiet.upulse("doctor", "--repair")
    quiet.upulse("verify")
