"""`upulse doctor`: each trouble is named with what to do, and `--repair` mends what is safe and nothing else."""

import asyncio
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import sys
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.checks import HostChecks, file_system_type
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.workers.posix_spawn import can_spawn_in_group
from pulse_core.app.doctor import DaemonChecks
from pulse_core.model.event import Checkpoint, Draft, Event
from pulse_core.model.kinds import DaemonStarted, LogVerified
from pulse_core.model.moment import Moment
from tests.campaign.broken_off import mortal, steps
from tests.integration.cli.cli_home import ALLOW, CliHome
from tests.long_form import sampled
from upulse_cli.wiring.home import home_context

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def findings(home: CliHome, *options: str, code: int) -> dict[str, dict[str, Any]]:
    """What the doctor finds, by name; of several under one name the worst."""
    rank = ("ok", "warn", "fail")
    found: dict[str, dict[str, Any]] = {}
    for one in home.upulse("doctor", "--json", *options, code=code).json["findings"]:
        if one["name"] not in found or rank.index(found[one["name"]]["level"]) < rank.index(one["level"]):
            found[one["name"]] = one
    return found


def written(home: CliHome, rows: int = 3) -> None:
    for number in range(rows):
        home.upulse("pause" if number % 2 else "resume", "--why", f"row {number}")


def live_a_moment(home: CliHome) -> None:
    home.start_daemon()
    home.upulse("daemon", "stop")


def alter(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as forger:
        triggers = forger.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            forger.execute(f"DROP TRIGGER {name}")
        forger.execute(statement)
        for _, sql in triggers:
            forger.execute(sql)
        forger.commit()


def test_the_log_of_another_home_is_named_as_that(quiet: CliHome, tmp_path: Path) -> None:
    written(quiet, 1)
    with SqliteEventReader(quiet.path) as log:
        checkpoints = SqliteCheckpoints(quiet.path / "state.db", log.host())
        asyncio.run(checkpoints.save({"any": Checkpoint(1, log.head(), "{}")}))
    quiet.upulse("backup", str(tmp_path / "backup"))
    other = CliHome(tmp_path / "other")
    other.upulse("init", "--no-engine")
    written(other, 5)
    os.replace(other.path / "events.db", quiet.path / "events.db")
    words = f"{quiet.path}/events.db is the log of another home"
    assert f"damaged: {words}" in (said := quiet.upulse("verify", code=1).out)
    assert said.endswith("5 rows fit each other\n")
    found = findings(quiet, code=1)
    for name in ("log", "state", "backup"):
        assert found[name]["words"].startswith(words), name
    for command in (("pause", "--why", "any"), ("backup", str(tmp_path / "second"))):
        assert quiet.upulse(*command, code=1).err.startswith(words)
    (quiet.path / "state.db").unlink()
    assert "the backup of" in quiet.upulse("verify", code=1).out


def test_a_home_that_lives_is_well(live: CliHome, tmp_path: Path) -> None:
    live.upulse("backup", str(tmp_path / "backup"))
    found = findings(live, code=0)
    assert [one for one in found.values() if one["level"] == "fail"] == []
    well = ("python", "packages", "sqlite", "extras", "pidfd", "process trees", "locks", "access", "owner", "reserve",
            "log", "backup", "settings", "daemon")  # fmt: skip
    assert {name: found[name]["level"] for name in well} == dict.fromkeys(well, "ok")
    is_born = "are born in their control groups" in found["process trees"]["words"]
    assert is_born == can_spawn_in_group()
    assert found["sqlite"]["words"].startswith(f"SQLite {sqlite3.sqlite_version}")
    assert (
        "only whoever holds the home's lock writes" in found["sqlite"]["words"]
        or "with the fix" in found["sqlite"]["words"]
    )


def test_a_person_reads_a_line_each_with_what_to_do_below_it(quiet: CliHome) -> None:
    quiet.path.chmod(0o755)
    said = quiet.upulse("doctor", code=1).out.splitlines()
    line = next(number for number, text in enumerate(said) if text.startswith("fail access"))
    assert "has mode 0755" in said[line]
    assert said[line + 1].strip() == f"→ chmod 700 {quiet.path}"
    assert said[-1].startswith("1 failure, ")


def test_without_a_home_there_is_nothing_to_look_at(quiet: CliHome, tmp_path: Path) -> None:
    assert "upulse init" in CliHome(tmp_path / "nothing").upulse("doctor", code=1).err


def repaired(home: CliHome, name: str, words: str, level: str, *, well: str = "ok") -> None:
    """It is found, repaired once, and then well."""
    before = findings(home, code=1 if level == "fail" else 0)[name]
    assert (before["level"], words in before["words"]) == (level, True), before
    told = home.upulse("doctor", "--repair", "--json", code=0).json
    assert [done for done in told["repaired"] if done.startswith(f"{name}: ")]
    assert [one["level"] for one in told["findings"] if one["name"] == name] in ([well], [well] * 2, [])
    assert not [
        done for done in home.upulse("doctor", "--repair", "--json").json["repaired"] if done.startswith(name)
    ]


def test_a_home_that_others_may_read_is_closed(quiet: CliHome) -> None:
    (quiet.path / "run").chmod(0o770)
    repaired(quiet, "access", "has mode 0770", "fail")
    assert stat.S_IMODE((quiet.path / "run").stat().st_mode) == 0o700


@ROOT
def test_files_of_somebody_else_are_given_back(quiet: CliHome) -> None:
    os.chown(quiet.path / "events.db", 12_345, 12_345)
    repaired(quiet, "owner", "does not belong to root", "fail")
    assert (quiet.path / "events.db").stat().st_uid == 0


@pytest.mark.parametrize("is_folder_there", [True, False])
def test_the_reserve_is_made_again(quiet: CliHome, is_folder_there: bool) -> None:
    (quiet.path / "run" / "reserve").unlink(missing_ok=True)
    if not is_folder_there:
        shutil.rmtree(quiet.path / "run")
    repaired(quiet, "reserve", "nothing is held back", "warn")
    assert (quiet.path / "run" / "reserve").stat().st_blocks * 512 >= 4 << 20


def test_what_a_killed_daemon_left_is_removed(quiet: CliHome) -> None:
    (quiet.path / "run" / "pid").write_text("1\n")
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(quiet.path / "run" / "pulse.sock"))
    repaired(quiet, "leftovers", "pulse.sock and pid", "warn")
    assert not (quiet.path / "run" / "pid").exists()


