"""Bits flipped at random places of a home that a real daemon left: everybody says so, and a backup heals it.

`python -m tests.campaign.flips COUNT` is the long form.
"""

import hashlib
import io
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import holder
from pulse_core.model.errors import PulseError
from tests.processes import child_of_test
from upulse_cli.__main__ import main

FILES = ("events.db", "events.db-wal")
DEEP_CHECK = 30.0
WARM = """
import os, signal, sys
from upulse_cli import serve
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in iter(sys.stdin.readline, ""):
    if pid := os.fork():
        print(pid, flush=True)
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    home = line.strip()
    said = os.open(f"{home}/daemon.out", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((0, nothing), (1, said), (2, said)):
        os.dup2(theirs, ours)
    sys.argv = ["serve", "--home", home]
    sys.exit(serve.main())
"""
"""Has imported what a daemon needs, and becomes one for each home that it is told: that spares most of a start."""


def upulse(home: Path, *words: str) -> tuple[int, str]:
    """A command in this process: its exit code, and all that it said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main([*words, "--home", str(home)])
    return code, said.getvalue()


class Daemons:
    """Starts daemons and ends them; each is known by its pidfd."""

    def __init__(self, warm: "subprocess.Popen[str]") -> None:
        self._warm = warm

    def start(self, home: Path) -> int | None:
        """A daemon that answers, or None if it refuses to start."""
        assert self._warm.stdin
        assert self._warm.stdout
        self._warm.stdin.write(f"{home}\n")
        self._warm.stdin.flush()
        pid = int(self._warm.stdout.readline())
        try:
            daemon = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        while not ended(daemon):
            try:
                with Client(Home(home).socket, timeout=5) as client:
                    client.ask("status")
                return daemon
            except PulseError:
                time.sleep(0.01)
        os.close(daemon)
        return None


@contextmanager
def daemons() -> Iterator[Daemons]:
    """What starts daemons; it leaves none that was not ended."""
    argv = [sys.executable, "-c", WARM]
    with child_of_test(
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ) as warm:
        yield Daemons(warm)


def ended(daemon: int, patience: float = 0.0) -> bool:
    """Whether it is over, or so within this time."""
    return bool(select.select([daemon], [], [], patience)[0])


def end(daemon: int, number: signal.Signals) -> None:
    signal.pidfd_send_signal(daemon, number)
    assert ended(daemon, 30)
    os.close(daemon)


def ids(home: Path) -> list[str]:
    """The rows as far as they can be read, in order."""
    found: list[str] = []
    try:
        with closing(sqlite3.connect(f"file:{home}/events.db?mode=ro", uri=True)) as log:
            for (name,) in log.execute("SELECT id FROM event ORDER BY seq"):
                found.append(name)
    except sqlite3.Error:
        pass
    return found


def left_behind(served: Daemons, place: Path) -> tuple[Path, Path]:
    """A home whose daemon was killed, with rows in events.db and in its -wal; and a backup of its first rows."""
    home = place / "home"
    upulse(home, "init", "--no-engine")
    (home / "config.toml").write_text("# the defaults\n")
    daemon = served.start(home)
    assert daemon is not None
    append(home, 150)
    assert upulse(home, "backup", str(place / "backup"))[0] == 0
    append(home, 150)
    end(daemon, signal.SIGTERM)  # moves all of them into events.db
    daemon = served.start(home)
    assert daemon is not None
    append(home, 100)
    end(daemon, signal.SIGKILL)
    return home, place / "backup"


def append(home: Path, rows: int) -> None:
    with Client(Home(home).socket) as client:
        for number in range(rows):
            client.ask(
                "append",
                drafts=[{"kind": "resumed", "data": {"why": f"row {number} " + "x" * (number % 90)}}],
            )


def flip(path: Path, place: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def digests(home: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((home / name).read_bytes()).hexdigest()
        for name in FILES
        if (home / name).exists()
    }


def campaign(place: Path, count: int, seed: int) -> Counter[str]:
    """Flip so many bits, each in a copy; what was seen. Raises AssertionError for the first lie."""
    with daemons() as served:
        return flipped(served, place, count, seed)


def flipped(served: Daemons, place: Path, count: int, seed: int) -> Counter[str]:
    original, backup = left_behind(served, place)
    rows, dice, seen = ids(original), Random(seed), Counter[str]()
    for turn in range(count):
        home = place / "flipped"
        shutil.copytree(original, home, ignore=shutil.ignore_patterns("*.sock"))
        path = home / FILES[turn % 2]
        where, bit = dice.randrange(path.stat().st_size), dice.randrange(8)
        flip(path, where, bit)
        try:
            seen[one(served, home, backup, rows)] += 1
        except AssertionError as error:
            raise AssertionError(f"turn {turn}: bit {bit} of byte {where} of {path.name}: {error}") from error
        finally:
            if held := holder(Home(home).lock):
                os.kill(held.pid, signal.SIGKILL)
        shutil.rmtree(home)
    return seen


def one(served: Daemons, home: Path, backup: Path, rows: list[str]) -> str:
    """One flipped home: what became of it, in a word."""
    flipped = digests(home)
    verified, words = upulse(home, "verify", "--json")
    looked, told = upulse(home, "doctor", "--json")
    assert digests(home) == flipped, "somebody changed what he only was to look at"
    log = next(one for one in json.loads(told)["findings"] if one["name"] == "log")
    assert (verified == 0) == (log["level"] != "fail"), f"verify says {words}, and the doctor {log['words']}"
    assert looked == 1 or log["level"] != "fail"
    assert verified or ids(home) == rows, "rows are lost, and nobody says so"
    what = started(served, home, rows, bool(verified))
    healed(home, backup, rows)
    return what


def started(served: Daemons, home: Path, rows: list[str], damaged: bool) -> str:
    """What a daemon makes of it: it refuses, or finds the damage when it reads the log, or there is none."""
    daemon = served.start(home)
    if daemon is None:
        assert damaged, (home / "daemon.out").read_text()
        assert upulse(home, "verify")[0] == 1, "a start that was refused has hidden the damage"
        return "refused"
    try:
        if damaged:
            assert deep_check(home), "the daemon went on in silence"
        else:
            assert set(rows) <= set(ids(home))
        return "found soon" if damaged else "harmless"
    finally:
        end(daemon, signal.SIGKILL)


def deep_check(home: Path) -> str:
    """What the daemon found when it read the whole log; nothing if it was content, or did not."""
    until = time.monotonic() + DEEP_CHECK
    while time.monotonic() < until:
        with Client(Home(home).socket) as client:
            status: dict[str, Any] = client.ask("status")
        if fault := status.get("damage") or status.get("log", {}).get("fault"):
            return str(fault)
        code, words = upulse(home, "events", "--kind", "log-verified", "--json", "-n", "1")
        if code == 0 and words.strip() and (fault := json.loads(words.splitlines()[-1])["data"].get("fault")):
            return str(fault)
        time.sleep(0.05)
    return ""


def healed(home: Path, backup: Path, rows: list[str]) -> None:
    """A restore puts back all rows of the backup, and those after it that are sound; and keeps what was there."""
    code, words = upulse(home, "restore", str(backup), "--json")
    assert code == 0, words
    outcome = json.loads(words)
    code, words = upulse(home, "verify")
    assert code == 0, words
    back = ids(home)[: outcome["rows"] + outcome["salvaged"]]
    assert back[: len(rows)] == rows[: len(back)], "other rows than those that were written"
    assert len(back) >= outcome["rows"] > 100
    if len(back) < len(rows):
        assert outcome["lost"] or outcome["fault"], "the loss is not said"
    assert Path(outcome["kept_at"], "events.db").exists()


if __name__ == "__main__":
    import tempfile

    seed = int(os.environ.get("PULSE_SEED", "1"))
    with tempfile.TemporaryDirectory(prefix="pulse-flips-") as path:
        print(f"flips: {dict(campaign(Path(path), int(sys.argv[1]), seed))}", flush=True)
