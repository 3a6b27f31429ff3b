"""What backups promise, and the order of a restore from one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup.store import HomeBackups
from pulse_adapters.sqlite.backup.swap import finish_decided
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core import __version__
from pulse_core.model.errors import HomeBusy, PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from pulse_core.ports.readers import EventQuery


class BackupScene:
    """A home with its backups, and its rows in words."""

    def __init__(self, directory: Path) -> None:
        self.home, self.directory = Home(directory / "home"), directory
        self.home.create()
        self.backups = HomeBackups(self.home, SystemClock(), FileObjects(self.home.objects), self._exclusive)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with HomeLock(self.home.lock, __version__):
            yield

    def write(self, *words: str) -> None:
        async def append() -> None:
            objects = FileObjects(self.home.objects)
            async with SqliteEventLog.open(self.home.events, clock=SystemClock(), objects=objects) as log:
                await log.append(*(Draft(ErrorReported(message=word)) for word in words))

        asyncio.run(append())

    def rows(self) -> list[str]:
        with SqliteEventReader(self.home.path) as log:
            errors = log.events(EventQuery(kinds=("error",)))
            return [event.spelled()["data"]["message"] for event in errors]

    def place(self, name: str) -> str:
        return str(self.directory / name)


@pytest.fixture
def scene(tmp_path: Path) -> BackupScene:
    return BackupScene(tmp_path)


def silent(words: str) -> None:
    """Nobody is told."""


def nothing() -> str:
    """No shadow runs."""
    return ""


def test_a_backup_says_how_many_rows_it_has(scene: BackupScene) -> None:
    scene.write("one", "two")
    made = scene.backups.make(scene.place("backup"), silent)
    assert (made.path, made.seq) == (scene.place("backup"), 2)


def test_a_place_that_holds_a_backup_is_refused(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    with pytest.raises(PulseError, match="holds a backup already"):
        scene.backups.make(scene.place("backup"), silent)


@pytest.mark.parametrize(("keep_tail", "rows"), [(True, ["one", "two"]), (False, ["one"])])
def test_rows_after_the_backup_are_kept_if_that_is_wanted(
    scene: BackupScene, keep_tail: bool, rows: list[str]
) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    scene.write("two")
    restored, earlier = scene.backups.restore(scene.place("backup"), keep_tail, nothing, silent)
    assert (restored.rows, restored.salvaged, restored.lost) == (1, int(keep_tail), int(not keep_tail))
    assert earlier is None
    assert scene.rows() == rows


def test_what_the_end_of_a_shadow_says_is_among_the_notes(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    restored, _ = scene.backups.restore(scene.place("backup"), True, lambda: "it was ended", silent)
    assert "it was ended" in restored.notes


def test_what_fails_before_the_decision_leaves_the_home_as_it_was(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    scene.write("two")

    def failing() -> str:
        raise PulseError("the shadow can't be ended")

    with pytest.raises(PulseError, match="the shadow"):
        scene.backups.restore(scene.place("backup"), False, failing, silent)
    assert scene.rows() == ["one", "two"]
    with scene.backups.lock():
        assert finish_decided(scene.home) is None


def test_what_was_decided_and_broken_off_is_finished_first(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    scene.write("two")
    found = scene.backups.check(scene.place("backup"), silent)
    with scene.backups.lock(), found.prepared(False) as prepared:
        found.decide(prepared)
    _, earlier = scene.backups.restore(scene.place("backup"), True, nothing, silent)
    assert earlier is not None
    assert earlier.lost == 1
    assert scene.rows() == ["one"]


def test_what_is_no_backup_is_refused(scene: BackupScene) -> None:
    scene.write("one")
    with pytest.raises(PulseError, match="is no backup"):
        scene.backups.restore(scene.place("nothing"), True, nothing, silent)


def test_a_home_that_is_in_use_is_refused(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    with scene.backups.lock(), pytest.raises(HomeBusy):
        scene.backups.restore(scene.place("backup"), True, nothing, silent)
