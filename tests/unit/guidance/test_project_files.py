"""The files of projects on the disk: what is read, what is refused, and what is written for other tools."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pulse_adapters.guidance import disk_project_files
from pulse_adapters.guidance.disk_project_files import LONGEST_TEXT, DiskProjectFiles
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import FILES, TEMPLATES, Change, make_event_id
from pulse_core.guidance.service import FileObservation, GuidanceService
from pulse_core.model.errors import PulseError
from tests.unit.guidance.guidance_world import GuidanceWorld

MISSING = FileObservation()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    return found


@pytest.fixture
def files(root: Path) -> DiskProjectFiles:
    found = DiskProjectFiles(settle=0)
    found.prepare(str(root))
    return found


def observed(files: DiskProjectFiles, root: Path, name: str = "guidance.md") -> FileObservation:
    return files.observe(str(root), {})[name]


def test_files_are_made_and_never_overwritten(root: Path) -> None:
    (root / ".pulse").mkdir()
    (root / ".pulse/plan.md").write_text("mine")
    DiskProjectFiles().prepare(str(root))
    assert {path.name: path.read_text() for path in (root / ".pulse").iterdir()} == {
        **TEMPLATES,
        "plan.md": "mine",
    }


def test_the_bytes_are_what_counts(files: DiskProjectFiles, root: Path) -> None:
    data = b"\xff\x00\r\n" * 700_000
    (root / ".pulse/guidance.md").write_bytes(data)
    assert observed(files, root) == FileObservation(hashlib.sha256(data).hexdigest(), len(data))
    assert f"cut at {LONGEST_TEXT:,} bytes" in files.texts(str(root))["guidance.md"]


def link_out(pulse: Path, outside: Path) -> None:
    (outside / "secret").write_text("secret")
    (pulse / "guidance.md").symlink_to(outside / "secret")


def link_in_links(pulse: Path, outside: Path) -> None:
    (outside / "secret").write_text("secret")
    (pulse.parent / "way").symlink_to(outside)
    (pulse / "guidance.md").symlink_to("../way/secret")


def folder_in_its_place(pulse: Path, outside: Path) -> None:
    (pulse / "guidance.md").mkdir()


def pipe_in_its_place(pulse: Path, outside: Path) -> None:
    os.mkfifo(pulse / "guidance.md")


def link_to_itself(pulse: Path, outside: Path) -> None:
    (pulse / "guidance.md").symlink_to("guidance.md")


@pytest.mark.parametrize(
    "put", [link_out, link_in_links, folder_in_its_place, pipe_in_its_place, link_to_itself]
)
def test_what_is_no_file_of_the_project_counts_as_none(
    put: Callable[[Path, Path], None], files: DiskProjectFiles, root: Path, tmp_path: Path
) -> None:
    (root / ".pulse/guidance.md").unlink()
    put(root / ".pulse", tmp_path)
    assert observed(files, root) == MISSING
    assert files.texts(str(root))["guidance.md"] == ""
    assert observed(files, root, "task.md") != MISSING


def test_a_file_that_is_too_large_counts_as_none(files: DiskProjectFiles, root: Path) -> None:
    os.truncate(root / ".pulse/guidance.md", 1 << 33)
    assert observed(files, root) == MISSING
    assert "cut at" in files.texts(str(root))["guidance.md"]


def test_a_link_within_the_project_is_followed(files: DiskProjectFiles, root: Path) -> None:
    (root / "docs.md").write_text("of the project")
    (root / ".pulse/guidance.md").unlink()
    (root / ".pulse/guidance.md").symlink_to("../docs.md")
    assert observed(files, root).size == len("of the project")


def test_a_folder_out_of_the_project_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".pulse").symlink_to(tmp_path / "outside")
    files = DiskProjectFiles(settle=0)
    with pytest.raises(PulseError, match="points out of the project"):
        files.prepare(str(root))
    assert set(files.observe(str(root), {}).values()) == {MISSING}
    publish(files, root, project_with(1))
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_reading_settles_before_it_counts(files: DiskProjectFiles, root: Path) -> None:
    """A file that was just truncated is read again until nobody has written it for a while, or for long enough."""
    slow = DiskProjectFiles(settle=0.02)
    known = {name: one.sha256 for name, one in slow.observe(str(root), {}).items()}
    (root / ".pulse/guidance.md").write_text("")
    assert slow.observe(str(root), known)["guidance.md"].size == 0


def change(number: int) -> Change:
    id_ = make_event_id(1_800_000_000_000_000 + number, f"{number:08x}")
    return Change(
        number, id_, 1_800_000_000_000_000 + number, "modified", FILES[number % 4], "ab" * 32, number
    )


def project_with(count: int) -> GuidedProject:
    project = GuidedProject(initialized_at=1_800_000_000_000_000)
    for number in range(1, count + 1):
        project = project.after_changes(change(number))
    return project


def lines_of(project: GuidedProject) -> Iterator[str]:
    return (change(number).line() for number in range(1, project.count + 1))


def publish(files: DiskProjectFiles, root: Path, project: GuidedProject, is_whole: bool = True) -> None:
    files.publish(str(root), lambda: project, lambda: lines_of(project) if is_whole else None)


def is_right(root: Path, project: GuidedProject) -> bool:
    said = json.loads((root / ".pulse/state.json").read_text())
    assert said["last_hashes"] == project.hashes
    assert {path.name for path in (root / ".pulse").iterdir()} == {*FILES, "state.json", "events.jsonl"}
    return (root / ".pulse/events.jsonl").read_text() == "".join(lines_of(project))


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_text("")


def damage_a_line(path: Path) -> None:
    path.write_text(path.read_text().replace('"modified"', '"mxdified"', 1))
    os.utime(path, (0, 0))  # the kernel's clock may not have gone on since it was written


def fill(path: Path) -> None:
    os.truncate(path, 1 << 33)


def add_a_line(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


def tear_the_end(path: Path) -> None:
    path.write_text(path.read_text()[:-7])


def link_elsewhere(path: Path) -> None:
    target = path.parent.parent / "target"
    target.write_text("theirs")
    path.unlink()
    path.symlink_to(target)


DAMAGE = [remove, empty, damage_a_line, fill, add_a_line, tear_the_end, link_elsewhere]


@pytest.mark.parametrize("name", ["state.json", "events.jsonl"])
@pytest.mark.parametrize("spoil", DAMAGE)
@pytest.mark.parametrize("more", [0, 1, 30])
def test_what_is_damaged_is_written_anew(
    name: str, spoil: Callable[[Path], None], more: int, files: DiskProjectFiles, root: Path
) -> None:
    publish(files, root, project_with(50))
    assert is_right(root, project_with(50))
    spoil(root / ".pulse" / name)
    publish(files, root, project_with(50 + more))
    assert is_right(root, project_with(50 + more))
    if (root / "target").exists():
        assert (root / "target").read_text() == "theirs"


def test_two_processes_add_to_the_same_file(files: DiskProjectFiles, root: Path) -> None:
    other = DiskProjectFiles(settle=0)
    for count in range(1, 90):
        publish((files, other)[count % 3 == 0], root, project_with(count))
        assert is_right(root, project_with(count))


def test_who_holds_the_lock_holds_nobody_up(
    files: DiskProjectFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_project_files, "LOCK_WAIT_S", 0.0)
    folder = os.open(root / ".pulse", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    publish(files, root, project_with(3))
    assert not (root / ".pulse/events.jsonl").exists()
    os.close(folder)
    publish(files, root, project_with(3))
    assert is_right(root, project_with(3))


def test_who_knows_the_newest_changes_alone_adds_to_what_fits(files: DiskProjectFiles, root: Path) -> None:
    publish(files, root, project_with(60))
    daemon = DiskProjectFiles(settle=0)
    publish(daemon, root, project_with(65), is_whole=False)
    assert is_right(root, project_with(65))
    tear_the_end(root / ".pulse/events.jsonl")
    publish(DiskProjectFiles(settle=0), root, project_with(66), is_whole=False)
    assert not is_right(root, project_with(66))
    publish(files, root, project_with(66))
    assert is_right(root, project_with(66))


def test_a_log_that_was_put_back_is_what_counts(files: DiskProjectFiles, root: Path) -> None:
    publish(files, root, project_with(60))
    publish(files, root, project_with(50))
    assert is_right(root, project_with(50))


def test_the_state_is_written_as_it_was(files: DiskProjectFiles, root: Path) -> None:
    publish(files, root, GuidedProject(initialized_at=1_800_000_000_000_000))
    assert (root / ".pulse/events.jsonl").read_text() == ""
    assert (root / ".pulse/state.json").read_text() == (
        "{\n"
        '  "initialized_at": "2027-01-15T08:00:00.000000Z",\n'
        '  "last_acknowledged_at": null,\n'
        '  "last_acknowledged_event_id": null,\n'
        '  "last_acknowledged_plan_sha256": null,\n'
        '  "last_hashes": {\n'
        '    "constraints.md": null,\n'
        '    "guidance.md": null,\n'
        '    "plan.md": null,\n'
        '    "task.md": null\n'
        "  },\n"
        f'  "project_root": "{root}",\n'
        '  "schema_version": 2\n'
        "}\n"
    )


def test_the_folder_is_made_again_by_nobody_but_who_begins(files: DiskProjectFiles, root: Path) -> None:
    for path in (root / ".pulse").iterdir():
        path.unlink()
    assert files.is_empty(str(root))
    (root / ".pulse").rmdir()
    publish(files, root, project_with(3))
    assert not (root / ".pulse").exists()
    assert files.is_empty(str(root))


def test_a_file_that_is_being_written_is_waited_for(files: DiskProjectFiles, root: Path) -> None:
    """Truncated, and not yet written: nobody sees it so, however long its writer takes for the rest."""
    known = {name: one.sha256 for name, one in files.observe(str(root), {}).items()}
    with (root / ".pulse/guidance.md").open("w") as writer, ThreadPoolExecutor(1) as other:
        looking = other.submit(DiskProjectFiles(settle=60).observe, str(root), known)
        while not looking.running():
            time.sleep(0.001)
        writer.write("whole")
        writer.close()
        assert looking.result(60)["guidance.md"].size == len("whole")


def test_who_writes_for_ever_holds_nobody_up(root: Path, files: DiskProjectFiles) -> None:
    known = {name: one.sha256 for name, one in files.observe(str(root), {}).items()}
    with (root / ".pulse/guidance.md").open("w") as writer:
        writer.write("so far")
        writer.flush()
        assert DiskProjectFiles(settle=0.001).observe(str(root), known)["guidance.md"].size == len("so far")


def test_a_check_costs_the_same_after_ten_thousand_changes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the log's changes nor the lines of the file are gone through again, nor for one more change."""
    world, disk = GuidanceWorld(), DiskProjectFiles(settle=0)
    disk.prepare(str(root))
    hash_ = disk.observe(str(root), {})["task.md"].sha256
    rows = (change(number)._replace(sha256=hash_, file="task.md") for number in range(1, 10_001))
    (root / ".pulse/events.jsonl").write_text("".join(row.line() for row in rows))
    service = GuidanceService(world, disk, lambda: 1_900_000_000_000_000, lambda: "0" * 8)
    assert service.begin(str(root)) == 0
    first, inode = change(1).id, (root / ".pulse/events.jsonl").stat().st_ino
    monkeypatch.setattr(world, "changes", lambda root: pytest.fail("all changes are gone through"))
    monkeypatch.setattr(world, "find", lambda root, id_: None)
    assert not service.should_interrupt(str(root), first)["needs_replan"]
    (root / ".pulse/guidance.md").write_text("smaller")
    asked = service.should_interrupt(str(root), None)
    assert service.acknowledge(str(root), asked["pending_replan_event_id"])["accepted"]
    written = (root / ".pulse/events.jsonl").read_bytes()
    assert (written.count(b"\n"), (root / ".pulse/events.jsonl").stat().st_ino) == (10_001, inode)
