"""A log whose chain was recomputed to the end, or a whole home that was forged: whoever knew a row of it can tell."""

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, link, seal
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.anchor import Anchor
from pulse_core.model.event import Draft, Head
from pulse_core.model.kinds import LogVerified
from tests.integration.cli.cli_home import CliHome, eventually
from upulse_cli.wiring import verify as verify_wiring


def forge(home: Path) -> None:
    """Say something else in the second row, and compute all chain values anew, as one who knows how it is done."""
    with closing(sqlite3.connect(home / "events.db", isolation_level=None)) as hand:
        rows = [list(row) for row in hand.execute(f"SELECT {ALL_COLUMNS} FROM event ORDER BY seq")]
        trigger = hand.execute("SELECT sql FROM sqlite_schema WHERE name = 'event_never_changes'").fetchone()
        hand.execute("DROP TRIGGER event_never_changes")
        chain = START
        for row in rows:
            if row[0] == 2:
                row[10] = json.dumps({"why": "forged"})
            row[11] = hashlib.sha256(row[10].encode()).digest()
            chain = link(chain, row[0], seal(tuple(row[1:10]), row[11]))
            hand.execute(
                "UPDATE event SET data = ?, data_sha256 = ?, chain = ? WHERE seq = ?",
                (*row[10:12], chain, row[0]),
            )
        hand.execute(*trigger)
    for path in home.glob("state.db*"):
        path.unlink()


@pytest.fixture(autouse=True)
def rows(quiet: CliHome) -> None:
    for number in range(3):
        quiet.upulse("pause", "--why", f"reason {number}")


