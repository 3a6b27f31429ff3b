"""A home that nobody can write (a backup, a read-only mount, another user's) is read all the same, and left as it is."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.sqlite.connect import ReadMode
from tests.integration.cli.cli_home import ALLOW, CliHome, Said, eventually, sleeper
from tests.long_form import sample, sampled

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount, and be somebody else")

MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
READS_BUT_WRITES_NOTHING = (
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip
ALL = """
import io, json, pathlib, sys
from contextlib import redirect_stderr, redirect_stdout
from pulse_adapters.sqlite.connect import read_mode_for
from upulse_cli.__main__ import main
home = sys.argv[1]
way, said = read_mode_for(pathlib.Path(home, "events.db")).name, []
for command in sys.argv[2:]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*command.split(), "--home", home])
    said.append((code, out.getvalue(), err.getvalue()))
print(json.dumps((way, said)))
"""


def on_read_only_media(home: Path) -> Sequence[str]:
    return ("unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(home))


def as_another_user(home: Path) -> Sequence[str]:
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(home)], check=True, timeout=60)
    return READS_BUT_WRITES_NOTHING


AS = {"read-only media": on_read_only_media, "another user": as_another_user}


def upulse(around: Sequence[str], home: Path, *commands: str) -> tuple[str, Sequence[Said]]:
    """How the log is read from there, and what these commands say, one after the other in one process."""
    argv = [*around, sys.executable, "-c", ALL, str(home), *commands]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    way, said = json.loads(done.stdout)
    return way, [Said(*one) for one in said]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that others can reach; pytest's own is closed to them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory) / "home"


@pytest.fixture
def recorded(place: Path) -> CliHome:
    """A home without a daemon, and paused."""
    home = CliHome(place)
    home.upulse("init", "--no-engine")
    home.upulse("pause")
    return home


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> CliHome:
    """A home whose daemon restarted a process and was then killed: its last rows are in the -wal only."""
    home = CliHome(tmp_path_factory.mktemp("killed") / "home")
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_397), ALLOW)
    home.start_daemon()
    try:
        first = home.pid_when_up("demo")
        os.kill(first, signal.SIGKILL)
        home.pid_when_up("demo", other_than=first)
        eventually(lambda: not story(home)["missing"], "the tick's record")
    finally:
        home.end_everything()
    return home


@pytest.fixture(scope="module")
def answers(killed: CliHome, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of the killed daemon's home where it can be written."""
    home = CliHome(copied(killed.path, tmp_path_factory.mktemp("writable") / "home"))
    return {words: home.upulse(*words.split()).out for words in ("events --json", "why --json")}


def copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("pulse.sock"))
    return target


def story(home: CliHome) -> dict[str, Any]:
    return dict(home.upulse("why", "--json").json)


def as_it_was_left(home: Path) -> ReadMode:
    return ReadMode.SHARED


def without_index(home: Path) -> ReadMode:
    """As a backup has it that leaves out what can be made again."""
    for path in home.glob("*-shm"):
        path.unlink()
    return ReadMode.ALONE


def closed(home: Path) -> ReadMode:
    """As a daemon leaves it that was asked to stop."""
    for name in ("events", "vitals"):
        with closing(sqlite3.connect(home / f"{name}.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not [*home.glob("*.db-wal"), *home.glob("*.db-shm")]
    return ReadMode.FROZEN


def emptied(home: Path) -> ReadMode:
    """As a daemon leaves it that was killed before it wrote anything."""
    closed(home)
    for name in ("events", "vitals"):
        (home / f"{name}.db-wal").write_bytes(b"")
        (home / f"{name}.db-shm").write_bytes(bytes(32_768))
    return ReadMode.FROZEN


STATES = (as_it_was_left, without_index, closed, emptied)


@pytest.mark.parametrize(
    ("state", "who"), sample(list(zip(STATES, [*AS] * 2, strict=True))[::3], list(product(STATES, AS)))
)
def test_all_that_was_recorded_is_read_and_nothing_is_touched(
    killed: CliHome, answers: dict[str, str], place: Path, state: Callable[[Path], ReadMode], who: str
) -> None:
    home = copied(killed.path, place)
    way = state(home)
    around = AS[who](home)
    before = contents(home)
    found, said = upulse(around, home, *answers, "verify --json", "status --json")
    assert found == way.name
    *read, verified, told = said
    assert [(one.code, one.err, one.out) for one in read] == [(0, "", answer) for answer in answers.values()]
    verdict, status = verified.json, told.json
    assert (verdict["fault"], verdict["rows"]) == ("", answers["events --json"].count("\n"))
    assert (status["daemon"]["state"], status["effects"]["acked"] >= 1) == ("stopped", True)
    assert status["tick"]["count"] > 0
    assert contents(home) == before


def contents(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("who", sampled(AS, 2))
def test_damage_is_said_there_too(killed: CliHome, place: Path, who: str) -> None:
    home = copied(killed.path, place)
    wal = home / "events.db-wal"
    os.truncate(wal, wal.stat().st_size - 10_000)
    for said in upulse(AS[who](home), home, "verify", "events", "status")[1]:
        assert said.code == 1
        assert "acknowledged" in said.out + said.err


@pytest.mark.parametrize("who", sampled(AS, 2))
def test_a_socket_that_was_left_over_hides_nothing(recorded: CliHome, who: str) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(recorded.path / "run" / "pulse.sock"))
    left.close()
    (recorded.path / "run" / "pulse.sock").chmod(0o600)
    _, (told,) = upulse(AS[who](recorded.path), recorded.path, "status --json")
    status = told.json
    assert (status["daemon"]["state"], status["paused"] is not None) == ("stopped", True)


@pytest.mark.parametrize(
    ("who", "why"),
    sampled([("read-only media", "Read-only file system"), ("another user", "Permission denied")], 2),
)
def test_what_would_be_recorded_is_refused_there(recorded: CliHome, who: str, why: str) -> None:
    _, (said,) = upulse(AS[who](recorded.path), recorded.path, "pause")
    assert said.code == 1
    assert f"{recorded.path}/run/lock can't be locked: {why}" in said.err


def test_a_running_daemons_home_is_read_through_a_read_only_mount(live: CliHome) -> None:
    around = on_read_only_media(live.path)
    newest = "events --json -n 3"  # the check of the log may come between
    live.upulse("pause")
    way, (events,) = upulse(around, live.path, newest)
    assert way == ReadMode.SHARED.name
    assert "paused" in [line["kind"] for line in events.lines]
    live.upulse("resume")
    _, (events, told, verified) = upulse(around, live.path, newest, "status --json", "verify --json")
    assert "resumed" in [line["kind"] for line in events.lines]
    status = told.json
    assert (status["daemon"]["state"], status["paused"]) == ("running", None)
    assert verified.json["fault"] == ""


@pytest.mark.parametrize("who", AS)
def test_a_log_that_somebody_has_open_is_never_taken_for_one_that_stands_still(
    recorded: CliHome, who: str
) -> None:
    with closing(sqlite3.connect(recorded.path / "events.db")) as writer:
        writer.execute("PRAGMA user_version")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert (recorded.path / "events.db-wal").stat().st_size == 0
        way, (events,) = upulse(AS[who](recorded.path), recorded.path, "events --json")
        assert way == ReadMode.SHARED.name
        assert [event["kind"] for event in events.lines] == ["paused"]
