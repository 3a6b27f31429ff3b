"""A process that is held for one name is found for no other one."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host import process_table
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.process_executors import StopProcess
from pulse_adapters.host.process_identity import start_mark, start_sum
from pulse_adapters.host.process_search import find_matching
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.settings_doubts import left_unguarded
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import command_line, is_alive, live_processes, start_time_of
from pulse_core.actions import StopParams
from pulse_core.ports.host import Life, ProcessId, ProcessObservation
from pulse_core.projections.processes import LastStart, ProcessHistory
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import until, wished
from tests.processes import child_of_test

Seen = dict[str, ProcessObservation]


class Scene:
    """Two settings of which the second one finds what the first one starts."""

    def __init__(self, spawner: Spawner, home: Path, **second: object) -> None:
        self.word, self.known = f"w{uuid.uuid4().hex}", dict[str, ProcessId]()
        self.start = [sys.executable, "-c", "import time; time.sleep(1000)", self.word]
        some = {"name": "second", "match": self.word, **(second or {"start": self.start})}
        self.settings = Settings.model_validate({"process": [{"name": "first", "start": self.start}, some]})
        self.spawner, self.home, self.lives = spawner, home, Lives(spawner, home)
        self.table = LinuxProcessTable(spawner, home, self.lives, lambda: self.settings.process)

    async def begin(self, name: str = "first") -> ProcessId:
        effect = str(uuid.uuid4())
        env = self.lives.marks(name, effect)
        found = await self.spawner.start(self.start, output=self.home / "it.log", env=env)
        self.lives.begin(name, Life(effect, found))
        return found

    async def look(self, *names: str) -> Seen:
        some = [one for one in self.settings.process if not names or one.name in names]
        return dict(await self.table.look(some, self.known))

    def children_of(self, found: ProcessId) -> list[ProcessId]:
        return [one.found for one in live_processes() if one.session == found.pid and one.pid != found.pid]

    async def until_shown(self, found: ProcessId) -> None:
        await until(lambda: self.word in command_line(found.pid))


WAYS: list[dict[str, object]] = [{}, {"command": ["true"]}]


@pytest.fixture
def scene(spawner: Spawner, tmp_path: Path) -> Callable[..., Scene]:
    return lambda **second: Scene(spawner, tmp_path, **second)


@pytest.mark.parametrize("second", WAYS, ids=["start", "command"])
async def test_what_was_started_for_one_is_found_for_no_other_and_outlives_its_stop(
    scene: Callable[..., Scene], second: dict[str, object]
) -> None:
    it = scene(**second)
    main = await it.begin()
    await it.until_shown(main)
    seen = await it.look()
    assert (seen["first"].found, seen["second"].found) == ((main,), ())
    assert f"process {main.pid} is held for first" in seen["second"].detail
    it.known["first"] = main
    executor = StopProcess(lambda: it.settings, it.table, lambda: it.known, it.lives)
    wish, event = wished("stop-process", process="second")
    assert (await executor.execute(wish, StopParams(process="second"), event)).data == {"ended": []}
    assert is_alive(main)


async def test_what_was_found_for_one_is_found_for_no_other(scene: Callable[..., Scene]) -> None:
    it = scene()
    main = await it.spawner.start(it.start, output=it.home / "it.log")
    await it.until_shown(main)
    it.known["first"] = main
    assert (await it.look())["second"].found == ()


async def test_what_a_killed_daemon_started_and_did_not_record_is_left_to_its_name(
    scene: Callable[..., Scene], spawner: Spawner
) -> None:
    it = scene()
    main = await it.begin()
    await it.until_shown(main)
    life = it.lives.last("first")
    assert life is not None
    it.lives = Lives(spawner, it.home, begun=lambda: {life.effect: "first"})
    it.table = LinuxProcessTable(spawner, it.home, it.lives, lambda: it.settings.process)
    assert (await it.look("second"))["second"].found == ()
    assert (await it.look("first"))["first"].found == (main,)


async def test_one_process_that_two_settings_find_at_once_is_the_first_ones(
    spawner: Spawner, tmp_path: Path
) -> None:
    it = Scene(spawner, tmp_path)
    both = [{"name": name, "start": it.start, "match": it.word} for name in ("first", "second")]
    it.settings = Settings.model_validate({"process": both})
    main = await spawner.start(it.start, output=tmp_path / "it.log")
    await it.until_shown(main)
    seen = await it.look()
    assert (seen["first"].found, seen["second"].found) == ((main,), ())


async def test_a_child_of_the_held_one_is_found_for_no_other_if_the_held_one_matches_too(
    scene: Callable[..., Scene],
) -> None:
    it = scene()
    fork = "import os, time; os.fork(); time.sleep(1000)"
    it.start = [sys.executable, "-c", fork, it.word]
    main = await it.begin()
    await until(lambda: [one for one in live_processes() if one.parent == main.pid])
    assert (await it.look())["second"].found == ()


async def test_a_child_of_the_held_one_may_be_another_process(spawner: Spawner, tmp_path: Path) -> None:
    it = Scene(spawner, tmp_path, command=["true"], match="^sleep 1000 [0-9a-f]+$")
    it.start = ["sh", "-c", "sleep 1000 0000; :"]
    main = await it.begin()
    children = list[ProcessId]()
    await until(
        lambda: (
            children.extend(
                one.found
                for one in live_processes()
                if one.parent == main.pid and command_line(one.pid)[:1] == ["sleep"]
            )
            or children
        )
    )
    it.settings = it.settings.model_copy(
        update={
            "process": (
                it.settings.process[0].model_copy(update={"start": tuple(it.start)}),
                it.settings.process[1],
            )
        }
    )
    assert children[0] in (await it.look())["second"].found


def renamed(it: Scene, **more: object) -> None:
    """Let the settings say `new` where they said `first`."""
    new = [{"name": name, "start": it.start, **more} for name in ("new", "newer")]
    it.settings = Settings.model_validate({"process": new})


async def test_a_renamed_process_is_taken_over_by_one_of_the_same_start(scene: Callable[..., Scene]) -> None:
    it = scene()
    main = await it.begin()
    await it.until_shown(main)
    renamed(it)
    seen = await it.look()
    assert (seen["new"].found, seen["newer"].found) == ((main,), ())
    assert f"process {main.pid} was started as first" in seen["new"].detail
    assert not await it.table.others(it.settings.process, {"new": main})


@pytest.mark.parametrize("begun", ["never", "dead"])
@pytest.mark.parametrize("stands", ["what was started", "what that left in the background"])
async def test_a_renamed_process_is_taken_over_whatever_it_shows_by_now(
    scene: Callable[..., Scene], stands: str, begun: str
) -> None:
    it = scene()
    it.start = ["sh", "-c", "exec env -i sleep 1000", it.word]
    renamed(it)
    first, main = it.settings.process[0], await it.begin()
    await until(lambda: command_line(main.pid) == ["sleep", "1000"])
    started = main if stands == "what was started" else main._replace(pid=2**22)
    lives = {"first": Life("effect", started, start_sum(first)), "other": Life("e", started, "other")}
    histories = dict[str, ProcessHistory]()
    if begun == "dead":  # it was called so before
        it.known["new"] = dead = ProcessId(2**22, 1)
        lives["new"] = Life("before", dead, start_sum(first))
        last = LastStart("before", *dead, None, start_sum(first))
        histories["new"] = ProcessHistory(pid=dead.pid, started=dead.started, boot="boot", start=last)
        it.settings = it.settings.model_copy(update={"process": it.settings.process[:1]})
    it.lives = Lives(
        it.spawner,
        it.home,
        lambda: lives,
        mains=lambda: {**it.known, "first": main},
        guarded=lambda: it.settings.process,
    )
    it.table = LinuxProcessTable(it.spawner, it.home, it.lives, lambda: it.settings.process)
    seen = await it.look()
    assert [sight.found for sight in seen.values()] == [(main,), ()][: len(seen)]
    assert f"process {main.pid} was started as first" in seen["new"].detail
    assert it.lives.lasts()["new"] == lives["first"]
    history = ProcessHistory(
        pid=main.pid,
        started=main.started,
        boot="boot",
        start=LastStart("effect", *started, None, start_sum(first)),
    )
    histories["first"] = history
    assert left_unguarded(it.settings.process, histories, "boot") == {}
    renamed(it, env={"PORT": "1"})
    assert not any(sight.found for sight in (await it.look()).values())
    assert left_unguarded(it.settings.process, histories, "boot") == {"first": main.pid}


async def test_who_was_started_under_a_new_name_belongs_to_the_old_one_again_that_had_died(
    scene: Callable[..., Scene],
) -> None:
    it, lives = scene(), dict[str, Life]()
    it.start = ["sh", "-c", "sleep 1000 & sleep 1000; :", it.word]
    it.lives = Lives(it.spawner, it.home, lambda: dict(lives), guarded=lambda: it.settings.process)
    renamed(it)
    dead = await it.begin("new")
    lives["new"] = it.lives.lasts()["new"]
    await it.lives.stop(it.settings.process[0], [dead])
    main = await it.begin("newer")
    lives["newer"] = it.lives.lasts()["newer"]
    await until(lambda: len(it.children_of(main)) == 2)
    it.settings = Settings.model_validate({"process": [{"name": "new", "start": it.start}]})
    lives = {"new": lives["newer"]}
    assert it.lives.lasts() == lives
    assert it.lives.leftovers({"new": main, "newer": None}) == {}
    await it.lives.stop(it.settings.process[0], [main])
    assert not it.children_of(main)


@pytest.mark.parametrize("other", ["argv", "env", "known", "guarded"])
async def test_nobody_takes_over_what_would_be_begun_otherwise_or_has_its_name(
    scene: Callable[..., Scene], other: str
) -> None:
    it = scene()
    main = await it.begin()
    await it.until_shown(main)
    if other == "argv":
        it.start = it.start[:-2]
    if other != "guarded":
        renamed(it, **({"env": {"PORT": "1"}} if other == "env" else {}))
    if other == "known":
        it.known["new"] = it.known["newer"] = main._replace(started=1)
    assert not any(main in sight.found for name, sight in (await it.look()).items() if name != "first")


async def test_what_a_name_has_left_that_is_not_guarded_any_more_is_told(scene: Callable[..., Scene]) -> None:
    it = scene()
    it.start = ["sh", "-c", "setsid sleep 1000 & sleep 1000; :", it.word]
    main = await it.begin()

    def left() -> tuple[ProcessId, ...]:
        return it.table.leftovers({"first": None}).get("first", ())

    await until(lambda: len(left()) == 3)  # who is just being executed shows no mark
    assert left()[0] == main


async def test_who_is_not_guarded_any_more_is_told_by_the_log(scene: Callable[..., Scene]) -> None:
    it = scene()
    main = await it.begin()
    await it.until_shown(main)
    start = LastStart("effect", main.pid, main.started)
    lives = ProcessHistory(pid=main.pid, started=main.started, boot="boot", start=start)
    histories = {"first": lives, "dead": lives._replace(pid=5, started=1, start=LastStart("e", 5, 1))}
    assert left_unguarded((), histories, "boot") == {"first": main.pid}
    assert left_unguarded((), histories, "another") == {}
    assert left_unguarded(it.settings.process[:1], histories, "boot") == {}
    renamed(it)
    assert left_unguarded(it.settings.process, histories, "boot") == {}


async def test_who_was_started_with_other_settings_than_now_is_told(scene: Callable[..., Scene]) -> None:
    it = scene()
    first = it.settings.process[0]
    main = await it.spawner.start(it.start, output=it.home / "it.log", env=start_mark(first))
    it.lives.begin("first", Life("e", main))
    await it.until_shown(main)
    assert await it.table.others([first], {"first": main}) == {}
    for changed in (
        {"start": ("other",)},
        {"user": "nobody"},
        {"env": {"A": "1"}},
        {"cwd": "/"},
        {"umask": "027"},
    ):
        told = await it.table.others([first.model_copy(update=changed)], {"first": main})
        assert f"process {main.pid} was started before its `start`" in told["first"]


async def test_what_is_started_amid_a_search_is_it_whoever_the_search_finds(
    scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    it, begun = scene(), list[ProcessId]()
    with child_of_test(subprocess.Popen(it.start)) as other:
        started = start_time_of(other.pid)
        assert started is not None
        copy = ProcessId(other.pid, started)
        await it.until_shown(copy)

        async def search(*what: Any) -> Any:
            found = await find_matching(*what)
            begun.append(await it.begin("second"))
            return found

        monkeypatch.setattr(process_table, "find_matching", search)
        assert (await it.look("second"))["second"].found == tuple(begun) != (copy,)
        other.kill()
