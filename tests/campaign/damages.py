"""Random damages of every store of a home, its daemon down or running, its restore killed on the way: nothing is silent.

What is damaged may be lost, if somebody says so: `upulse verify`, whoever reads it, or the daemon that refuses to start.
`python -m tests.campaign.damages COUNT` is the long form.
"""

import os
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

from pulse_adapters.anchor.places import add_to_file
from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, link, seal
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.anchor import Anchor
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery
from tests.campaign.broken_off import Dying, mortal
from tests.campaign.flips import Daemons, daemons, deep_check, end, ids, upulse

LARGE = 40_000
BLOCK = 4_096
STARTED = 0.25
"""The part of the damaged homes whose daemon is started, which takes seconds to read the whole log."""
MOST_STEPS = 60
"""A restore is killed before one of its first so many steps."""


class Scene(NamedTuple):
    """A home as its killed daemon left it, a backup of its first rows, and all of its rows as they were."""

    home: Path
    backup: Path
    rows: Sequence[Event]
    place: Path


def prepare(served: Daemons, place: Path) -> Scene:
    """A home with rows in events.db and in its -wal, an object, and an anchor outside that knows the last row."""
    home, anchor = place / "home", place / "anchor"
    assert upulse(home, "init", "--no-engine")[0] == 0
    (home / "config.toml").write_text(
        f'[executors.run-command]\nallow = ["/bin/true"]\n[anchor]\nfile = "{anchor}"\nevery = "1h"\n'
    )
    daemon = served.start(home)
    assert daemon is not None
    append(home, 60)
    argv = f'argv=["/bin/true", "{"x" * LARGE}"]'
    assert upulse(home, "effect", "add", "run-command", "--key", "large", "--param", argv)[0] == 0
    assert upulse(home, "backup", str(place / "backup"))[0] == 0
    end(daemon, signal.SIGTERM)
    daemon = served.start(home)
    assert daemon is not None
    append(home, 40)
    end(daemon, signal.SIGKILL)
    with SqliteEventReader(home) as log:
        rows, head = list(log.events()), log.head()
    add_to_file(anchor, Anchor(rows[-1].host, str(place / "damaged"), head, rows[-1].at).line())
    return Scene(home, place / "backup", rows, place)


def append(home: Path, rows: int) -> list[str]:
    """The ids of so many new rows, as far as they were acknowledged."""
    told: list[str] = []
    with suppress(PulseError), Client(Home(home).socket, timeout=10) as client:
        for number in range(rows):
            drafts = [{"kind": "resumed", "subject": f"s{number % 3}", "data": {"why": f"row {number}"}}]
            told += [event["id"] for event in client.ask("append", drafts=drafts)["events"]]
    return told


# Damages: each is done to a home by chance; what it was, in words


