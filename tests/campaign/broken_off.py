"""Backups and restores that are killed at every one of their steps: no half of anything passes for the whole."""

import hashlib
import io
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pulse_adapters.sqlite.verify import verify
from tests.processes import child_of_test
from upulse_cli.__main__ import main

ROWS = 8


class Outcome(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    words: str


def upulse(*words: str) -> Outcome:
    """A command in this process: only those that are killed need one of their own."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(words)
    return Outcome(code, said.getvalue())


class Dying:
    """Runs commands that are killed before their nth change below a place."""

    def __init__(self, warm: "subprocess.Popen[str]", said: Path) -> None:
        self._warm, self._said = warm, said

    def __call__(self, nth: int, *words: str) -> Outcome:
        assert self._warm.stdin
        assert self._warm.stdout
        print(json.dumps([nth, str(self._said), *words]), file=self._warm.stdin, flush=True)
        return Outcome(int(self._warm.stdout.readline()), self._said.read_text())


@contextmanager
def mortal(place: Path) -> Iterator[Dying]:
    """What runs them."""
    argv = [sys.executable, "-m", "tests.campaign.dying_command", str(place)]
    with (
        TemporaryDirectory() as aside,
        child_of_test(
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ) as warm,
    ):
        yield Dying(warm, Path(aside) / "said")


def steps(outcome: Outcome) -> int:
    assert outcome.code == 0, outcome.words
    return int(outcome.words.split()[-1]) if outcome.words.split()[-1].isdigit() else int(
        re.findall(r"^(\d+)$", outcome.words, re.MULTILINE)[-1]
    )  # fmt: skip


def make_home(place: Path) -> Path:
    """A home with a few rows, one of them with a large payload."""
    home = place / "home"
    assert upulse("init", "--home", str(home)).code == 0
    (home / "config.toml").write_text('[executors.run-command]\nallow = ["/bin/true"]\n')
    argv = f'argv=["/bin/true", "{"x" * 40_000}"]'
    added = upulse("effect", "add", "run-command", "--key", "k", "--param", argv, "--home", str(home))
    assert added.code == 0, added.words
    more(home, ROWS)
    return home


def more(home: Path, rows: int) -> None:
    for number in range(rows):
        assert upulse("pause", "--why", f"row {number}", "--home", str(home)).code == 0


def ids(home: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{home}/events.db?mode=ro", uri=True)) as log:
        return [row[0] for row in log.execute("SELECT id FROM event ORDER BY seq")]


def digests(home: Path) -> dict[str, str]:
    """What is in the databases; a reader may leave an index and an empty log beside them."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.glob("*.db*")
        if not path.name.endswith("-shm") and path.stat().st_size
    }


def broken_backups(place: Path, stride: int = 1) -> Iterator[str]:
    """Kill a backup before each nth of its steps; yields what was killed."""
    with mortal(place) as dying:
        yield from backups_broken(dying, place, stride)


def backups_broken(dying: Dying, place: Path, stride: int) -> Iterator[str]:
    home = make_home(place)
    before = digests(home)
    count = steps(dying(0, "backup", str(place / "whole"), "--home", str(home)))
    for nth in range(count, 0, -stride):
        backup = place / f"backup-{nth}"
        killed = dying(nth, "backup", str(backup), "--home", str(home))
        assert killed.code == -signal.SIGKILL
        assert digests(home) == before
        if not backup.exists():
            again = upulse("backup", str(backup), "--home", str(home))
            assert again.code == 0, again.words
        assert not list(place.glob(".*unfinished"))
        check = upulse("restore", str(backup), "--home", str(place / f"copy-{nth}"))
        assert check.code == 0, check.words
        assert ids(place / f"copy-{nth}")[:-1] == ids(home)
        shutil.rmtree(backup)
        yield killed.words


def broken_restores(place: Path, stride: int = 1) -> Iterator[str]:
    """Kill a restore of a damaged log before each nth of its steps, then do it again; yields how the log stood."""
    with mortal(place) as dying:
        yield from restores_broken(dying, place, stride)


def restores_broken(dying: Dying, place: Path, stride: int) -> Iterator[str]:
    home, backup = make_home(place), place / "backup"
    assert upulse("backup", str(backup), "--home", str(home)).code == 0
    more(home, 3)
    rows = ids(home)
    forge(home)
    damaged, words = digests(home), verify(home / "events.db", home / "objects").fault
    assert words
    pristine = place / "pristine"
    shutil.copytree(home, pristine, symlinks=True)
    count = steps(dying(0, "restore", str(backup), "--home", str(home)))
    for nth in range(count, 0, -stride):
        shutil.rmtree(home)
        shutil.copytree(pristine, home, symlinks=True)
        assert dying(nth, "restore", str(backup), "--home", str(home)).code == -signal.SIGKILL
        found = verify(home / "events.db", home / "objects").fault
        if found == words:  # still the log that was there, to the last byte
            assert digests(home) == damaged
        elif found:  # decided, and nobody may take what is there for the log
            assert "was broken off" in found
            refused = upulse("pause", "--home", str(home))
            assert (refused.code, "was broken off" in refused.words) == (1, True)
            refused = upulse("daemon", "start", "--home", str(home))
            assert (refused.code, "was broken off" in refused.words) == (1, True)
        again = upulse("restore", str(backup), "--home", str(home))
        assert again.code == 0, again.words
        assert verify(home / "events.db", home / "objects").fault == ""
        assert set(rows) <= set(ids(home)), f"rows were lost at step {nth}"
        kept = [hashlib.sha256(path.read_bytes()).hexdigest() for path in home.glob("damaged/*/events.db")]
        assert damaged["events.db"] in kept, f"the old log is not kept after step {nth}"
        assert not (home / "restoring").exists()
        yield found


def forge(home: Path) -> None:
    """Alter an early row, as a failing disk might."""
    with closing(sqlite3.connect(home / "events.db")) as log:
        log.execute("DROP TRIGGER event_never_changes")
        log.execute("UPDATE event SET subject = 'forged' WHERE seq = 5")
        log.commit()


if __name__ == "__main__":
    for campaign in (broken_backups, broken_restores):
        with TemporaryDirectory(prefix="pulse-broken-off-") as path:
            print(f"{campaign.__name__}: {len(list(campaign(Path(path))))} kills, all well", flush=True)