def head_of(home: Path, at: int = 0) -> Anchor:
    with closing(sqlite3.connect(home / "events.db")) as log:
        seq, chain, host, last = log.execute(
            "SELECT seq, chain, host, at FROM event ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    return Anchor(host, str(home), Head(seq, chain), at or last)


def anchored(quiet: CliHome, *lines: str) -> Path:
    path = quiet.path.parent / "anchor"
    path.write_text("".join(f"{line}\n" for line in lines))
    with (quiet.path / "config.toml").open("a") as config:
        config.write(f'\n[anchor]\nfile = "{path}"\n')
    return path


def test_the_last_backup_knows_a_row_that_was_computed_anew(quiet: CliHome, tmp_path: Path) -> None:
    quiet.upulse("backup", str(tmp_path / "backup"))
    quiet.upulse("verify")
    forge(quiet.path)
    words = quiet.upulse("verify", code=1).out
    assert "is not the one that the backup of" in words
    assert "rows fit each other" in words


def test_what_the_home_says_of_its_backup_is_not_all_that_counts(quiet: CliHome, tmp_path: Path) -> None:
    quiet.upulse("backup", str(tmp_path / "backup"))
    forge(quiet.path)
    note = quiet.path / "last-backup.json"
    head = head_of(quiet.path).head
    note.write_text(json.dumps(json.loads(note.read_text()) | {"seq": head.seq, "chain": head.chain.hex()}))
    assert "is not the one that the backup of" in quiet.upulse("verify", code=1).out


def test_a_home_that_was_forged_as_a_whole_is_found_by_its_anchor(quiet: CliHome) -> None:
    anchored(quiet, "junk", head_of(quiet.path).line(), '{"home": "cut sho')
    quiet.upulse("verify")
    assert found_by_doctor(quiet)["level"] == "ok"
    forge(quiet.path)
    assert "is not the one that the anchor" in quiet.upulse("verify", code=1).out
    assert "is not the one that the anchor" in found_by_doctor(quiet, code=1)["words"]


def test_a_backup_is_whole_though_its_anchor_knows_rows_that_came_later(
    quiet: CliHome, tmp_path: Path
) -> None:
    path, backup = anchored(quiet, head_of(quiet.path).line()), tmp_path / "backup"
    quiet.upulse("backup", str(backup))
    quiet.upulse("pause", "--why", "later")
    later = head_of(quiet.path)
    path.write_text(f"{later.line()}\n")
    found = CliHome(backup).upulse("verify", "--json").json
    assert found["fault"] == ""
    assert f"knows row {later.head.seq}, which came after this backup" in found["notes"][0]
    path.write_text(
        f"{later._replace(path=str(backup)).line()}\n"
    )  # it was cut where it lies, and made to look like one
    assert "rows are lost" in CliHome(backup).upulse("verify", code=1).out


def found_by_doctor(home: CliHome, code: int = 0) -> dict[str, str]:
    (anchor,) = [
        one for one in home.upulse("doctor", "--json", code=code).json["findings"] if one["name"] == "anchor"
    ]
    return dict(anchor)


def test_an_anchor_file_that_lacks_what_it_knew_is_said(quiet: CliHome) -> None:
    older = head_of(quiet.path)
    quiet.upulse("pause", "--why", "later")
    newest = head_of(quiet.path)
    path = anchored(quiet, older.line(), newest.line())
    checked = quiet.upulse("verify", "--json").json
    assert checked["anchored"] == {str(path): newest.head.seq}
    asyncio.run(record_check(quiet.path, checked["anchored"]))
    last = head_of(quiet.path)
    for lines, is_cut in (
        ((older, newest), False),
        ((older,), True),
        ((older, last), True),  # as after a start of the daemon
        ((last,), False),  # begun anew, as the daemon has told
    ):
        path.write_text("".join(f"{one.line()}\n" for one in lines))
        said = quiet.upulse("verify", "--json", code=int(is_cut)).json["fault"]
        assert (f"does not know row {newest.head.seq} any more" in said) == is_cut
        assert found_by_doctor(quiet, code=int(is_cut))["level"] == ("fail" if is_cut else "ok")


async def record_check(home: Path, anchored: dict[str, int]) -> None:
    """Record what the daemon finds when it reads the whole log."""
    opened = SqliteEventLog.open(
        home / "events.db", clock=SystemClock(), objects=FileObjects(home / "objects")
    )
    async with opened as log:
        await log.append(Draft(LogVerified(rows=4, took_ms=1, anchored=anchored)))


@contextmanager
def running(home: CliHome) -> Iterator[None]:
    home.start_daemon()
    try:
        yield
    finally:
        home.end_everything()


def forget_settings(home: Path) -> None:
    """Whoever forges the home forges its settings, too."""
    config = home / "config.toml"
    config.write_text(config.read_text().partition("[anchor]")[0])


def test_an_anchor_that_the_caller_names_is_asked(quiet: CliHome) -> None:
    path = anchored(quiet, head_of(quiet.path).line())
    forge(quiet.path)
    forget_settings(quiet.path)
    quiet.upulse("verify")
    assert "is not the one that the anchor" in quiet.upulse("verify", "--anchor", str(path), code=1).out
    assert "is not there" in quiet.upulse("verify", "--anchor", "/nonexistent/anchor", code=1).out


@pytest.mark.parametrize("who", ["this home", "another, that is older", "another, that is younger"])
def test_the_journal_is_asked_whoever_names_it(
    quiet: CliHome, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    anchor = head_of(quiet.path)
    if who != "this home":
        at = 1 if who == "another, that is older" else anchor.at
        anchor = anchor._replace(home="another", at=at)
    lines = [anchor._replace(path="/elsewhere", home="any").line(), anchor.line()]
    monkeypatch.setattr(
        verify_wiring, "lines_of_journal", lambda uids: iter(lines if uids == {0, os.geteuid()} else ())
    )
    forge(quiet.path)
    said = quiet.upulse("verify", code=int(who != "another, that is older"))
    words = {
        "this home": "is not the one that the anchor in the journal",
        "another, that is older": "this one was begun later",
        "another, that is younger": "it is another one",
    }
    assert words[who] in f"{said.out}{said.err}"


def test_a_daemon_records_where_it_anchors_and_settings_that_name_it_no_more_are_a_fault(
    quiet: CliHome,
) -> None:
    path = quiet.path.parent / "anchor"
    with (quiet.path / "config.toml").open("a") as config:
        config.write(f'\n[anchor]\nfile = "{path}"\n')
    with running(quiet):
        eventually(path.exists, "the anchor is written")
    with running(quiet):
        pass
    (one,) = quiet.upulse("events", "--kind", "anchor-places", "--json").lines
    assert one["data"]["places"] == [str(path)]
    quiet.upulse("verify")
    quiet.upulse("backup", str(quiet.path.parent / "backup"))
    whole = path.read_bytes()
    for content in (None, b"", bytes(1_000)):
        path.unlink() if content is None else path.write_bytes(content)
        said = quiet.upulse("verify", code=1).out
        assert "nobody there vouches for the rows; put it back" in said
        assert ("is not there" if content is None else "knows nothing of this log") in said
        there = CliHome(quiet.path.parent / "backup").upulse("verify")
        assert "nobody there vouches for the rows" in there.err
    path.write_bytes(whole)
    (quiet.path / "last-backup.json").unlink()
    quiet.upulse("verify")
    forget_settings(quiet.path)
    assert "the settings do not name it" in quiet.upulse("verify", code=1).out
    forge(quiet.path)
    assert "is not the one that the anchor" in quiet.upulse("verify", code=1).out
    with running(quiet):
        eventually(
            lambda: len(quiet.upulse("events", "--kind", "anchor-places", "--json").lines) == 2,
            "it is recorded",
        )
    assert "put it back into [anchor]" in quiet.upulse("events", "--kind", "error").out
    told = [one["words"] for one in quiet.upulse("doctor", "--json", code=1).json["findings"]]
    assert any("within the hour: " in one and "put it back into [anchor]" in one for one in told)


def test_a_log_whose_places_were_redacted_is_verified_all_the_same(quiet: CliHome) -> None:
    with (quiet.path / "config.toml").open("a") as config:
        config.write(f'\n[anchor]\nfile = "{quiet.path.parent / "anchor"}"\n')
    with running(quiet):
        pass
    (one,) = quiet.upulse("events", "--kind", "anchor-places", "--json").lines
    quiet.upulse("redact", one["id"], "--why", "a name", "--yes")
    quiet.upulse("verify")


def test_rows_that_the_anchor_knows_and_the_log_lacks_are_lost(quiet: CliHome) -> None:
    anchor = head_of(quiet.path)
    anchored(quiet, anchor._replace(head=Head(99, anchor.head.chain)).line())
    assert "knows row 99, the log ends at row" in quiet.upulse("verify", code=1).out


def test_a_restore_says_that_rows_are_lost_which_only_the_anchor_knows(
    quiet: CliHome, tmp_path: Path
) -> None:
    quiet.upulse("backup", str(tmp_path / "backup"))
    for number in range(3):
        quiet.upulse("pause", "--why", f"later {number}")
    anchored(quiet, head_of(quiet.path).line())
    with closing(sqlite3.connect(quiet.path / "events.db", isolation_level=None)) as hand:
        hand.execute("DROP TRIGGER event_never_goes")
        hand.execute("DELETE FROM event WHERE seq > 2")
    for path in quiet.path.glob("state.db*"):
        path.unlink()
    (quiet.path / "last-backup.json").unlink()
    assert quiet.upulse("restore", str(tmp_path / "backup"), "--json").json["lost"] == 3


def test_another_home_in_the_place_of_the_one_that_is_known(quiet: CliHome) -> None:
    anchored(quiet, head_of(quiet.path)._replace(home="another").line())
    assert "it is another one" in quiet.upulse("verify", code=1).out


def test_an_anchor_that_is_gone_is_said_and_is_no_damage(quiet: CliHome) -> None:
    anchored(quiet).unlink()
    assert "is not there" in quiet.upulse("verify").err


def test_a_home_that_was_put_back_may_lack_what_the_anchor_knew_before(
    quiet: CliHome, tmp_path: Path
) -> None:
    quiet.upulse("backup", str(tmp_path / "backup"))
    quiet.upulse("pause", "--why", "later")
    anchored(quiet, head_of(quiet.path).line())
    shutil.copy(quiet.path / "config.toml", tmp_path)
    quiet.upulse("restore", str(tmp_path / "backup"), "--no-tail")
    shutil.copy(tmp_path / "config.toml", quiet.path)
    assert "of the log before row" in quiet.upulse("verify").err


def test_where_nobody_else_knows_its_rows_the_log_is_read_without_the_models_of_settings(
    quiet: CliHome,
) -> None:
    """Each daemon has a process do that soon after its start; with them it takes three times as long."""
    code = "import sys; from upulse_cli.__main__ import main; main(sys.argv[1:]); print('pydantic' in sys.modules)"
    argv = [sys.executable, "-c", code, "verify", "--json", "--home", str(quiet.path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    verdict, has_models = done.stdout.splitlines()
    assert json.loads(verdict)["rows"] == 3
    assert has_models == "False"