def damage_file(home: Path, dice: Random) -> str:
    """A file of the home, as a disk, a copy that was broken off, or a finger might leave it."""
    stores = [path for path in sorted(home.rglob("*")) if path.is_file() and path.stat().st_size]
    stores = [path for path in stores if path.parent.name != "run"]
    log = [path for path in stores if path.name.startswith("events.db")]
    path = dice.choice(log if dice.random() < 0.6 else stores)
    path.chmod(0o600)
    size, how = (
        path.stat().st_size,
        dice.choice(("bits", "bits", "zeros", "junk", "cut", "longer", "gone", "blocks")),
    )
    place = dice.randrange(size)
    if how == "gone":
        path.unlink()
    elif how == "cut":
        os.truncate(path, place)
    elif how == "blocks" and size > BLOCK:
        with path.open("r+b") as file:  # two of them have changed places
            here, there = (dice.randrange(size // BLOCK) * BLOCK for _ in range(2))
            one, other = (os.pread(file.fileno(), BLOCK, at) for at in (here, there))
            os.pwrite(file.fileno(), other, here)
            os.pwrite(file.fileno(), one, there)
    else:
        with path.open("r+b") as file:
            file.seek(size if how == "longer" else place)
            old = file.read(1) or b"\0"
            new = {"bits": bytes([old[0] ^ 1 << dice.randrange(8)]), "zeros": bytes(min(512, size - place))}
            file.seek(size if how == "longer" else place)
            file.write(new.get(how, dice.randbytes(64)))
    return f"{how} at {place} of {path.relative_to(home)}"


def damage_rows(home: Path, dice: Random) -> str:
    """Rows, by somebody who may write the file and takes the triggers away, and perhaps puts them back."""
    how = dice.choice(("null", "alter", "remove", "behead", "replace", "forge", "index"))
    with closing(sqlite3.connect(home / "events.db", isolation_level=None)) as hand:
        last = hand.execute("SELECT max(seq) FROM event").fetchone()[0]
        seq, columns = dice.randint(1, last), ALL_COLUMNS
        triggers = hand.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            hand.execute(f"DROP TRIGGER {name}")
        if how == "forge":
            forge(hand, seq)
        elif how == "index":
            name = dice.choice(("event_subject", "sqlite_autoindex_event_1"))
            root = hand.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
        else:
            hand.execute(
                {
                    "null": "UPDATE event SET data = NULL WHERE seq = ?",
                    "alter": "UPDATE event SET subject = 'other' WHERE seq = ?",
                    "remove": "DELETE FROM event WHERE seq = ?",
                    "behead": "DELETE FROM event WHERE seq >= ?",
                    "replace": f"INSERT OR REPLACE INTO event ({columns}) SELECT seq, id, at, boot, mono, kind,"
                    " 'other', actor, host, cause, data, data_sha256, chain FROM event WHERE seq = ?",
                }[how],
                (seq,),
            )
        if dice.random() < 0.8:
            for _, sql in triggers:
                hand.execute(sql)
    if how == "index":
        with (home / "events.db").open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(bytes([0x0A, 0, 0, 0, 0, 0x10, 0, 0]) + bytes(4088))
    return f"{how} of row {seq}"


def forge(hand: sqlite3.Connection, seq: int) -> None:
    """Have a row say something else, and compute the chain anew from there to the end."""
    chain = START
    for row in hand.execute(f"SELECT {ALL_COLUMNS} FROM event ORDER BY seq").fetchall():
        columns = [*row[1:10]]
        columns[8] = "somebody" if row[0] == seq else columns[8]
        chain = link(chain, row[0], seal(tuple(columns), row[11]))
        hand.execute("UPDATE event SET cause = ?, chain = ? WHERE seq = ?", (columns[8], chain, row[0]))


# What is seen of it


def shows(home: Path, rows: Sequence[Event]) -> bool:
    """Whether readers show these rows: all in order, by subject, and by id. Raises PulseError if one can't read."""
    with SqliteEventReader(home) as log:
        found = list(log.events())
        if found[: len(rows)] != [*rows]:
            return False
        for subject in {row.subject for row in rows}:
            wanted = [row for row in found if row.subject == subject]
            if list(log.events(EventQuery(subject=subject))) != wanted:
                return False
        return all(log.event(row.id) == row for row in rows)


def verdict(home: Path, rows: Sequence[Event]) -> str:
    """What verify says: nothing if all is well. Raises AssertionError if rows are lost or altered, and it says nothing."""
    before = {path.name: sha256(path.read_bytes()).digest() for path in home.glob("events.db*")}
    code, words = upulse(home, "verify")
    try:
        all_there, said = shows(home, rows), ""
    except PulseError as error:
        all_there, said = False, str(error)
    assert code or all_there, f"verify says {words!r}, and the rows are not what they were; {said}"
    after = {path.name: sha256(path.read_bytes()).digest() for path in home.glob("events.db*")}
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert set(changed) <= {"events.db-shm", "events.db-wal"} or not code, f"looking has changed {changed}"
    return words if code else ""


def while_down(served: Daemons, scene: Scene, home: Path, dice: Random) -> str:
    """Damage a home whose daemon is down, and perhaps start it: it refuses, or finds the damage, or there is none."""
    what = dice.choice((damage_file, damage_file, damage_rows))(home, dice)
    try:
        fault = verdict(home, scene.rows)
        if dice.random() > STARTED:
            return "said" if fault else "harmless"
        daemon = served.start(home)
        if daemon is None:
            assert fault or (home / "daemon.out").read_text().strip(), "it ended without a word"
            return "refused" if fault else "settings"
        try:
            assert not fault or deep_check(home), f"the daemon went on in silence, verify said {fault}"
            assert fault or {row.id for row in scene.rows} <= set(ids(home))
            return "found soon" if fault else "harmless"
        finally:
            end(daemon, signal.SIGKILL)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error


def while_running(served: Daemons, scene: Scene, home: Path, dice: Random) -> str:
    """Damage a home under its daemon, which goes on recording; whatever it acknowledged is there, or it is said."""
    daemon = served.start(home)
    assert daemon is not None
    told = append(home, 10)
    what = damage_file(home, dice)
    told += append(home, 10)
    end(daemon, dice.choice((signal.SIGKILL, signal.SIGTERM)))
    try:
        code, words = upulse(home, "verify")
        there = set(ids(home))
        lost = [row.id for row in scene.rows if row.id not in there] + [
            id_ for id_ in told if id_ not in there
        ]
        assert code or not lost, f"{len(lost)} rows are lost, and verify says {words!r}"
        if not code:
            assert shows(home, scene.rows)
        return "said" if code else "harmless"
    except AssertionError as error:
        raise AssertionError(f"{what}, while it ran: {error}") from error


def broken_off(dying: Dying, scene: Scene, home: Path, dice: Random) -> str:
    """Damage a home, kill its restore on the way, and do it again: it is healed, and what is lost is said."""
    what = dice.choice((damage_file, damage_rows))(home, dice)
    try:
        killed = dying(dice.randrange(1, MOST_STEPS), "restore", str(scene.backup), "--home", str(home))
        if killed.code:
            assert killed.code == -signal.SIGKILL, killed.words
            code, words = upulse(home, "restore", str(scene.backup))
            assert code == 0, words
        else:
            words = killed.words
        code, told = upulse(home, "verify")
        assert code == 0, told
        found, known = ids(home), [row.id for row in scene.rows]
        lost = [id_ for id_ in known if id_ not in found]
        _, kept = upulse(
            home, "events", "--kind", "log-restored", "--json"
        )  # also of one that was killed too late
        said = "LOST" in words or '"lost": ' in kept or '"fault": ' in kept
        assert not lost or said, f"{len(lost)} rows are lost, and the restore says {words!r}"
        return "healed" if killed.code else "healed at once"
    except AssertionError as error:
        raise AssertionError(f"{what}, and a restore: {error}") from error


def campaign(place: Path, count: int, seed: int) -> Counter[str]:
    """Do so many damages, each to a copy; what was seen. Raises AssertionError for the first lie, with its seed."""
    seen = Counter[str]()
    with daemons() as served, mortal(place) as dying:
        scene = prepare(served, place)
        for turn in range(count):
            dice, home = Random(seed * 1_000_003 + turn), place / "damaged"
            shutil.copytree(scene.home, home, ignore=shutil.ignore_patterns("*.sock"))
            try:
                seen[one(served, dying, scene, home, dice)] += 1
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, turn {turn}: {error}") from error
            finally:
                if held := holder(Home(home).lock):
                    os.kill(held.pid, signal.SIGKILL)
            shutil.rmtree(home)
    return seen


def one(served: Daemons, dying: Dying, scene: Scene, home: Path, dice: Random) -> str:
    """One damage, in one of the three ways."""
    chance = dice.random()
    if chance < 0.6:
        return f"down: {while_down(served, scene, home, dice)}"
    if chance < 0.8:
        return f"running: {while_running(served, scene, home, dice)}"
    return f"restored: {broken_off(dying, scene, home, dice)}"


if __name__ == "__main__":
    import tempfile

    began = time.monotonic()
    seed = int(os.environ.get("PULSE_SEED", "1"))
    with tempfile.TemporaryDirectory(prefix="pulse-damages-") as path:
        print(f"damages: {dict(campaign(Path(path), int(sys.argv[1]), seed))}", flush=True)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