def test_nothing_is_removed_under_a_daemon_that_lives(live: CliHome) -> None:
    assert "leftovers" not in findings(live, "--repair", code=0)
    assert live.status()["daemon"]["state"] == "running"


def test_a_cache_that_cannot_be_read_is_deleted(quiet: CliHome) -> None:
    (quiet.path / "state.db").write_bytes(b"no database" * 1_000)
    repaired(quiet, "state", "can't be read", "warn")
    assert not (quiet.path / "state.db").exists()


def test_a_home_whose_checkpoints_are_still_to_come_is_well_and_keeps_its_cache(quiet: CliHome) -> None:
    written(quiet, 1)
    with SqliteEventReader(quiet.path) as log:
        asyncio.run(SqliteCheckpoints(quiet.path / "state.db", log.host()).tell_host())
    assert findings(quiet, "--repair", code=0)["state"]["level"] == "ok"
    assert (quiet.path / "state.db").exists()


def test_a_damaged_log_says_nothing_of_an_engine_that_there_is_not(quiet: CliHome) -> None:
    written(quiet, 1)
    alter(quiet.path / "events.db", "UPDATE event SET data = '{}' WHERE seq = 1")
    (quiet.path / "events.db-wal").write_bytes(b"no header" * 1_000)
    said = quiet.upulse("verify", code=1)
    assert "damaged: " in said.out
    assert "broken: " not in said.out + said.err


