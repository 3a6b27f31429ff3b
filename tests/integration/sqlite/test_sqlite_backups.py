"""What backups promise, and the order of a restore from one."""

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.backup import store
from pulse_adapters.sqlite.backup.files import copy_tree
from pulse_adapters.sqlite.backup.manifest import DEEPEST, read_manifest
from pulse_adapters.sqlite.backup.store import MOST_PLAIN, HomeBackups
from pulse_adapters.sqlite.backup.swap import finish_decided
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.vitals_file import open_vitals
from pulse_adapters.workers.full_disk import is_full
from pulse_adapters.workers.untrusted_paths import remove_tree
from pulse_core import __version__
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, HomeBusy, PulseError
from pulse_core.model.event import Checkpoint, Draft
from pulse_core.model.kinds import ErrorReported, SettingsLoaded
from pulse_core.ports.readers import EventQuery
from tests.integration.git.git_scene import ADA, git, template
from tests.repositories import repository_of
from tests.small_disk import small_disk
from upulse_cli.commands.backup import left_out_in_words
from upulse_cli.wiring.verify import note_of_snapshots


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
        self.append(*(Draft(ErrorReported(message=word)) for word in words))

    def append(self, *drafts: Draft) -> None:
        async def append() -> None:
            objects = FileObjects(self.home.objects)
            async with SqliteEventLog.open(self.home.events, clock=SystemClock(), objects=objects) as log:
                await log.append(*drafts)

        asyncio.run(append())

    def back_up(self) -> Path:
        """A backup of settings, a rule, and a row whose payload lies in the objects."""
        self.home.config.write_text("# nothing\n")
        (self.home.path / "staging/folder").mkdir(parents=True)
        (self.home.path / "staging/folder/rule.py").touch()
        self.append(
            Draft(SettingsLoaded(digest="d", processes=tuple(f"process-{n:06}" for n in range(3_000))))
        )
        return Path(self.backups.make(self.place("backup"), silent).path)

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


def test_a_disk_that_does_not_tell_its_size_is_not_taken_for_a_full_one(
    scene: BackupScene, tmp_path: Path
) -> None:
    scene.write("one")
    with small_disk(tmp_path / "disk", "16m", kind="ramfs") as disk:
        assert not is_full(disk)
        assert scene.backups.make(str(disk / "backup"), silent).seq == 1


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


def test_rows_of_another_log_that_was_moved_away_are_not_said_to_be_lost(scene: BackupScene) -> None:
    (scene.directory / "other").mkdir()
    other = BackupScene(scene.directory / "other")
    other.write("one")
    other.backups.make(scene.place("backup"), silent)
    scene.write("two", "three")
    scene.backups.make(scene.place("own"), silent)
    with SqliteEventReader(scene.home.path) as log:
        head, host = log.head(), log.host()
    asyncio.run(SqliteCheckpoints(scene.home.state, host).save({"state": Checkpoint(1, head, "{}")}))
    scene.home.events.rename(scene.directory / "moved.db")
    restored, _ = scene.backups.restore(scene.place("backup"), True, nothing, silent)
    assert (restored.rows, restored.lost, scene.rows()) == (1, 0, ["one"])


@pytest.mark.parametrize("name", ["events.db-old", "vitals.db", "vitals.db-wal", "state.db.saved"])
def test_a_folder_that_is_named_as_what_is_exchanged_is_kept_aside(scene: BackupScene, name: str) -> None:
    scene.write("one")
    open_vitals(scene.home.vitals)[0].close()
    scene.backups.make(scene.place("backup"), silent)
    for path in scene.home.path.glob("vitals.db*"):
        path.unlink()
    (scene.home.path / name).mkdir()
    restored, _ = scene.backups.restore(scene.place("backup"), True, nothing, silent)
    assert (Path(restored.kept_at) / name).is_dir()
    assert scene.home.vitals.is_file()
    assert scene.rows() == ["one"]


@pytest.mark.parametrize("schema", ["", "CREATE TABLE sample (id)"])
def test_vitals_of_a_backup_that_can_not_be_used_are_left_out(scene: BackupScene, schema: str) -> None:
    scene.write("one")
    with closing(sqlite3.connect(scene.home.vitals)) as vitals:
        vitals.executescript(schema)
    scene.home.vitals.touch()  # as on a full disk, where a daemon keeps its samples in memory
    scene.backups.make(scene.place("backup"), silent)
    shutil.rmtree(scene.home.path)
    scene.home.create()
    restored, _ = scene.backups.restore(scene.place("backup"), True, nothing, silent)
    assert restored.notes == ("the backup's vitals.db can't be used, and is left out",)
    assert scene.rows() == ["one"]
    assert not scene.home.vitals.exists()


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


