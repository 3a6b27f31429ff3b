"""`upulse backup` and `restore`: all comes back, nothing is overwritten, and what is not sound is refused."""

import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.backup.files import under_construction
from pulse_adapters.sqlite.backup.store import BackupWriter
from pulse_core.model.errors import PulseError
from tests.integration.cli.cli_home import ALLOW, CliHome, sleeper
from tests.long_form import sample, sampled
from upulse_cli.wiring import backup as backup_wiring


def written(home: CliHome, rows: int = 3) -> None:
    for number in range(rows):
        home.upulse("pause" if number % 2 else "resume", "--why", f"row {number}")


def rows_of(home: CliHome) -> list[dict[str, Any]]:
    return home.upulse("events", "--json").lines


def content(directory: Path) -> dict[str, bytes]:
    """Every file that matters, by its path: what SQLite keeps in -shm is only an index."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm") and "run/" not in path.as_posix()
    }


def alter(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as forger:
        triggers = forger.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            forger.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            forger.execute(statement)
        for _, sql in triggers:
            forger.execute(sql)
        forger.commit()


def large_row(home: CliHome) -> Path:
    """An event whose payload lies in the objects; its object."""
    home.upulse(
        "effect",
        "add",
        "run-command",
        "--key",
        "large",
        "--param",
        f"argv={json.dumps(['/bin/true', 'x' * 40_000])}",
    )
    (found,) = [path for path in (home.path / "objects").rglob("*") if path.is_file()]
    return found


@pytest.fixture
def backup(quiet: CliHome, tmp_path: Path) -> Path:
    """A backup of a home with a few rows."""
    written(quiet)
    quiet.upulse("backup", str(tmp_path / "backup"))
    return tmp_path / "backup"


def test_a_backup_is_a_home_of_its_own_and_its_owners_alone(quiet: CliHome, backup: Path) -> None:
    copy = CliHome(backup)
    assert copy.upulse("verify").out.startswith("ok: 3 rows")
    assert rows_of(copy) == rows_of(quiet)
    assert copy.upulse("config", "check").code == 0
    modes = {stat.S_IMODE(path.stat().st_mode) for path in backup.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (backup, backup / "objects")} == {0o700}


def test_verify_finds_what_would_keep_a_backup_from_being_put_back(quiet: CliHome, backup: Path) -> None:
    copy, settings = CliHome(backup), (backup / "config.toml").read_bytes()
    (backup / "config.toml").write_bytes(settings[:-1] + b" ")
    said = copy.upulse("verify", code=1).out
    assert said.startswith(f"damaged: {backup}/config.toml is not what was backed up")
    assert "is not what was backed up" in copy.upulse("verify", "--json", code=1).json["fault"]
    assert "is not what was backed up" in quiet.upulse("restore", str(backup), code=1).err
    (backup / "run").mkdir()  # as a daemon makes it: then it is a home, and no backup any more
    assert copy.upulse("verify").out.startswith("ok: 3 rows")


def test_more_settings_are_in_a_backup_and_come_back(quiet: CliHome, tmp_path: Path) -> None:
    written(quiet)
    (quiet.path / "conf.d").mkdir()
    (quiet.path / "conf.d" / "more.toml").write_text(sleeper("more", 1))
    quiet.upulse("backup", str(tmp_path / "backup"))
    fresh = CliHome(tmp_path / "fresh")
    fresh.upulse("restore", str(tmp_path / "backup"))
    assert content(fresh.path / "conf.d") == content(quiet.path / "conf.d")
    assert 'name = "more"' in fresh.upulse("config", "show").out


def test_a_backup_changes_nothing_in_the_home(quiet: CliHome, tmp_path: Path) -> None:
    written(quiet)
    with closing(sqlite3.connect(f"file:{quiet.path}/events.db?mode=ro", uri=True)) as other:
        other.execute("SELECT * FROM event").fetchone()
    before = content(quiet.path)
    quiet.upulse("backup", str(tmp_path / "backup"))
    after = content(quiet.path)
    assert after.pop("last-backup.json")
    assert after == before


def test_a_backup_tells_programs_what_is_in_it(quiet: CliHome, tmp_path: Path) -> None:
    written(quiet)
    told = quiet.upulse("backup", str(tmp_path / "backup"), "--json").json
    assert (told["path"], told["seq"], told["accepted"]) == (str(tmp_path / "backup"), 3, "")
    assert told["bytes"] > 10_000


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("home/backup", "is in the home itself"),
        ("home", "is in the home itself"),
        ("full", "is not empty; give a new name in it"),
        ("file", "no directory"),
        ("nowhere/backup", "there is no directory"),
        ("link/backup", "is in the home itself"),
        ("/proc", "is not empty"),
        ("/dev/shm", "is where a disk is mounted; give a new name in it, as /dev/shm/pulse"),
    ],
)
def test_where_no_backup_can_be_is_said(quiet: CliHome, tmp_path: Path, destination: str, words: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(quiet.path)
    if destination == "/dev/shm" and any(Path("/dev/shm").iterdir()):
        words = "is not empty"
    said = quiet.upulse("backup", os.path.join(tmp_path, destination), code=1).err
    assert words in said
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


def test_what_others_put_where_a_backup_is_made_is_neither_emptied_nor_followed(tmp_path: Path) -> None:
    (others := tmp_path / "others").mkdir()
    (others / "precious").touch()
    (work := tmp_path / ".backup.unfinished").symlink_to(others)
    with pytest.raises(PulseError, match="in the way"), under_construction(tmp_path / "backup"):
        pass
    assert (others / "precious").exists()
    if os.geteuid() == 0:
        work.unlink()
        others.rename(work)
        os.chown(work, 65534, 65534)
        with pytest.raises(PulseError, match="another user's"), under_construction(tmp_path / "backup"):
            pass
        assert (work / "precious").exists()


def test_a_backup_is_never_overwritten(quiet: CliHome, backup: Path) -> None:
    before = content(backup)
    assert "holds a backup already" in quiet.upulse("backup", str(backup), code=1).err
    assert content(backup) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_backup_whose_folder_is_swapped_meanwhile_is_written_nowhere_else(
    quiet: CliHome, tmp_path: Path, is_there: bool
) -> None:
    """As another user may do where root writes into his folder."""
    (victim := tmp_path / "victim").mkdir()
    (victim / "events.db").write_text("precious")
    (place := tmp_path / "place").mkdir()
    work, moved = place / ".backup.unfinished", place / "moved"

    def back_up() -> None:
        with under_construction(place / "backup") as held:
            work.rename(moved)
            if is_there:
                work.symlink_to(victim)
            BackupWriter(Home(quiet.path), held, lambda words: None).write()
            assert (moved / "events.db").exists()

    with pytest.raises(PulseError, match="somebody moved the backup away"):
        back_up()
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"events.db": "precious"}
    assert not list(moved.iterdir())


def test_an_empty_directory_will_do(quiet: CliHome, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    quiet.upulse("backup", str(tmp_path / "empty"))
    assert (tmp_path / "empty" / "backup.json").exists()


def test_what_a_killed_backup_left_is_replaced_and_a_running_one_is_not(
    quiet: CliHome, tmp_path: Path
) -> None:
    left = tmp_path / ".backup.unfinished"
    (left / "objects").mkdir(parents=True)
    (left / "events.db").write_bytes(b"half")
    with under_construction(tmp_path / "backup") as work:
        (work / "mark").touch()
        said = quiet.upulse("backup", str(tmp_path / "backup"), code=1).err
        assert "another backup is being made" in said
        assert (work / "mark").exists()
        (work / "mark").unlink()
    (tmp_path / "backup").rmdir()
    left.mkdir()
    (left / "events.db").write_bytes(b"half")
    quiet.upulse("backup", str(tmp_path / "backup"))
    assert not left.exists()


def test_a_backup_holds_what_rows_and_ticks_name_and_the_engine(quiet: CliHome, tmp_path: Path) -> None:
    engine = quiet.path / "engine"
    (engine / ".git" / "refs").mkdir(parents=True)
    (engine / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (engine / ".git" / "index.lock").touch()
    (engine / "rules.py").write_text("pass\n")
    (engine / "run.sh").write_text("#!/bin/sh\n")
    (engine / "run.sh").chmod(0o755)
    (engine / "link").symlink_to("rules.py")
    (engine / "gone").symlink_to("nowhere")
    named = large_row(quiet)
    (quiet.path / "objects" / "ab").mkdir()
    (quiet.path / "objects" / "ab" / ("c" * 62)).write_text("an orphan")
    quiet.upulse("backup", str(tmp_path / "backup"), code=1)  # such an engine is none
    files = set(content(tmp_path / "backup"))
    assert named.relative_to(quiet.path).as_posix() in files
    assert files >= {"engine/rules.py", "engine/.git/HEAD", "engine/run.sh"}
    assert not [name for name in files if "lock" in name or name.startswith("objects/ab")]
    assert stat.S_IMODE((tmp_path / "backup/engine/run.sh").stat().st_mode) == 0o700
    assert os.readlink(tmp_path / "backup/engine/gone") == "nowhere"

    fresh = CliHome(tmp_path / "fresh")
    fresh.upulse("restore", str(tmp_path / "backup"), code=1)
    assert os.readlink(fresh.path / "engine/link") == "rules.py"
    assert os.access(fresh.path / "engine/run.sh", os.X_OK)
    assert fresh.upulse("verify", "--no-engine").code == 0


DAMAGE: dict[str, Callable[[CliHome], object]] = {
    "row": lambda home: alter(home.path / "events.db", "UPDATE event SET subject = 'forged' WHERE seq = 2"),
    "object": lambda home: large_row(home).write_bytes(b"altered"),
    "lost object": lambda home: large_row(home).unlink(),
}


@pytest.mark.parametrize("damage", ["row", "object", "lost object"])
def test_a_damaged_log_is_not_backed_up(quiet: CliHome, tmp_path: Path, damage: str) -> None:
    written(quiet)
    DAMAGE[damage](quiet)
    said = quiet.upulse("backup", str(tmp_path / "backup"), code=1).err
    assert "nobody has accepted that" in said
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def live_a_moment(home: CliHome, *options: str) -> None:
    """A daemon, from its start to its stop."""
    home.start_daemon(*options)
    home.upulse("daemon", "stop")


@pytest.mark.parametrize("damage", ["row", "lost object"])
def test_damage_that_was_accepted_is_carried_along_and_said(
    quiet: CliHome, tmp_path: Path, damage: str
) -> None:
    quiet.configure(ALLOW)
    written(quiet)
    DAMAGE[damage](quiet)
    live_a_moment(quiet, "--accept-damage")
    said = quiet.upulse("backup", str(tmp_path / "backup")).err
    assert "It carries the damage that was accepted" in said
    other = CliHome(tmp_path / "other")
    other.upulse("restore", str(tmp_path / "backup"))
    assert [row["id"] for row in rows_of(other)[:-1]] == [row["id"] for row in rows_of(quiet)]
    assert other.upulse("backup", str(tmp_path / "again")).code == 0


def test_a_log_that_lost_rows_is_not_backed_up(quiet: CliHome, tmp_path: Path) -> None:
    quiet.configure(ALLOW)
    written(quiet)
    live_a_moment(quiet)
    assert (quiet.path / "state.db").exists()
    alter(quiet.path / "events.db", "DELETE FROM event WHERE seq > 3")
    said = quiet.upulse("backup", str(tmp_path / "backup"), code=1).err
    assert "row 4 is missing" in said


def test_rows_that_the_last_backup_had_must_be_there(quiet: CliHome, backup: Path, tmp_path: Path) -> None:
    alter(quiet.path / "events.db", "DELETE FROM event WHERE seq = 3")
    said = quiet.upulse("backup", str(tmp_path / "next"), code=1).err
    assert f"the backup in {backup} knows row 3, the log ends at row 2: rows are lost" in said
    quiet.upulse("restore", str(backup))
    quiet.upulse("backup", str(tmp_path / "next"))
    alter(quiet.path / "events.db", "DELETE FROM event WHERE seq = 4")  # the row that told of the restore
    assert "knows row 4" in quiet.upulse("backup", str(tmp_path / "another"), code=1).err


def test_a_log_that_was_restored_need_not_have_what_a_later_backup_had(
    quiet: CliHome, backup: Path, tmp_path: Path
) -> None:
    written(quiet)
    quiet.upulse("backup", str(tmp_path / "lost"))
    shutil.rmtree(tmp_path / "lost")
    quiet.upulse("restore", str(backup), "--no-tail")
    quiet.upulse("backup", str(tmp_path / "next"))
    assert quiet.upulse("doctor").code == 0


def test_damaged_may_lie_on_another_disk(quiet: CliHome, backup: Path) -> None:
    before = (quiet.path / "events.db").read_bytes()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        assert os.stat(other).st_dev != os.stat(quiet.path).st_dev
        (quiet.path / "damaged").symlink_to(other)
        quiet.upulse("restore", str(backup))
        assert Path(other, "1", "events.db").read_bytes() == before
    assert quiet.upulse("verify").code == 0


def test_a_restore_brings_back_all_of_it_to_a_new_home(quiet: CliHome, backup: Path, tmp_path: Path) -> None:
    fresh = CliHome(tmp_path / "fresh")
    outcome = fresh.upulse("restore", str(backup), "--json").json
    beside = {"events.db-wal", "events.db-shm"}  # whoever reads the log leaves these
    assert {path.name for path in fresh.path.iterdir()} - beside == {"config.toml", "events.db", "run"}
    assert {name: outcome[name] for name in ("rows", "salvaged", "lost", "kept_at")} == {
        "rows": 3, "salvaged": 0, "lost": 0, "kept_at": "",
    }  # fmt: skip
    *rows, restored = rows_of(fresh)
    assert rows == rows_of(quiet)
    assert restored["kind"] == "log-restored"
    assert restored["data"]["source"] == str(backup)
    assert fresh.upulse("verify").out.startswith("ok: 4 rows")
    assert (fresh.path / "config.toml").read_text() == (quiet.path / "config.toml").read_text()
    assert stat.S_IMODE(fresh.path.stat().st_mode) == 0o700


def test_what_a_shadow_wrote_is_backed_up_and_put_back_where_there_is_none(
    quiet: CliHome, tmp_path: Path
) -> None:
    diary, before = quiet.path / "shadow.jsonl", quiet.path / "shadow.jsonl.1"
    written(quiet)
    diary.write_text("new\n")
    before.write_text("old\n")
    quiet.upulse("backup", str(tmp_path / "backup"))
    fresh = CliHome(tmp_path / "fresh")
    fresh.upulse("restore", str(tmp_path / "backup"))
    assert [(fresh.path / path.name).read_text() for path in (diary, before)] == ["new\n", "old\n"]
    diary.write_text("newer\n")
    before.unlink()
    quiet.upulse("restore", str(tmp_path / "backup"))
    assert diary.read_text() == "newer\n"
    assert not before.exists()


def test_rows_after_the_backup_are_kept_and_the_old_log_is_set_aside(quiet: CliHome, backup: Path) -> None:
    written(quiet, 4)
    before, rows = (quiet.path / "events.db").read_bytes(), rows_of(quiet)
    said = quiet.upulse("restore", str(backup)).err
    assert "4 rows after them were still sound and are kept" in said
    assert "LOST" not in said
    assert rows_of(quiet)[:-1] == rows
    assert quiet.upulse("verify").code == 0
    assert (quiet.path / "damaged" / "1" / "events.db").read_bytes() == before
    quiet.upulse("restore", str(backup))
    assert (quiet.path / "damaged" / "2" / "events.db").exists()


def test_a_person_may_want_the_backup_alone(quiet: CliHome, backup: Path) -> None:
    written(quiet, 4)
    outcome = quiet.upulse("restore", str(backup), "--no-tail", "--json").json
    assert (outcome["salvaged"], outcome["lost"]) == (0, 4)
    assert [row["kind"] for row in rows_of(quiet)][3:] == ["log-restored"]


@pytest.mark.parametrize(
    ("statement", "salvaged", "lost"),
    sampled(
        [
            ("UPDATE event SET subject = 'forged' WHERE seq = 2", 4, 0),
            ("UPDATE event SET subject = 'forged' WHERE seq = 5", 1, 3),
            ("UPDATE event SET data = '{}' WHERE seq = 4", 0, 4),
            ("DELETE FROM event WHERE seq = 6", 2, 2),
            ("DELETE FROM event WHERE seq < 3", 4, 0),
        ],
        2,
    ),
)
def test_of_a_damaged_log_what_follows_the_backup_is_kept_as_far_as_it_is_sound(
    quiet: CliHome, backup: Path, statement: str, salvaged: int, lost: int
) -> None:
    written(quiet, 4)
    rows = rows_of(quiet)
    alter(quiet.path / "events.db", statement)
    assert quiet.upulse("verify", code=1)
    outcome = quiet.upulse("restore", str(backup), "--json").json
    assert (outcome["salvaged"], outcome["lost"]) == (salvaged, lost)
    assert bool(outcome["fault"]) == bool(lost)
    assert rows_of(quiet)[:-1] == rows[: 3 + salvaged]
    assert quiet.upulse("verify").code == 0


@pytest.mark.parametrize("damage", [b"", b"no database" * 5_000])
def test_a_log_that_cannot_be_read_at_all_is_replaced_and_what_is_known_to_be_lost_is_said(
    quiet: CliHome, backup: Path, tmp_path: Path, damage: bytes
) -> None:
    written(quiet, 2)
    quiet.upulse("backup", str(tmp_path / "newer"))
    (quiet.path / "events.db").write_bytes(damage)
    said = quiet.upulse("restore", str(backup)).err
    assert "LOST: 2 rows that the log once had" in said  # the newer backup knew them
    assert quiet.upulse("verify").code == 0
    assert (quiet.path / "damaged" / "1" / "events.db").read_bytes() == damage


def test_a_log_that_is_gone_is_put_back(quiet: CliHome, backup: Path) -> None:
    for path in quiet.path.glob("events.db*"):
        path.unlink()
    quiet.upulse("restore", str(backup))
    assert quiet.upulse("verify").out.startswith("ok: 4 rows")


def test_an_altered_object_is_replaced_and_kept_aside(quiet: CliHome, tmp_path: Path) -> None:
    path = large_row(quiet)
    quiet.upulse("backup", str(tmp_path / "backup"))
    path.write_bytes(b"altered")
    assert quiet.upulse("verify", code=1)
    quiet.upulse("restore", str(tmp_path / "backup"))
    assert quiet.upulse("verify").code == 0
    assert sha256(path.read_bytes()).hexdigest() == path.parent.name + path.name
    aside = quiet.path / "damaged" / "1" / path.relative_to(quiet.path)
    assert aside.read_bytes() == b"altered"


def test_settings_of_now_are_left_as_they_are(quiet: CliHome, backup: Path) -> None:
    quiet.configure(sleeper("other", 5))
    outcome = quiet.upulse("restore", str(backup), "--json").json
    assert "config.toml is left as it is" in outcome["notes"][0]
    assert "other" in (quiet.path / "config.toml").read_text()


def test_a_log_whose_pages_changed_places_is_not_that_of_another_home(quiet: CliHome, backup: Path) -> None:
    with closing(sqlite3.connect(quiet.path / "events.db")) as hand:
        hand.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        names = ("meta", "event")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        pages = [hand.execute(sql, (name,)).fetchone()[0] for name in names]
    with (quiet.path / "events.db").open("r+b") as file:
        one, other = (os.pread(file.fileno(), 4096, (page - 1) * 4096) for page in pages)
        os.pwrite(file.fileno(), other, (pages[0] - 1) * 4096)
        os.pwrite(file.fileno(), one, (pages[1] - 1) * 4096)
    assert "another home" not in quiet.upulse("verify", code=1).out
    quiet.upulse("restore", str(backup))
    quiet.upulse("verify")


def test_a_backup_of_another_home_is_refused(quiet: CliHome, backup: Path, tmp_path: Path) -> None:
    other = CliHome(tmp_path / "other")
    other.upulse("init")
    before = content(other.path)
    said = other.upulse("restore", str(backup), code=1).err
    assert "is of another home" in said
    assert content(other.path) == before


def test_nothing_is_restored_while_a_daemon_runs(
    live: CliHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_wiring, "WAIT", 0.1)
    live.upulse("backup", str(tmp_path / "backup"))
    assert "is held by process" in live.upulse("restore", str(tmp_path / "backup"), code=1).err
    assert live.upulse("verify").code == 0


@pytest.mark.parametrize("name", sampled(["events.db", "config.toml", "backup.json", "objects"], 3))
@pytest.mark.parametrize("how", ["altered", "cut short", "gone"])
def test_a_backup_that_is_not_what_was_written_is_refused(
    quiet: CliHome, tmp_path: Path, name: str, how: str
) -> None:
    large = large_row(quiet).relative_to(quiet.path)
    backup = tmp_path / "backup"
    quiet.upulse("backup", str(backup))
    path = backup / (large if name == "objects" else name)
    blob = path.read_bytes()
    middle = len(blob) // 2
    match how:
        case "altered":
            path.write_bytes(blob[:middle] + bytes([blob[middle] ^ 4]) + blob[middle + 1 :])
        case "cut short":
            path.write_bytes(blob[:middle])
        case "gone":
            path.unlink()
    before = content(quiet.path)
    said = quiet.upulse("restore", str(backup), code=1).err
    assert "another" in said or "no backup" in said
    assert content(quiet.path) == before


def test_what_is_no_backup_is_refused(quiet: CliHome, tmp_path: Path) -> None:
    assert "is no backup" in quiet.upulse("restore", str(tmp_path), code=1).err
    assert "is no backup" in quiet.upulse("restore", str(tmp_path / "nowhere"), code=1).err


def test_a_backup_of_a_newer_pulse_is_refused(quiet: CliHome, backup: Path) -> None:
    manifest = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps({**manifest, "format": 2, "version": "9.9"}))
    assert "newer Pulse (9.9)" in quiet.upulse("restore", str(backup), code=1).err


def test_a_backup_can_lie_where_nobody_may_write(quiet: CliHome, backup: Path) -> None:
    for path in (*backup.rglob("*"), backup):
        path.chmod(0o500 if path.is_dir() else 0o400)
    quiet.upulse("restore", str(backup))
    assert quiet.upulse("verify").code == 0


LAST = ("sample", "id"), ("tick", "tick")


def test_vitals_come_back_where_there_are_none_and_their_ids_are_not_given_twice(
    quiet: CliHome, tmp_path: Path
) -> None:
    quiet.configure("# nothing\n")
    live_a_moment(quiet)
    quiet.upulse("backup", str(tmp_path / "backup"))

    def last() -> tuple[int, int]:
        """The last sample and tick; a daemon that was soon stopped may have none."""
        with closing(sqlite3.connect(quiet.path / "vitals.db")) as vitals:
            found = [vitals.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] for table, key in LAST]
        return found[0] or 0, found[1] or 0

    sample_before, tick_before = last()
    (quiet.path / "vitals.db").write_bytes(b"no database" * 1_000)
    outcome = quiet.upulse("restore", str(tmp_path / "backup"), "--json").json
    assert "vitals.db could not be used" in outcome["notes"][0]
    assert last()[0] > sample_before
    assert last()[1] == tick_before


def test_a_home_without_vitals_and_objects_is_backed_up(quiet: CliHome, tmp_path: Path) -> None:
    shutil.rmtree(quiet.path / "objects", ignore_errors=True)
    quiet.upulse("backup", str(tmp_path / "backup"))
    assert set(content(tmp_path / "backup")) == {"backup.json", "config.toml", "events.db"}


HARMS = ("refs", "object", "all", "repository", "staging")


@pytest.mark.parametrize("harm", sample(HARMS[:1], HARMS))
def test_a_broken_engine_is_backed_up_and_said_to_be_broken(
    quiet: CliHome, tmp_path: Path, harm: str
) -> None:
    quiet.upulse("init")
    quiet.upulse("backup", str(tmp_path / "whole"))
    git = quiet.path / "engine/.git"
    if harm == "object":
        one = next(path for path in (git / "objects").glob("??/*") if path.is_file())
        one.chmod(0o600)
        one.write_bytes(os.urandom(300))
    else:
        harmed = {"refs": "refs", "all": "objects", "staging": "refs/heads/staging"}.get(harm, "")
        (git / harmed).unlink() if harm == "staging" else shutil.rmtree(git / harmed)
    said = quiet.upulse("backup", str(tmp_path / "broken"), code=1)
    assert "BROKEN: the engine in it: " in said.err
    told = quiet.upulse("backup", str(tmp_path / "as json"), "--json", code=1).json
    assert told["engine_fault"]
    assert "broken: the engine: " in CliHome(tmp_path / "broken").upulse("verify", code=1).out
    assert "broken: " not in CliHome(tmp_path / "whole").upulse("verify").out

    here = quiet.upulse("restore", str(tmp_path / "whole"), code=1).err
    assert "NOT RESTORED: the engine: " in here
    assert f"move {quiet.path / 'engine'} away, and restore again" in here
    new = CliHome(tmp_path / "new")
    assert "take engine/ from an earlier one" in new.upulse("restore", str(tmp_path / "broken"), code=1).err
    shutil.move(quiet.path / "engine", tmp_path / "away")
    assert quiet.upulse("restore", str(tmp_path / "whole"), "--json").json["engine_fault"] == ""
    assert quiet.upulse("verify", "--json").json["engine_fault"] == ""


def test_what_killed_backups_left_in_the_folder_is_removed_but_nothing_else(
    quiet: CliHome, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    for name, part in ((".monday.unfinished", "events.db"), (".notes.unfinished", "letter")):
        (folder / name).mkdir(parents=True)
        (folder / name / part).touch()
        os.utime(folder / name, (0, 0))
    with under_construction(folder / "at work"):
        os.utime(folder / ".at work.unfinished", (0, 0))
        quiet.upulse("backup", str(folder / "tuesday"))
        left = {path.name for path in folder.iterdir()}
    assert left == {".at work.unfinished", ".notes.unfinished", "tuesday"}


def test_a_restore_into_a_new_home_has_no_vitals_to_speak_of(quiet: CliHome, tmp_path: Path) -> None:
    quiet.start_daemon()
    quiet.end_everything()
    quiet.upulse("backup", str(tmp_path / "backup"))
    said = CliHome(tmp_path / "new").upulse("restore", str(tmp_path / "backup"))
    assert "vitals.db" not in f"{said.out}{said.err}"
    assert (tmp_path / "new" / "vitals.db").exists()