def unfinished(home: CliHome, backup: Path) -> None:
    """A restore that was killed after it was decided: before one of the last steps that a whole one takes."""
    home.upulse("backup", str(backup))
    restore = ("restore", str(backup), "--home", str(home.path))
    with mortal(home.path) as dying:
        for nth in range(steps(dying(0, *restore)), 0, -1):
            dying(nth, *restore)
            if (home.path / "restoring" / "plan.json").exists():
                return
    raise AssertionError("it was never decided and not finished")


def test_a_restore_that_was_broken_off_is_finished(quiet: CliHome, tmp_path: Path) -> None:
    written(quiet)
    unfinished(quiet, tmp_path / "backup")
    found = findings(quiet, code=1)
    assert "was broken off" in found["log"]["words"]
    told = quiet.upulse("doctor", "--repair", "--json").json
    assert f"the restore from {tmp_path / 'backup'} is finished" in told["repaired"][0]
    assert quiet.upulse("verify").code == 0
    assert not (quiet.path / "restoring").exists()


def test_a_restore_that_changed_nothing_is_only_mentioned(quiet: CliHome) -> None:
    (quiet.path / "restoring").mkdir()
    assert findings(quiet, code=0)["restore"]["level"] == "warn"


DAMAGE: dict[str, tuple[Callable[[CliHome], object], str, str]] = {
    "row": (lambda home: alter(home.path / "events.db", "UPDATE event SET subject = 'x' WHERE seq = 2"), "log", "row 2"),
    "page": (lambda home: (home.path / "events.db").write_bytes(b"no database" * 5_000), "log", "not a database"),
    "gone": (lambda home: [path.unlink() for path in home.path.glob("events.db*")], "log", "which are LOST"),
    "empty": (lambda home: os.truncate(home.path / "events.db", 0), "log", "is empty, and had"),
    "tail": (lambda home: alter(home.path / "events.db", "DELETE FROM event WHERE seq > 4"), "state", "knows row"),
}  # fmt: skip


@pytest.mark.parametrize("damage", sampled(sorted(DAMAGE), 2))
def test_a_damaged_log_is_said_and_never_touched(quiet: CliHome, damage: str) -> None:
    quiet.configure("# nothing\n")
    written(quiet, 5)
    live_a_moment(quiet)
    change, name, words = DAMAGE[damage]
    change(quiet)
    before = {path.name: sha256(path.read_bytes()).digest() for path in quiet.path.glob("*.db")}
    found = findings(quiet, "--repair", code=1)
    assert (found[name]["level"], words in found[name]["words"]) == ("fail", True), found[name]
    assert "restore" in found[name]["remedy"]
    after = {path.name: sha256(path.read_bytes()).digest() for path in quiet.path.glob("*.db")}
    assert after == before  # not even the cache, which is a witness


@pytest.mark.parametrize("how", ["gone", "altered"])
def test_a_large_payload_that_is_lost_is_said(quiet: CliHome, how: str) -> None:
    quiet.configure(ALLOW)
    argv = json.dumps(["/bin/true", "x" * 40_000])
    quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", f"argv={argv}")
    (path,) = [path for path in (quiet.path / "objects").rglob("*") if path.is_file()]
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(b"altered")
    assert "the payload of row 1" in findings(quiet, code=1)["log"]["words"]


def test_damage_that_the_daemon_found_is_said(quiet: CliHome) -> None:
    quiet.configure("# nothing\n")
    written(quiet)
    live_a_moment(quiet)
    assert (
        findings(quiet, code=0)["last check"]["level"] == "warn"
    )  # it was stopped before it had read the log


def test_settings_with_faults_are_said(quiet: CliHome) -> None:
    quiet.configure("[watch]\nkeep = 5\n")
    assert "config.toml:2" in findings(quiet, code=1)["settings"]["words"]


def test_settings_that_are_no_toml_are_said_once_with_where_the_table_is_already(quiet: CliHome) -> None:
    quiet.configure("[notify]\nper_hour = 5\n[notify]\nurls = []\n")
    found = findings(quiet, code=1)
    words = "[notify] is there already, on line 1; put both under one header"
    assert [name for name, one in found.items() if words in one["words"]] == ["settings"]
    assert "is not known" in found["anchor"]["words"]