FORGED_PLANS: dict[str, Callable[[BackupScene, Path], object]] = {
    "a pipe": lambda scene, plan: [plan.unlink(), os.mkfifo(plan)],
    "too deep": lambda scene, plan: plan.write_text("[" * 100_000),
    "no plan": lambda scene, plan: plan.write_text('{"kept_at": 5}'),
    "another place": lambda scene, plan: plan.write_text(
        plan.read_text().replace(str(scene.home.damaged / "1"), str(scene.directory / "elsewhere"))
    ),
    "the home": lambda scene, plan: plan.write_text(
        plan.read_text().replace(str(scene.home.damaged / "1"), str(scene.home.damaged / ".."))
    ),
    "the place leads elsewhere": lambda scene, plan: [
        os.rmdir(scene.home.damaged / "1"), (scene.home.damaged / "1").symlink_to(scene.directory / "elsewhere"),
    ],
    **({"its folder is another user's link": lambda scene, plan: [
        shutil.rmtree(scene.home.damaged), scene.home.damaged.symlink_to(scene.directory / "elsewhere"),
        os.lchown(scene.home.damaged, 65_534, 65_534),
    ]} if os.getuid() == 0 else {}),
    "the log leads elsewhere": lambda scene, plan: [
        (plan.parent / "events.db").unlink(), (plan.parent / "events.db").symlink_to(scene.directory / "victim"),
    ],
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("forge", FORGED_PLANS.values(), ids=FORGED_PLANS)
def test_a_plan_that_no_restore_has_made_is_not_carried_out(
    scene: BackupScene, forge: Callable[[BackupScene, Path], object]
) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    scene.write("two")
    found = scene.backups.check(scene.place("backup"), silent)
    with scene.backups.lock(), found.prepared(False) as prepared:
        found.decide(prepared)
    (elsewhere := scene.directory / "elsewhere").mkdir()
    (elsewhere / "1").mkdir()
    (scene.directory / "victim").write_text("kept")
    log = scene.home.events.read_bytes()
    forge(scene, scene.home.restore_plan)
    with scene.backups.lock(), pytest.raises(Damaged, match=r"plan\.json can't be read .* by hand"):
        finish_decided(scene.home)
    assert scene.home.events.read_bytes() == log
    assert os.listdir(elsewhere) == ["1"]
    assert os.listdir(elsewhere / "1") == []


def test_what_is_no_backup_is_refused(scene: BackupScene) -> None:
    scene.write("one")
    with pytest.raises(PulseError, match="is no backup"):
        scene.backups.restore(scene.place("nothing"), True, nothing, silent)


def test_a_home_that_is_in_use_is_refused(scene: BackupScene) -> None:
    scene.write("one")
    scene.backups.make(scene.place("backup"), silent)
    with scene.backups.lock(), pytest.raises(HomeBusy):
        scene.backups.restore(scene.place("backup"), True, nothing, silent)


def forge(backup: Path, text: str, values: dict[str, Any], files: dict[str, dict[str, Any]]) -> None:
    """Have a backup say of itself this text with other values and files, and vouch for that."""
    whole = json.loads(text)
    whole.pop("sha256")
    for name, fact in files.items():
        whole["files"][name] = {**whole["files"].get(name, {}), **fact}
    whole |= values
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    (backup / "backup.json").write_text(json.dumps({**whole, "sha256": digest}))


LINK = {"bytes": 0, "sha256": "", "mode": 0, "link": "../victim"}
FILE = {"bytes": 5, "sha256": hashlib.sha256(b"EVIL\n").hexdigest(), "mode": 384, "link": None}

VALUES: dict[str, Any] = {
    "chain": ["zz", "", 7], "made_at": ["x", 10**30, -1, True, 1.0], "seq": [None, 2**63], "host": [[]],
    "home": ["a\0b"], "machine": ["x" * 256], "files": [[], {"events.db": []}, {"events.db": {"bytes": 1}}],
    "format": [0, "1", None], "else": [1],
}  # fmt: skip


def test_no_odd_value_is_taken(scene: BackupScene) -> None:
    backup = scene.back_up()
    text = (backup / "backup.json").read_text()
    for key, value in ((name, one) for name in VALUES for one in VALUES[name]):
        forge(backup, text, {key: value}, {})
        with pytest.raises(Damaged, match="is not what was written"):
            read_manifest(backup)
    for key in ("bytes", "sha256", "mode", "link", "else"):
        for value in ("x", -1, 2**64, [], "a\0b", "\ud800"):
            forge(backup, text, {}, {"events.db": {key: value}})
            with pytest.raises(Damaged, match="take another"):
                read_manifest(backup)


NAMES: list[dict[str, dict[str, Any]]] = [
    {"engine": LINK}, {"engine/a": LINK, "engine/a/b": FILE}, {"engine/a": FILE, "engine/a/b": FILE},
    {"engine/../../victim/x": FILE}, {"engine//x": FILE}, {"engine/./x": FILE}, {"engine/": FILE},
    {"/etc/x": FILE}, {"": FILE}, {".": FILE}, {"plan.json": FILE}, {"present/events.db": FILE},
    {"events.db-wal": FILE}, {"run/lock": FILE}, {"config.toml": LINK}, {"vitals.db": LINK}, {"events.db": LINK},
    {"shadow.jsonl": LINK}, {"objects/aa": LINK}, {"objects/aa/passwd": FILE}, {"objects/aa/" + "b" * 62: FILE},
    {"objects/" + str(FILE["sha256"])[:2] + "/" + str(FILE["sha256"])[2:]: {**FILE, "link": "../../victim"}},
    {"engine/" + "d/" * 100 + "x": FILE}, {"engine/a\0b": FILE},
    {"engine/\ud800": FILE}, {"engine/\udcc3\udca9": FILE}, {"staging/x": {**LINK, "link": ""}},
    {"staging/x": {**FILE, "sha256": ""}}, {"staging/x": {**FILE, "link": "y"}},
]  # fmt: skip


def test_nothing_is_taken_that_no_backup_has(scene: BackupScene) -> None:
    backup = scene.back_up()
    text = (backup / "backup.json").read_text()
    for files in NAMES:
        forge(backup, text, {}, files)
        with pytest.raises(Damaged, match=r"as no backup does|is not what was written"):
            read_manifest(backup)


def test_a_forged_backup_writes_nothing_elsewhere(scene: BackupScene) -> None:
    backup = scene.back_up()
    victim = scene.directory / "victim"
    victim.mkdir()
    (victim / "cronjob").write_bytes(b"EVIL\n")
    (backup / "engine").symlink_to("../victim")
    text = (backup / "backup.json").read_text()
    forge(backup, text, {}, {"engine": LINK, "engine/cronjob": FILE})
    with pytest.raises(Damaged, match="names 'engine', as no backup does"):
        scene.backups.restore(str(backup), True, nothing, silent)
    forge(backup, text, {}, {"engine/cronjob": FILE})
    with pytest.raises(Damaged, match="engine/cronjob can't be read"):
        scene.backups.restore(str(backup), True, nothing, silent)


def test_a_backup_without_a_log_is_refused(scene: BackupScene) -> None:
    backup = scene.back_up()
    forge(backup, (backup / "backup.json").read_text(), {"files": {}}, {})
    with pytest.raises(Damaged, match="has no log"):
        scene.backups.restore(str(backup), True, nothing, silent)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["backup.json", "events.db", "config.toml", "staging/folder/rule.py"])
