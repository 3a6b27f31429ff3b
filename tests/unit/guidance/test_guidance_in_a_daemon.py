"""What the daemon does about guidance: its watcher records changes with others beside it, its rule tells people."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_adapters.guidance.watcher import BURST, IDLE_S, OFTEN_S, GuidanceWatcher
from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.capability import WatcherContext
from pulse_core.guidance.events import (
    GuidanceAcknowledged,
    GuidanceChanged,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
)
from pulse_core.guidance.projection import GUIDANCE, GuidedProject, lines
from pulse_core.guidance.protocol import ChangeKind, make_event_id
from pulse_core.guidance.rules import remind_of_guidance
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Draft
from pulse_core.model.payload import Payload, Role
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from pulse_core.testing import given
from tests.unit.guidance.guidance_world import sha

ROOT = "/project"


class Scene:
    """A gate before a log in memory, a project on the disk, and as many watchers as a test wants."""

    def __init__(self, project: Path) -> None:
        self.project, self.root = project, str(project)
        self.clock, self.view = VirtualClock(lambda: 0.0), View()
        self.log = MemoryLog(self.clock)
        self.log.listen(self.view.on_events)
        self.gate = Gate(self.log, self.view, Settings, {}, self.log.clock)

    async def say(self, payload: Payload) -> None:
        await self.gate.append(Role.PERSON, "ada", [Draft(payload, self.root)])

    async def begin(self) -> None:
        files = DiskProjectFiles(settle=0)
        files.prepare(self.root)
        await self.say(
            GuidanceInitialized(
                hashes={name: one.sha256 for name, one in files.observe(self.root, {}).items()}
            )
        )
        await self.say(GuidanceWatched())

    def watcher(self) -> GuidanceWatcher:
        nothing: Any = None
        return GuidanceWatcher(
            WatcherContext(
                prober=nothing,
                commands=nothing,
                clock=self.clock,
                settings=Settings,
                state=self.view,
                window=nothing,
                programs=nothing,
                home=HomeLayout(self.project),
                append=self.gate.append_own,
                listen=self.log.listen,
            )
        )

    @property
    def standing(self) -> GuidedProject:
        return self.view().of(GUIDANCE).projects[self.root]

    def changes(self) -> list[str]:
        return [event.subject for event in self.log.events if event.kind == GuidanceChanged.kind]


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    await scene.begin()
    return scene


async def test_a_change_is_noticed_at_once_and_recorded(scene: Scene) -> None:
    watcher = scene.watcher()
    assert (await watcher.collect()).data == {"projects": 1, "pending": 0}
    watcher.nudge.clear()
    (scene.project / "other.md").write_text("nothing of ours")
    (scene.project / ".pulse/guidance.md").write_text("smaller")
    async with asyncio.timeout(30):
        await watcher.nudge.wait()
    assert (await watcher.collect()).data == {"projects": 1, "pending": 1}
    assert scene.standing.hashes["guidance.md"] == sha("smaller")
    line = json.loads((scene.project / ".pulse/events.jsonl").read_text())
    assert line["id"] == scene.standing.pending_id
    watcher.close()


async def test_a_project_that_changes_all_the_time_is_looked_at_now_and_then(scene: Scene) -> None:
    watcher = scene.watcher()
    await watcher.collect()
    for number in range(BURST + 3):
        watcher.nudge.clear()
        (scene.project / ".pulse/guidance.md").write_text(f"edit {number}")
        for _ in range(3):  # what inotify says is read in the next turn of the loop
            await asyncio.sleep(0)
        assert watcher.nudge.is_set() == (number < BURST)
    assert watcher.interval == OFTEN_S
    await watcher.collect()
    assert scene.standing.hashes["guidance.md"] == sha(f"edit {BURST + 2}")
    watcher.close()


async def test_a_folder_that_is_removed_and_made_again_is_watched_on(scene: Scene) -> None:
    watcher = scene.watcher()
    await watcher.collect()
    for path in (scene.project / ".pulse").iterdir():
        path.unlink()
    (scene.project / ".pulse").rmdir()
    await watcher.collect()
    assert len(scene.changes()) == 4
    watcher.nudge.clear()
    (scene.project / ".pulse").mkdir()
    async with asyncio.timeout(30):
        await watcher.nudge.wait()
    await watcher.collect()
    watcher.nudge.clear()
    (scene.project / ".pulse/guidance.md").write_text("again")
    async with asyncio.timeout(30):
        await watcher.nudge.wait()
    await watcher.collect()
    assert scene.standing.recent[-1].kind == "created"
    assert len((scene.project / ".pulse/events.jsonl").read_text().splitlines()) == 5
    watcher.close()


async def test_two_that_look_at_the_same_time_record_a_change_once(scene: Scene) -> None:
    watchers = [scene.watcher() for _ in range(4)]
    for number in range(10):
        for name in ("task.md", "guidance.md"):
            (scene.project / ".pulse" / name).write_text(f"edit {number}")
        await asyncio.gather(*(one.collect() for one in watchers))
    assert len(scene.changes()) == 20
    for one in watchers:
        one.close()


async def test_a_project_that_can_not_be_read_is_told_of_once_and_holds_up_no_other(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = Scene(tmp_path_factory.mktemp("dead"))
    dead.gate, dead.view = scene.gate, scene.view
    await dead.begin()
    observe = DiskProjectFiles.observe

    def unless_dead(files: DiskProjectFiles, root: str, known: Any) -> Any:
        if root == dead.root:
            raise TimeoutError(f"the file system of {root} does not answer")
        return observe(files, root, known)

    monkeypatch.setattr(DiskProjectFiles, "observe", unless_dead)
    watcher = scene.watcher()
    with pytest.raises(PulseError, match=f"{dead.root} does not answer"):
        await watcher.collect()
    (scene.project / ".pulse/guidance.md").write_text("smaller")
    assert (await watcher.collect()).data == {"projects": 2, "pending": 1}
    watcher.close()


async def test_what_is_not_watched_costs_nothing(scene: Scene) -> None:
    watcher = scene.watcher()
    assert watcher.interval == OFTEN_S
    await scene.say(GuidanceUnwatched())
    assert watcher.nudge.is_set()
    (scene.project / ".pulse/guidance.md").write_text("unwatched")
    assert watcher.interval == IDLE_S
    assert (await watcher.collect()).data == {"projects": 0, "pending": 0}
    assert scene.changes() == []
    watcher.close()


async def test_nobody_can_make_a_change_up(scene: Scene) -> None:
    id_ = make_event_id(1_800_000_000_000_000, "00000000")
    made = {
        "event_id": id_,
        "change": ChangeKind.MODIFIED,
        "file": "guidance.md",
        "sha256": sha("x"),
        "size": 1,
    }
    for wrong, why in (
        ({"number": 2}, "was recorded already"),
        ({"change": ChangeKind.CREATED}, "was not created"),
        ({"sha256": scene.standing.hashes["guidance.md"]}, "was not modified"),
    ):
        with pytest.raises(Refused, match=why):
            await scene.say(GuidanceChanged(**{"number": 1, **made, **wrong}))
    with pytest.raises(Refused, match="is no project"):
        await scene.gate.append(Role.PERSON, "ada", [Draft(GuidanceWatched(), "/elsewhere")])
    with pytest.raises(Refused, match="waits for an acknowledgement"):
        await scene.say(GuidanceAcknowledged(event_id=id_))
    with pytest.raises(Refused, match="known already"):
        await scene.say(GuidanceInitialized(hashes={}))
    with pytest.raises(Refused, match="may be recorded by the owner or root only"):
        await scene.gate.append(Role.AGENT, "bot", [Draft(GuidanceChanged(number=1, **made), scene.root)])


def test_people_are_told_once_of_what_no_agent_acknowledges() -> None:
    story = given(remind_of_guidance, settings={"guidance": {"remind_after": "15m"}})
    story.happened("guidance-initialized", ROOT, hashes={})
    story.happened("guidance-watched", ROOT)
    id_ = make_event_id(story.now.at, "00000000")
    data = {
        "number": 1,
        "event_id": id_,
        "change": "created",
        "file": "guidance.md",
        "sha256": sha("x"),
        "size": 1,
    }
    story.happened("guidance-changed", ROOT, **data)
    story.tick()
    story.expect_nothing()
    assert story.verdict.tick_ms == 15 * 60_000 + 1
    story.after("2h").tick()  # as after a time without a daemon
    effect = story.expect("notify", key=f"notify:guidance:{id_}")
    assert "guidance.md in /project/.pulse was seen changed 2 h ago" in str(effect.params["text"])
    waiting = f"guidance  1 project, 1 with changes that no agent has acknowledged: {ROOT}"
    assert list(lines(story.snapshot)) == [waiting]
    story.begun(effect.key)
    story.acked(effect.key)
    story.after("1h").tick()
    story.expect_nothing()
    story.happened("guidance-acknowledged", ROOT, event_id=id_)
    assert list(lines(story.snapshot)) == ["guidance  1 project"]
    story.tick()
    over = story.expect("notify", key=f"notify:guidance:{id_}")
    assert (over.params["title"], over.params["over"]) == (
        f"resolved: guidance of {ROOT} not acknowledged",
        True,
    )


def test_people_are_told_of_changes_after_a_clock_was_far_ahead_for_a_while() -> None:
    story = given(remind_of_guidance, settings={"guidance": {"remind_after": "15m"}})
    story.happened("guidance-initialized", ROOT, hashes={})
    story.happened("guidance-watched", ROOT)
    id_ = make_event_id(story.now.plus(86_400_000_000 * 365).at, "00000000")
    data = {"number": 1, "event_id": id_, "change": "created", "file": "guidance.md", "sha256": sha("x")}
    story.happened("guidance-changed", ROOT, **data)
    story.after("2h").tick()
    effect = story.expect("notify", key=f"notify:guidance:{id_}")
    assert "was seen changed 2 h ago" in str(effect.params["text"])