def test_settings_that_are_not_in_force_are_said(live: CliHome) -> None:
    before = (live.path / "config.toml").read_text()
    (live.path / "config.toml").write_text(before + "\n[watch]\nkeep = '2d'\n")
    try:
        found = findings(live, code=0)["settings"]
        assert (found["level"], found["remedy"]) == ("warn", "upulse daemon reload")
    finally:
        (live.path / "config.toml").write_text(before)
    assert findings(live, code=0)["settings"]["level"] == "ok"


def test_a_variable_that_the_daemon_lacks_is_said(quiet: CliHome, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet.configure('[heartbeat]\nurl = "env:PULSE_TEST_BEAT"\nevery = "1h"\n')
    assert findings(quiet, code=0)["environment"]["level"] == "warn"
    quiet.upulse("daemon", "start")
    try:
        monkeypatch.setenv(
            "PULSE_TEST_BEAT", "http://127.0.0.1:1/"
        )  # here, but not where the daemon was started
        found = findings(quiet, code=1)["environment"]
        assert found["words"] == "not set in the daemon's environment: PULSE_TEST_BEAT"
    finally:
        quiet.upulse("daemon", "stop")
    quiet.upulse("daemon", "start")
    try:
        assert findings(quiet, code=0)["environment"]["level"] == "ok"
    finally:
        quiet.upulse("daemon", "stop")


def test_a_package_that_the_settings_need_is_named(quiet: CliHome, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet.configure('[notify]\nurls = ["json://localhost"]\n')
    assert findings(quiet, code=0)["extras"]["words"] == "apprise"
    quiet.configure('[notify]\nurls = ["json://localhost", "nope://secret"]\n')
    words = findings(quiet, code=1)["extras"]["words"]
    assert words.startswith("[notify] urls, the 2. of them: Apprise knows no service for nope://***")
    monkeypatch.setitem(sys.modules, "apprise", None)
    found = findings(quiet, code=1)["extras"]
    assert "no notices go to json://***: the package apprise is not installed" in found["words"]
    assert found["words"].endswith("pip install 'upulse[notify]'")
    assert "json://***: the package apprise is not installed" in quiet.upulse("config", "check", code=1).err


def test_a_daemon_that_hangs_is_said(quiet: CliHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_adapters.ipc.daemon_client.STATUS_WAIT", 0.5)
    quiet.configure("# nothing\n")
    quiet.start_daemon()
    pid = quiet.status()["daemon"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert (
            f"process {pid} holds the home and does not answer" in findings(quiet, code=1)["daemon"]["words"]
        )
    finally:
        os.kill(pid, signal.SIGCONT)
        quiet.upulse("daemon", "stop")
    assert findings(quiet, code=0)["daemon"]["remedy"] == "upulse daemon start"


def test_backups_that_are_missing_old_or_know_more_are_said(quiet: CliHome, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    written(quiet)
    assert "there was no backup" in findings(quiet, code=0)["backup"]["words"]
    quiet.upulse("backup", str(backup))
    assert findings(quiet, code=0)["backup"]["level"] == "ok"
    backup.rename(tmp_path / "elsewhere")
    assert "is not in" in findings(quiet, code=0)["backup"]["words"]
    (tmp_path / "elsewhere").rename(backup)
    kept = quiet.path / "last-backup.json"
    last = json.loads(kept.read_text())
    kept.write_text(json.dumps({**last, "made_at": last["made_at"] - 8 * 86_400 * 10**6}))
    assert findings(quiet, code=0)["backup"]["level"] == "warn"
    kept.write_text(json.dumps(last)[:40])
    assert "last-backup.json can't be read" in findings(quiet, code=0)["backup"]["words"]
    assert "last-backup.json can't be read" in quiet.upulse("verify").err
    kept.write_text(json.dumps(last))
    alter(quiet.path / "events.db", "DELETE FROM event WHERE seq = 3")
    found = findings(quiet, code=1)["backup"]
    assert "knows row 3, the log ends at row 2" in found["words"]
    quiet.upulse("restore", str(backup))
    assert findings(quiet, code=0)["damaged"]["level"] == "warn"
    shutil.rmtree(quiet.path / "damaged")
    assert "damaged" not in findings(quiet, code=0)


def test_a_log_that_went_on_after_lost_rows_were_accepted_is_well(quiet: CliHome, tmp_path: Path) -> None:
    quiet.configure("# nothing\n")
    written(quiet)
    quiet.upulse("backup", str(tmp_path / "backup"))
    live_a_moment(quiet)
    alter(quiet.path / "events.db", "DELETE FROM event WHERE seq > 2")
    quiet.start_daemon("--accept-damage")
    quiet.upulse("daemon", "stop")
    found = findings(quiet, code=0)
    assert (found["backup"]["level"], found["state"]["level"]) == ("ok", "ok")


def test_a_unit_that_is_not_up_to_date_is_said(
    quiet: CliHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulse_adapters.systemd.manager import unit_name, unit_text

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    unit = tmp_path / "systemd" / "user" / unit_name(quiet.path)
    unit.parent.mkdir(parents=True)
    good = unit_text(home=quiet.path, python=sys.executable, user=True, run_as=None)
    unit.write_text(good)
    assert findings(quiet, code=0)["unit"]["words"] == f"{unit} is up to date"
    unit.write_text(good.replace("RestartSec=100ms", "RestartSec=9s"))
    assert findings(quiet, code=0)["unit"]["level"] == "warn"
    unit.write_text(good.replace(sys.executable, "/gone/python"))
    found = findings(quiet, code=1)["unit"]
    assert "an interpreter that is gone" in found["words"]
    assert found["remedy"] == "upulse daemon install --user"


def test_vitals_that_cannot_be_read_are_no_failure(quiet: CliHome) -> None:
    (quiet.path / "vitals.db").write_bytes(b"no database" * 1_000)
    assert findings(quiet, code=0)["vitals"]["level"] == "warn"


class Shifted:
    """A clock that is an hour slow."""

    def now(self) -> Moment:
        now = SystemClock().now()
        return now._replace(at=now.at - 3_600_000_000)


def test_a_clock_that_was_set_is_known_from_the_log(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()

    async def started(clock: Any) -> None:
        objects = FileObjects(home.objects)
        async with SqliteEventLog.open(home.events, clock=clock, objects=objects) as log:
            await log.append(Draft(DaemonStarted(pid=1, version="0")))

    assert HostChecks(home, DaemonChecks(home_context(home)).last_start).shift_of_clock() == 0
    asyncio.run(started(Shifted()))
    assert (
        abs(HostChecks(home, DaemonChecks(home_context(home)).last_start).shift_of_clock() - 3_600_000_000)
        < 5_000_000
    )
    asyncio.run(started(SystemClock()))
    assert HostChecks(home, DaemonChecks(home_context(home)).last_start).shift_of_clock() == 0


def test_a_last_check_that_was_redacted_is_told_as_that(quiet: CliHome) -> None:
    async def checked() -> Event:
        objects = FileObjects(quiet.path / "objects")
        async with SqliteEventLog.open(quiet.path / "events.db", clock=SystemClock(), objects=objects) as log:
            (event,) = await log.append(Draft(LogVerified(rows=1, took_ms=1, fault="row 1: a secret")))
            return event

    quiet.upulse("redact", asyncio.run(checked()).id, "--why", "a secret", "--yes")
    (told,) = (
        one
        for one in quiet.upulse("doctor", "--json", code=None).json["findings"]
        if one["name"] == "last check"
    )
    assert told["level"] == "warn"
    assert told["words"].endswith(": what it found was redacted")


def test_file_systems_are_told_by_the_longest_mount() -> None:
    assert file_system_type(Path("/proc/self")) == "proc"
    assert file_system_type(Path("/dev/shm")) in ("tmpfs", "devtmpfs", "overlay")


@pytest.mark.wall_clock
def test_a_look_is_quick(quiet: CliHome) -> None:
    written(quiet)
    began = time.monotonic()
    findings(quiet, code=0)
    assert time.monotonic() - began < 2