@pytest.mark.parametrize("odd", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_plain_file_is_neither_waited_for_nor_followed(
    scene: BackupScene, name: str, odd: Callable[[Path], object]
) -> None:
    backup = scene.back_up()
    (backup / name).unlink()
    odd(backup / name)
    with pytest.raises(PulseError, match=name):
        scene.backups.restore(str(backup), True, nothing, silent)


def test_a_link_on_the_way_to_a_file_is_not_followed(scene: BackupScene) -> None:
    backup = scene.back_up()
    (shard,) = (backup / "objects").iterdir()
    shard.rename(scene.directory / "elsewhere")
    shard.symlink_to(scene.directory / "elsewhere")
    with pytest.raises(Damaged, match="can't be read"):
        scene.backups.restore(str(backup), True, nothing, silent)


def test_a_file_that_is_larger_than_is_said_is_not_read_to_its_end(scene: BackupScene) -> None:
    backup = scene.back_up()
    os.truncate(backup / "config.toml", 2**40)
    with pytest.raises(Damaged, match=r"config\.toml can't be read"):
        scene.backups.restore(str(backup), True, nothing, silent)


@pytest.mark.parametrize("name", ["objects", "objects/shard", "restoring"])
def test_no_link_in_the_home_leads_a_restore_elsewhere(scene: BackupScene, name: str) -> None:
    backup = scene.back_up()
    (stored,) = (one for one in scene.home.objects.rglob("*") if one.is_file())
    stored.unlink()
    victim = scene.directory / "victim"
    victim.mkdir()
    (victim / "precious").touch()
    link = stored.parent if name.endswith("shard") else scene.home.path / name
    if name == "objects":
        stored.parent.rmdir()
    if link.exists():
        link.rmdir()
    link.symlink_to(victim)
    if name == "restoring":
        scene.backups.restore(str(backup), True, nothing, silent)
        assert stored.is_file()
    else:
        with pytest.raises(PulseError, match="nothing was restored"):
            scene.backups.restore(str(backup), True, nothing, silent)
    assert os.listdir(victim) == ["precious"]


def test_a_name_that_is_no_utf_8_comes_back(scene: BackupScene) -> None:
    odd = scene.home.path / "staging" / os.fsdecode(b"\xff.py")
    odd.parent.mkdir()
    odd.write_text("pass")
    (odd.parent / "link").symlink_to(odd.name)
    scene.write("one")
    backup = scene.backups.make(scene.place("backup"), silent).path
    shutil.rmtree(odd.parent)
    scene.backups.restore(str(backup), True, nothing, silent)
    assert odd.read_text() == (odd.parent / "link").read_text() == "pass"


def test_settings_in_a_folder_that_is_a_link_are_backed_up(scene: BackupScene) -> None:
    scene.write("one")
    (scene.directory / "mine/inner").mkdir(parents=True)
    for name in ("a.toml", "inner/b.toml"):
        (scene.directory / "mine" / name).write_text(name)
    link = scene.home.path / "conf.d"
    link.symlink_to(scene.directory / "mine")
    backup = scene.backups.make(scene.place("backup"), silent).path
    link.unlink()
    scene.backups.restore(backup, True, nothing, silent)
    assert [(link / name).read_text() for name in ("a.toml", "inner/b.toml")] == ["a.toml", "inner/b.toml"]


def test_a_folder_that_goes_before_it_is_copied_ends_no_backup(
    scene: BackupScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write("one")
    (staging := scene.home.path / "staging").mkdir()

    def copied(*what: Any) -> Any:
        shutil.rmtree(staging, ignore_errors=True)
        return copy_tree(*what)

    monkeypatch.setattr(store, "copy_tree", copied)
    backup = scene.backups.make(scene.place("backup"), silent).path
    assert not Path(backup, "staging").exists()


def test_an_engine_whose_refs_are_packed_is_a_repository_when_it_is_put_back(scene: BackupScene) -> None:
    scene.write("one")
    engine = scene.home.path / "engine"
    repository_of(scene.home.path, template(scene.directory / "template"), ADA)
    git(engine, "gc", "--quiet")
    assert not any(path.is_file() for path in (engine / ".git/refs").rglob("*"))
    head = git(engine, "rev-parse", "HEAD")
    backup = scene.backups.make(scene.place("backup"), silent).path
    shutil.rmtree(engine)
    scene.backups.restore(backup, True, nothing, silent)
    assert git(engine, "rev-parse", "HEAD") == head
    assert git(engine, "status", "--short") == ""


def test_a_file_of_the_users_own_that_is_named_as_a_lock_comes_back_and_a_lock_of_git_does_not(
    scene: BackupScene,
) -> None:
    scene.write("one")
    staging = scene.home.path / "staging"
    (staging / ".git/refs").mkdir(parents=True)
    for name in ("uv.lock", ".git/index.lock", ".git/refs/main.lock"):
        (staging / name).touch()
    made = scene.backups.make(scene.place("backup"), silent)
    shutil.rmtree(staging)
    scene.backups.restore(made.path, True, nothing, silent)
    assert [path.name for path in staging.rglob("*.lock")] == ["uv.lock"]


@pytest.mark.timeout(120)
def test_settings_that_are_no_file_or_have_no_end_are_refused_by_name(scene: BackupScene) -> None:
    scene.write("one")
    for odd in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        odd(scene.home.config)
        with pytest.raises(PulseError, match=r"config\.toml: it is no plain file"):
            scene.backups.make(scene.place("backup"), silent)
        scene.home.config.rmdir() if odd is Path.mkdir else scene.home.config.unlink()
    (scene.directory / "large").touch()
    os.truncate(scene.directory / "large", MOST_PLAIN + 1)
    scene.home.config.symlink_to(scene.directory / "large")
    with pytest.raises(PulseError, match="large: File too large"):
        scene.backups.make(scene.place("backup"), silent)
    assert {path.name for path in scene.directory.iterdir()} == {"home", "large"}


def test_folders_that_are_too_deep_are_left_out_and_named_and_the_rest_comes_back(scene: BackupScene) -> None:
    scene.write("one")
    staging = scene.home.path / "staging"
    staging.mkdir()
    nest(staging, "d", 150)
    nest(staging, "long" * 60, 30)
    (staging / "d/d/rule.py").touch()
    (staging / "link").symlink_to("x" * 300)
    made = scene.backups.make(scene.place("backup"), silent)
    assert [name.count("/") for name in made.left_out] == [DEEPEST - 1, 9]
    assert remove_tree(staging)
    scene.backups.restore(made.path, True, nothing, silent)
    assert {path.name for path in staging.rglob("*")} == {"d", "rule.py", "link"}


def nest(folder: Path, name: str, times: int) -> None:
    """Make so many folders of a name, each in the one before."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(times):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_altered_snapshots_of_ticks_are_left_out_and_named(scene: BackupScene) -> None:
    scene.write("one")
    whole, altered = (hashlib.sha256(content).hexdigest() for content in (b"whole", b"altered"))
    for name, content in ((whole, b"whole"), (altered, b"as a disk gives it back")):
        (scene.home.objects / name[:2]).mkdir(parents=True)
        (scene.home.objects / name[:2] / name[2:]).write_bytes(content)
    vitals, _ = open_vitals(scene.home.vitals)
    with closing(vitals):
        for tick, name in enumerate(
            (whole, altered, "0" * 64)
        ):  # that of the last one is gone, as at each trim
            values = (tick, 1, "boot", 1, "", 1, "", "", "", "", "", "", 1, 1, name)
            vitals.execute(f"INSERT INTO tick VALUES ({', '.join('?' * 15)}, NULL)", values)
    made = scene.backups.make(scene.place("backup"), silent)
    assert made.left_out == [f"objects/{altered[:2]}/{altered[2:]}"]
    (said,) = left_out_in_words(made.left_out)
    assert said.startswith("LEFT OUT: 1 snapshot of ticks, altered in the home: objects/")
    (noted,) = note_of_snapshots(scene.home)  # by `upulse verify`
    assert "1 snapshot of ticks is not what was stored, as " in noted
    assert altered[2:] in noted
    assert not note_of_snapshots(HomeLayout(Path(made.path)))


@pytest.mark.parametrize("harm", ["its end is gone", "it is gone"])
def test_rows_that_the_home_noted_and_nothing_holds_any_more_are_said_to_be_lost(
    scene: BackupScene, harm: str
) -> None:
    """As after a kill and the loss of a -wal: events.db-boot alone knows of them."""
    scene.write("one")
    made, before = scene.backups.make(scene.place("backup"), silent), scene.home.events.read_bytes()
    scene.write("two", "three")
    if harm == "it is gone":
        scene.home.events.unlink()
    else:
        scene.home.events.write_bytes(before)
        with pytest.raises(Damaged, match="ends at row 1, and had 3 rows: the 2 after it are LOST"):
            scene.backups.make(scene.place("another"), silent)
        assert not Path(scene.place("another")).exists()
    restored, _ = scene.backups.restore(made.path, True, nothing, silent)
    assert (restored.rows, restored.salvaged, restored.lost) == (1, 0, 2)
    restored, _ = scene.backups.restore(made.path, True, nothing, silent)
    assert restored.lost == 0  # that was told, and is in the log
