"""What is left of a guarded process's last life is ended before the next one begins, and at its stop; nothing else is."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pulse_adapters.host import life_groups, marked_processes, process_table
from pulse_adapters.host import lives as lives_module
from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.lives import MOMENT_S, Lives
from pulse_adapters.host.marked_processes import SETTLED, Bearer, HomeMarks, MarkedProcesses, bearer_of
from pulse_adapters.host.process_executors import RestartProcess, StopProcess
from pulse_adapters.host.process_identity import start_sum
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.control_group import LIFE, ControlGroup, NoControlGroups, home_groups
from pulse_adapters.workers.posix_spawn import can_spawn_in_group
from pulse_adapters.workers.proc import (
    ProcStat,
    children,
    command_line,
    environment,
    environments,
    has_no_environment,
    is_alive,
    live_processes,
    read_stat,
    session_of,
    ticks_now,
)
from pulse_adapters.workers.process_tree import in_tree
from pulse_adapters.workers.threads import Pool
from pulse_core.actions import RestartParams, StopParams
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import Life, ProcessId
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from tests.control_groups import skip_without_groups
from tests.descriptors import no_descriptors
from tests.integration.host.host_scene import said, until, wished
from tests.long_form import sample, sampled
from tests.process_trees import ESCAPES, PROGRAMS, is_of_program, script_of
from tests.processes import child_of_test
from tests.slow_execution import being_executed


class Scene:
    """A guarded process that is killed and restarted as the daemon would, and what can be seen of it from outside."""

    def __init__(
        self,
        spawner: Spawner,
        table: LinuxProcessTable,
        place: Path,
        program: str,
        size: int = 0,
        lives: Callable[[], Mapping[str, Life]] = dict,
        groups: LifeGroups | None = None,
        **more: str | None,
    ) -> None:
        self.seconds = f"9{uuid.uuid4().int % 10**12:012}"
        script, self.size = (program, size) if size else PROGRAMS[program]
        pid_file = place / "pid"
        if "pid file" in program:
            more["pid_file"] = str(pid_file)
        if "ignores" in program:
            more["stop_timeout"] = "300ms"
        argv = ["sh", "-c", script_of(script, self.seconds, pid_file)]
        self.settings = Settings.model_validate({"process": [{"name": "it", "start": argv, **more}]})
        self.table, self.known, self.groups = table, dict[str, ProcessId](), groups
        self.lives = Lives(spawner, place, lives, groups)
        arguments = (lambda: self.settings, table, lambda: self.known)
        self.restarter = RestartProcess(*arguments, self.lives, place / "logs")
        self.stopper = StopProcess(*arguments, self.lives)

    @property
    def main(self) -> ProcessId:
        """Who stands for it, or did."""
        return self.known["it"]

    def alive(self) -> set[ProcessId]:
        """All that came out of any of its lives, by what they are and not by their marks."""
        return {one.found for one in live_processes() if is_of_program(command_line(one.pid), self.seconds)}

    async def begin(self, event_id: str = "") -> None:
        """Start it instead of the one that died, and wait until all of it runs."""
        before = self.alive()
        instead = {"instead_of": self.main._asdict(), "fresh": True} if self.known else {}
        wish, event = wished("restart-process", process="it", if_dead=True, **instead)
        event = event._replace(id=event_id or str(uuid.uuid4()))
        done = await self.restarter.execute(wish, RestartParams.model_validate(wish.params), event)
        assert "already" not in done.data
        start = ProcessId(done.data["pid"], done.data["started"])
        await until(lambda: len(self.alive() - before) >= self.size)
        if start not in self.alive():  # it has gone into the background
            await until(lambda: self.lives.spawner.ended(start) is not None)
            start = (await self.table.look(self.settings.process, {"it": start}))["it"].found[0]
        self.known["it"] = start

    async def kill(self, one: ProcessId) -> None:
        os.kill(one.pid, signal.SIGKILL)
        await until(lambda: not is_alive(one))

    async def stop(self) -> None:
        wish, event = wished("stop-process", process="it")
        await self.stopper.execute(wish, StopParams(process="it"), event)


@contextmanager
def strangers(
    *environments: dict[str, str], sessions: bool = False
) -> Iterator[Callable[[], Collection[int]]]:
    """Processes that are none of its business, in sessions of their own or not; yields who of them was touched."""
    argv = ["sleep", "1000"]
    begun = [
        subprocess.Popen(argv, env={**os.environ, **one}, start_new_session=sessions) for one in environments
    ]
    try:
        yield lambda: [one.pid for one in begun if one.poll() is not None]
    finally:
        for one in begun:
            one.kill()
            one.wait(timeout=60)


@pytest.fixture(params=["with control groups", "without"])
def groups(request: pytest.FixtureRequest, tmp_path: Path, spawner: Spawner) -> Iterator[LifeGroups | None]:
    if request.param == "without":
        yield None
        return
    try:
        folder = home_groups(tmp_path)
    except NoControlGroups as error:
        pytest.skip(str(error))
    groups = LifeGroups(tmp_path, effect_of=spawner.effect_of)
    yield groups
    groups.close(wait=True)
    for one in folder.children():
        one.end(60)
    assert folder.remove()


@pytest.mark.parametrize("program", sampled(PROGRAMS, 4))
async def test_nothing_is_left_of_a_killed_life_and_nobody_else_is_touched(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, program: str, groups: LifeGroups | None
) -> None:
    it, dice = Scene(spawner, table, tmp_path, program, groups=groups), Random(program)
    forged = {"PULSE_PROCESS": f"it@{tmp_path}", "PULSE_EFFECT": str(uuid.uuid4())}
    with strangers({}, forged) as touched:
        await it.begin()
        for _ in range(sample(2, 40)):
            before = it.alive()
            assert len(before) == it.size
            for one in dice.sample(sorted(before), dice.randrange(it.size)):
                if one != it.main:
                    await it.kill(one)
            await it.kill(it.main)
            await it.begin()
            assert not it.alive() & before
        await it.stop()
        assert it.alive() == set()
        assert it.lives.leftovers({"it": None}) == {}
        assert touched() == []


@pytest.mark.skipif(not can_spawn_in_group(), reason="glibc 2.39 or later can")
@pytest.mark.parametrize("cwd", [None, "/"])
async def test_who_is_born_in_its_group_gets_nobody_out_of_it(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups | None, cwd: str | None
) -> None:
    if groups is None:
        pytest.skip("a birthplace is a control group")
    it = Scene(spawner, table, tmp_path, ESCAPES, 2, groups=groups, cwd=cwd)
    await it.begin()
    life = it.lives.last("it")
    assert life is not None
    assert groups.is_complete(life.effect)
    for _ in range(sample(5, 40)):
        before = it.alive()
        await it.kill(it.main)
        await it.begin()
        assert len(it.alive()) == 2
        assert not it.alive() & before
    await it.stop()
    assert it.alive() == set()


async def test_a_program_that_cannot_be_started_leaves_no_group_and_says_why(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups | None
) -> None:
    it = Scene(spawner, table, tmp_path, "nothing", groups=groups)
    it.settings = Settings.model_validate({"process": [{"name": "it", "start": ["/no/such/program"]}]})
    with pytest.raises(PulseError, match="there is no such file"):
        await it.begin()


def helpers(it: Scene) -> set[ProcessId]:
    return it.alive() - {it.main}


async def test_a_stop_has_patience_with_its_helpers_and_then_kills_them(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "who ignores SIGTERM")
    await it.begin()
    began = time.monotonic()
    await it.stop()
    assert it.alive() == set()
    assert time.monotonic() - began >= 0.3


async def test_no_restart_or_stop_waits_for_a_thread_that_waits_for_a_disk(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    hung, go_on, loop = Pool(1, "files"), threading.Event(), asyncio.get_running_loop()
    loop.set_default_executor(hung)
    hung.submit(go_on.wait)
    loop.call_later(60, go_on.set)
    try:
        scene = Scene(spawner, table, tmp_path, "setsid")
        await scene.begin()
        first = scene.alive()
        await scene.kill(scene.main)
        await scene.begin()
        assert not first & scene.alive()
        await scene.stop()
        assert not scene.alive()
        assert not go_on.is_set()
    finally:
        go_on.set()


async def test_helpers_are_told_to_end_before_they_are_killed(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    trap = f"trap 'echo term >>{told}; exit' TERM; echo up >{told}; while :; do sleep 0.01; done"
    it = Scene(spawner, table, tmp_path, f'setsid sh -c "{trap}" & exec S', 1)
    await it.begin()
    await until(lambda: said(told) == "up\n")
    await it.stop()
    assert said(told) == "up\nterm\n"


@pytest.mark.parametrize("ignores", ["", "trap '' TERM; "], ids=["helpers that end", "that ignore SIGTERM"])
async def test_a_stop_reads_the_machine_no_more_often_for_many_helpers(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignores: str
) -> None:
    program = f'for one in $(seq 40); do (sh -c "{ignores}exec setsid S" &); done; exec S'
    it, reads = Scene(spawner, table, tmp_path, program, 41, stop_timeout="2s"), list[int]()

    def counted() -> list[ProcStat]:
        reads.append(1)
        return live_processes()

    await it.begin()
    monkeypatch.setattr(process_tree, "live_processes", counted)
    await it.stop()
    assert it.alive() == set()
    assert len(reads) < 20


async def test_a_stop_ends_who_descends_from_it_whatever_that_shows(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "env -i setsid S & env -i setsid sh -c 'S & S' & exec S", 4)
    await it.begin()
    await it.stop()
    assert it.alive() == set()


async def test_what_is_left_is_ended_if_it_is_stopped_while_it_is_down(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "setsid")
    await it.begin()
    await it.kill(it.main)
    await it.stop()
    assert it.alive() == set()


async def test_only_the_main_process_is_ended_where_that_is_wanted(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "fork", kill="main")
    await it.begin()
    kept = helpers(it)
    await it.kill(it.main)
    await it.begin()
    assert kept < it.alive()
    # A single look passes over who is just being executed, or is given no processor.
    await until(lambda: set(it.lives.leftovers({"it": it.main}).get("it", ())) == kept)
    await until(lambda: set(it.lives.leftovers({"it": None}).get("it", ())) == it.alive())
    assert it.lives.leftovers({"another": None}) == {}
    kept = helpers(it)
    await it.stop()
    assert it.alive() == kept
    it.settings = Settings.model_validate(
        {"process": [{**it.settings.process[0].model_dump(include={"name", "start"}), "kill": "tree"}]}
    )
    await it.stop()
    assert it.alive() == set()


async def test_a_later_daemon_ends_what_is_left_by_what_the_log_says(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "setsid")
    await it.begin()
    before, life = it.alive(), it.lives.last("it")
    assert life is not None
    later = Scene(Spawner(), table, tmp_path, "setsid", lives=lambda: {"it": life})
    later.known.update(it.known)
    await it.kill(it.main)
    await later.begin()
    assert not before & it.alive()
    await later.stop()
    later.lives.spawner.close()


@pytest.mark.parametrize(
    "is_same", sampled([False, True], 2), ids=sampled(["another start", "the same start"], 2)
)
async def test_what_is_left_of_a_renamed_process_is_that_of_its_new_name(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    groups: LifeGroups | None,
    is_same: bool,
) -> None:
    it = Scene(spawner, table, tmp_path, "setsid", groups=groups)
    await it.begin()
    life, (process,) = it.lives.last("it"), it.settings.process
    assert life is not None
    await it.kill(it.main)
    left = it.alive()
    now = process.model_copy(update={"name": "new", **({} if is_same else {"env": {"A": "b"}})})
    again = groups and LifeGroups(tmp_path)
    before = Life("before", ProcessId(2**22, 1), life.settings)
    recorded = {"older": before, "it": life}
    later = Lives(Spawner(), tmp_path, lambda: recorded, again, guarded=lambda: [now])
    owner = "new" if is_same else "it"
    await until(lambda: set(later.leftovers({"new": None, "it": None}).get(owner, ())) == left)
    await later.end("new")
    assert it.alive() == (set() if is_same else left)
    await it.stop()
    assert later.renamed() == {}
    later.spawner.close()


@pytest.mark.parametrize("way", ["start", "stop"])
@pytest.mark.parametrize("program", sampled(["double fork and setsid", "fork", "setsid", "double fork"], 4))
async def test_what_is_left_of_a_life_that_the_log_does_not_know_is_ended(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    program: str,
    way: str,
    groups: LifeGroups | None,
) -> None:
    unknown = Scene(spawner, table, tmp_path, program, groups=groups)
    await unknown.begin()
    if groups:
        life = unknown.lives.last("it")
        await until(lambda: life and groups.is_complete(life.effect))
    await unknown.kill(unknown.main)
    left = unknown.alive()
    later = Scene(Spawner(), table, tmp_path, program, groups=groups and LifeGroups(tmp_path))
    forged = {"PULSE_PROCESS": f"it@{tmp_path}", "PULSE_EFFECT": str(uuid.uuid4())}
    with strangers(forged) as touched:
        assert left
        # One search may miss who doesn't show its environment at once.
        await until(lambda: set(later.lives.leftovers({"it": None}).get("it", ())) == left)
        if way == "start":
            await later.begin()
        await later.stop()
        assert (unknown.alive(), later.alive(), touched()) == (set(), set(), [])
    if later.groups:
        later.groups.close(wait=True)
    later.lives.spawner.close()


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
@pytest.mark.parametrize("is_dead", [False, True], ids=["main process alive", "main process dead"])
async def test_a_life_that_the_log_does_not_know_is_known_by_its_group_though_it_shows_no_mark(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups, is_dead: bool
) -> None:
    go, first = tmp_path / "go", ProcessId(2**22, 1)
    program = f"(until test -e {go}; do sleep 0.01; done; setsid env -i S) & exec env -i S"
    it = Scene(spawner, table, tmp_path, program, 1, groups=groups)
    await it.begin()
    life = it.lives.last("it")
    await until(lambda: life and groups.is_complete(life.effect))
    go.touch()
    await until(lambda: len(it.alive()) == 2 and not any(bearer_of(one.pid) for one in it.alive()))
    if is_dead:
        await it.kill(it.main)
    recorded = {"it": Life(str(uuid.uuid4()), first)}
    foreign = HomeMarks(tmp_path, "other.1")  # its log was laid here instead of the one that began this
    theirs = Lives(spawner, tmp_path, lambda: recorded, LifeGroups(tmp_path, foreign), marks=foreign)
    assert theirs.lasts() == recorded
    assert theirs.leftovers({"it": None}) == {}
    left, later = it.alive(), Lives(Spawner(), tmp_path, lambda: recorded, LifeGroups(tmp_path))
    there = LinuxProcessTable(later.spawner, tmp_path, later)
    (sight,) = (await there.look(it.settings.process, {"it": first})).values()
    assert sight.found == (() if is_dead else (it.main,))
    main = None if is_dead else it.main
    assert set(later.leftovers({"it": main}).get("it", ())) == (left if is_dead else set())
    assert later.leftovers({"other": None}) == {}
    if is_dead:
        await later.end("it")
    else:
        await later.stop(it.settings.process[0], sight.found)
    assert it.alive() == set()
    later.spawner.close()


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_lives_that_no_descriptor_was_left_to_look_for_are_looked_for_again(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups
) -> None:
    it = Scene(spawner, table, tmp_path, "exec env -i S", 1, groups=groups)
    await it.begin()
    life, later = it.lives.last("it"), LifeGroups(tmp_path)
    assert life
    await until(partial(groups.is_complete, life.effect))
    with no_descriptors(os.getpid()):
        later.earlier()
    assert later.earlier() == {"it": life}
    await it.stop()


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_a_group_is_complete_soon_though_others_begin_and_end_beside_it_all_the_time(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups
) -> None:
    churn = [subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) for _ in range(2)]
    try:
        for _ in range(3):
            it = Scene(spawner, table, tmp_path, "exec env -i S", 1, groups=groups)
            await it.begin()
            effect = it.lives.lasts()["it"].effect
            await until(partial(groups.is_complete, effect))
            await it.stop()
    finally:
        for one in churn:
            one.kill()
            one.wait(timeout=60)


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_a_group_is_complete_though_a_command_is_just_being_executed(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    groups: LifeGroups,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As forty probes that hang once a second always have one: each life was searched for twenty times."""
    command = asyncio.create_task(spawner.run(["sleep", "1000"], timeout=1000))
    await until(lambda: spawner.running)
    monkeypatch.setattr(marked_processes, "SETTLED", 10**9)
    monkeypatch.setattr(marked_processes, "_may_show_more", lambda seen, *_: seen.pid in spawner.running)
    it = Scene(spawner, table, tmp_path, "exec env -i S", 1, groups=groups)
    await it.begin()
    await until(partial(groups.is_complete, it.lives.lasts()["it"].effect))
    await it.stop()
    command.cancel()
    await asyncio.wait([command])


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_of_a_life_whose_empty_group_was_removed_it_is_known_that_nobody_is_left(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    groups: LifeGroups,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The start of another one removes it, perhaps before its own: it would search all processes for who is left."""
    it, other = (Scene(spawner, table, tmp_path, "exec env -i S", 1, groups=groups) for _ in range(2))
    await it.begin()
    life = it.lives.last("it")
    assert life
    await until(partial(groups.is_complete, life.effect))
    path = home_groups(tmp_path).child(LIFE + life.effect).path
    await it.kill(it.main)
    await other.begin()
    await until(lambda: not os.path.exists(path))
    monkeypatch.setattr(it.lives._marked, "finds", lambda *_: pytest.fail("it was searched for"))
    assert await it.lives.end("it", it.main) == ()
    await other.stop()


async def test_a_life_whose_main_process_stands_for_another_one_is_let_be(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    it = Scene(spawner, table, tmp_path, "setsid")
    await it.begin()
    await Lives(Spawner(), tmp_path, mains=lambda: {"renamed": it.main}).end("it")
    assert len(it.alive()) == it.size
    await Lives(Spawner(), tmp_path).end("it")
    assert it.alive() == set()


@pytest.mark.parametrize(
    ("effect", "is_busy"),
    sampled([("", False), ("", True), ("01a21e3b-0000-72ef-912b-741543353a9b", False)], 2),
    ids=sampled(["of a life before", "of a life before, on a busy machine", "invented"], 2),
)
async def test_who_was_given_the_environment_of_another_life_later_is_no_leftover(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    groups: LifeGroups | None,
    effect: str,
    is_busy: bool,
) -> None:
    it, may_go_on = Scene(spawner, table, tmp_path, "nothing", groups=groups), threading.Event()
    if groups and is_busy:
        groups._thread.submit(may_go_on.wait, 60)  # what is moved into a group is moved later
    await it.begin(before := str(uuid.uuid4()))
    if is_busy:
        await asyncio.sleep(2 * MOMENT_S)
    await it.kill(it.main)
    await it.begin()
    time.sleep(0.03)  # start times are told in hundredths
    marks = {"PULSE_EFFECT": effect or before, "PULSE_PROCESS": f"it@{tmp_path}"}
    with strangers(marks, sessions=True) as touched:
        may_go_on.set()
        if groups:
            await asyncio.to_thread(groups._thread.submit(bool).result, 60)
        assert it.lives.leftovers({"it": it.main}) == {}
        await it.kill(it.main)
        assert it.lives.leftovers({"it": None}) == {}
        await it.begin()
        assert touched() == []
    await it.stop()


async def test_who_bears_its_mark_but_is_older_is_not_touched(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    effect = str(uuid.uuid4())
    it = Scene(spawner, table, tmp_path, "nothing")
    with strangers({"PULSE_EFFECT": effect, "PULSE_PROCESS": f"it@{tmp_path}"}) as touched:
        time.sleep(0.03)  # start times are told in hundredths
        await it.begin(effect)
        await it.kill(it.main)
        await it.begin()
        await it.stop()
        assert touched() == []


@pytest.mark.parametrize("pid", [0, 1])
def test_neither_the_first_process_nor_what_has_no_number_leads_a_tree(pid: int) -> None:
    with pytest.raises(ValueError, match="leads no tree"):
        in_tree(ProcessId(pid, 0))


MAIN, DIED = ProcessId(500, 1_000), 2_000


def seen(pid: int, started: int, session: int = MAIN.pid) -> ProcStat:
    return ProcStat(pid, "S", 1, session, session, 0, 1, started)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ([seen(600, 1_500), seen(601, 2_500)], {600, 601}),  # who was there before it died proves whose it is
        ([seen(601, 2_500)], set()),  # the number may be somebody else's by now
        ([seen(500, 2_400), seen(601, 2_500)], set()),  # it is
        ([seen(500, 1_000), seen(601, 2_500)], {500, 601}),  # it lives
        ([seen(600, 900), seen(601, 2_500)], set()),  # who is older was never in its session
    ],
)
def test_a_session_is_its_own_only_while_somebody_proves_it(there: list[ProcStat], chosen: set[int]) -> None:
    assert set(in_tree(MAIN, died=DIED)({one.pid: one for one in there})) == chosen


def test_a_session_that_was_its_own_stays_so_while_it_has_members() -> None:
    choose = in_tree(MAIN, died=DIED)
    assert set(choose({600: seen(600, 1_500), 601: seen(601, 2_500)})) == {600, 601}
    assert set(choose({601: seen(601, 2_500), 602: seen(602, 2_600)})) == {601, 602}
    assert set(choose({603: seen(603, 2_700)})) == set()


def test_each_process_of_the_machine_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    marked, read = MarkedProcesses(), list[int]()

    def counted(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        read.extend(pids)
        return environments(pids)

    with strangers({"PULSE_EFFECT": "one"}):
        monkeypatch.setattr(marked_processes, "environments", counted)
        for _ in range(2):
            marked.search()
            mine = [one.found.pid for one in marked.bearers() if one.effect == "one"]
        assert read.count(mine[0]) == 1


@pytest.mark.parametrize("is_old", [False, True])
async def test_who_is_executed_just_after_it_was_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    """Until then it shows the environment of who has forked it, and no mark: for long, where the machine is busy."""
    marked, effect, (gate, opened) = MarkedProcesses(), str(uuid.uuid4()), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # later ones than Python 3.11 warn where there are threads
        pid = os.fork()
    if not pid:
        os.read(gate, 1)
        os.execve("/bin/sleep", ["sleep", "1000"], {"PULSE_EFFECT": effect})

    def executed_after(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        told = [*environments(pids)]
        os.write(opened, b"!")
        while effect.encode() not in environment(pid):
            pass
        return iter(told)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(marked_processes, "environments", executed_after)
            if is_old:
                patched.setattr(marked_processes, "ticks_now", lambda: ticks_now() + SETTLED + 1)
            marked.search()
        await until(lambda: marked.search() and pid not in marked.hanging)
        assert [one.found.pid for one in marked.bearers() if one.effect == effect] == [pid]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(gate)
        os.close(opened)


class HeldSearch:
    """A search in a thread that stands still once it has found a process of the effect `one`, until it may go on."""

    def __init__(self) -> None:
        self.marked, self.one, self.two = MarkedProcesses(), str(uuid.uuid4()), str(uuid.uuid4())
        self._is_held, self.may_go_on = threading.Event(), threading.Event()

    async def begin(self) -> asyncio.Task[None]:
        with self.marked.listen(self._hold):
            search = asyncio.create_task(self.marked.search_beside())
            assert await asyncio.to_thread(self._is_held.wait, 60)
        return search

    def _hold(self, seen: ProcStat, bearer: Bearer) -> None:
        if bearer.effect == self.one:
            self._is_held.set()
            self.may_go_on.wait(60)

    def found(self) -> set[str]:
        return {one.effect for one in self.marked.bearers()} & {self.one, self.two}


async def test_a_search_that_began_sooner_and_is_over_later_replaces_nothing() -> None:
    held = HeldSearch()
    with strangers({"PULSE_EFFECT": held.one}):
        sooner = await held.begin()
        with strangers({"PULSE_EFFECT": held.two}):
            held.marked.search()
            assert held.found() == {held.one, held.two}
            held.may_go_on.set()
            await sooner
            assert held.found() == {held.one, held.two}


async def test_a_search_that_fails_is_not_taken_for_one_by_who_waits_behind_it() -> None:
    held, failing = HeldSearch(), ExitStack()

    def fail(seen: ProcStat, bearer: Bearer) -> None:
        if bearer.effect == held.two:
            failing.close()
            raise OSError(errno.EMFILE, "as where no descriptors are left")

    with strangers({"PULSE_EFFECT": held.one}):
        first = await held.begin()
        waiting = [asyncio.create_task(held.marked.search_beside()) for _ in range(2)]
        await asyncio.sleep(0)
        with strangers({"PULSE_EFFECT": held.two}):
            failing.enter_context(held.marked.listen(fail))
            held.may_go_on.set()
            await first
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(one) for one in ends] == [OSError, type(None)]
            assert held.found() == {held.one, held.two}


async def test_each_process_of_the_machine_is_read_once_for_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()

    def counted(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        read.extend(pids)
        return environments(pids)

    with child_of_test(subprocess.Popen(["/bin/sleep", "1000"], env={})) as other:
        await until(lambda: command_line(other.pid))  # else it is just being executed
        monkeypatch.setattr(marked_processes, "environments", counted)
        await asyncio.gather(
            *(marked_processes.find_bearers(effect=f"none-{number}") for number in range(20))
        )
        assert read.count(other.pid) == 1
        other.kill()


async def test_a_short_search_is_made_at_once_unless_many_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    marked, there = MarkedProcesses(), set[str]()

    def those(path: str) -> list[os.DirEntry[str]]:  # others on this machine begin processes all the time
        with os.scandir(path) as entries:
            return [one for one in entries if one.name in there]

    async def is_at_once() -> bool:
        turns = list[None]()
        asyncio.get_running_loop().call_soon(turns.append, None)
        await marked.search_beside()
        return not turns

    monkeypatch.setattr(marked_processes, "os", SimpleNamespace(**{**vars(os), "scandir": those}))
    with child_of_test(subprocess.Popen(["sleep", "1000"])) as first:
        there.add(str(first.pid))
        assert not await is_at_once()  # nobody knows yet how long one takes
        async with asyncio.timeout(30):
            while not await is_at_once():  # the last one took long, or has only just been made
                await asyncio.sleep(0.05)
        with monkeypatch.context() as patched:
            patched.setattr(marked_processes, "REST", float("inf"))
            assert not await is_at_once()
        monkeypatch.setattr(marked_processes, "FEW", 0)
        with child_of_test(subprocess.Popen(["sleep", "1000"])) as second:
            there.add(str(second.pid))
            await asyncio.sleep(marked_processes.REST * marked_processes.SHORT_S)
            assert not await is_at_once()
            second.kill()
        first.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can look as another user")
def test_no_search_waits_for_a_process_of_another_user_whose_environment_it_is_never_shown() -> None:
    marked = MarkedProcesses()
    stranger = subprocess.Popen(["sleep", "1000"], env={**os.environ, "PULSE_EFFECT": "one"})
    with child_of_test(stranger):
        os.seteuid(65_534)
        try:
            marked.search()
        finally:
            os.seteuid(0)
        stranger.kill()
    assert stranger.pid not in marked.unsure  # others may be just being executed


async def test_no_search_waits_for_an_environment_that_is_empty() -> None:
    marked = MarkedProcesses()
    with child_of_test(subprocess.Popen(["/bin/sleep", "1000"], env={})) as empty:
        await until(lambda: has_no_environment(empty.pid))  # else it is just being executed
        await until(lambda: marked.search() and empty.pid not in marked.hanging)
        assert marked.session(empty.pid) is not None
        assert empty.pid not in marked.unsure
        empty.kill()


async def test_who_is_being_executed_for_long_is_read_at_each_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked, read = MarkedProcesses(), list[int]()

    def counted(some: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        read.extend(some)
        return environments(some)

    monkeypatch.setattr(marked_processes, "environments", counted)
    with being_executed(tmp_path, {"PULSE_EFFECT": "one"}) as pid:
        seen = read_stat(pid)
        assert seen is not None
        await until(lambda: ticks_now() - seen.started > marked_processes.SETTLED)
        for _ in range(2):
            marked.search()
            assert pid not in marked.unsure
        assert read.count(pid) == 2


async def test_what_a_dead_daemon_has_left_of_a_command_is_ended_before_it_runs_again(
    spawner: Spawner, tmp_path: Path
) -> None:
    effect, seconds = str(uuid.uuid4()), f"9{uuid.uuid4().int % 10**12:012}"
    script = f"setsid sleep {seconds} & env -i sleep {seconds} & sleep {seconds}"
    await spawner.start(["sh", "-c", script], output=tmp_path / "log", env={"PULSE_EFFECT": effect})

    def running() -> list[int]:
        return [one.pid for one in live_processes() if command_line(one.pid) == ["sleep", seconds]]

    await until(lambda: len(running()) == 3)
    with strangers({"PULSE_EFFECT": str(uuid.uuid4())}) as touched:
        await Lives(spawner, tmp_path).end_effect(effect)
        assert (running(), touched()) == ([], [])


@pytest.mark.parametrize("program", ["{}", "setsid sh -c '{}' & exit 0"], ids=["foreground", "background"])
@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_in_a_control_group_who_clears_its_environment_and_leaves_its_session_is_no_stranger(
    spawner: Spawner,
    table: LinuxProcessTable,
    tmp_path: Path,
    groups: LifeGroups,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
) -> None:
    """Also if the process that was started is gone before it could be moved, as that of a daemon."""
    go = tmp_path / "go"
    monkeypatch.setattr(lives_module, "MOMENT_S", 0.3)
    program = program.format(f"(until test -e {go}; do sleep 0.01; done; setsid env -i S) & exec S")
    it = Scene(spawner, table, tmp_path, program, 1, groups=groups)
    await it.begin()
    life = it.lives.last("it")
    assert life is not None
    await until(lambda: groups.is_complete(life.effect))
    go.touch()
    await until(lambda: len(it.alive()) == 2)
    escaped = helpers(it)
    await it.kill(it.main)
    go.unlink()
    await it.begin()
    assert not escaped & it.alive()
    await it.stop()


async def test_who_is_in_the_group_of_a_life_that_is_over_is_left_over_whatever_it_shows(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path
) -> None:
    """Also in the first daemon of a home, which found no folder of groups when it began."""
    skip_without_groups()
    groups = LifeGroups(tmp_path, effect_of=spawner.effect_of)
    it = Scene(spawner, table, tmp_path, "exec env -i S", 1, groups=groups)
    assert it.lives.leftovers({"it": None}) == {}
    await it.begin()
    life = it.lives.last("it")
    assert life
    await until(lambda: groups.is_complete(life.effect))
    folder = home_groups(tmp_path)
    with child_of_test(subprocess.Popen(["sleep", "1000"], env={}, start_new_session=True)) as helper:
        folder.child(LIFE + life.effect).add(helper.pid)
        await it.kill(it.main)
        assert [one.pid for one in it.lives.leftovers({"it": None}).get("it", ())] == [helper.pid]
        await it.stop()
        assert helper.wait(60) < 0
    groups.close(wait=True)
    assert folder.end(60)


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_a_life_whose_daemon_was_killed_before_it_had_a_group_has_one_from_the_next_daemon_on(
    spawner: Spawner, tmp_path: Path, table: LinuxProcessTable, groups: LifeGroups
) -> None:
    it = Scene(spawner, table, tmp_path, "setsid env -i S & exec S", 2)
    await it.begin()
    life, later = it.lives.last("it"), Spawner()
    assert life is not None
    lives = Lives(later, tmp_path, lambda: {"it": life}, groups)
    await LinuxProcessTable(later, tmp_path, lives).look(it.settings.process, it.known)
    await until(lambda: groups.is_complete(life.effect))
    await it.kill(it.main)
    await lives.end("it")
    assert it.alive() == set()
    later.close()


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_who_has_moved_itself_to_another_group_is_let_be_there_and_ends_with_its_life(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    groups: LifeGroups,
) -> None:  # fmt: skip
    it = Scene(spawner, table, tmp_path, "setsid")
    await it.begin()
    elsewhere, escaped = home_groups(tmp_path).child("elsewhere"), helpers(it)
    for one in escaped:
        elsewhere.add(one.pid)
    life = it.lives.last("it")
    assert life is not None
    groups.begin(life)
    await asyncio.to_thread(groups.close, wait=True)
    assert (set(groups.members(life.effect)), groups.is_complete(life.effect)) == ({it.main}, False)
    threads, members = list[threading.Thread](), groups.members

    def noted(effect: str) -> tuple[ProcessId, ...]:
        threads.append(threading.current_thread())  # there may be thousands: beside the loop
        return members(effect)

    monkeypatch.setattr(groups, "members", noted)
    it.lives = Lives(spawner, tmp_path, lambda: {"it": life}, groups)
    assert await it.lives.members("it") == (it.main,)
    assert threading.main_thread() not in threads
    await it.kill(it.main)
    await it.lives.end("it")
    assert it.alive() == set()


async def test_why_a_main_process_can_not_be_ended_is_said(spawner: Spawner, tmp_path: Path) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, args=(60,))  # no descriptor can be had of a thread alone
    thread.start()
    seen = read_stat(thread.native_id or 0)
    assert seen is not None
    it = ProcessSettings(name="it", start=("x",))
    try:
        with pytest.raises(PulseError, match="cannot end it"):
            await Lives(spawner, tmp_path).stop(it, [seen.found])
    finally:
        done.set()
        thread.join(60)


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_a_life_that_was_moved_out_of_its_group_ends_as_a_whole(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, groups: LifeGroups
) -> None:
    it = Scene(spawner, table, tmp_path, "env -i S & exec S", 2, groups=groups)
    await it.begin()
    elsewhere, life = home_groups(tmp_path).child("elsewhere"), it.lives.last("it")
    await until(lambda: life and groups.is_complete(life.effect))
    await until(lambda: any(bearer_of(one.pid) is None for one in it.alive()))
    for one in it.alive():
        elsewhere.add(one.pid)
    await it.kill(it.main)
    await it.lives.end("it")
    assert it.alive() == set()


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_a_group_is_not_complete_while_who_forked_during_the_search_and_ended_may_be_outside(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    groups: LifeGroups,
) -> None:  # fmt: skip
    parent, go = tmp_path / "parent", tmp_path / "go"
    program = f"(sh -c 'echo $$ >{parent}; until test -e {go}; do :; done; S & exit' &); exec S"
    it, reads = Scene(spawner, table, tmp_path, program, 1), list[int]()

    def forks_when_read(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        if (pid := int(said(parent))) in pids and not reads:
            reads.append(pid)
            go.touch()
            while len(it.alive()) < 2 or read_stat(pid) is not None:
                time.sleep(0.001)
        return environments(pids)

    await it.begin()
    await until(lambda: said(parent).endswith("\n"))
    life = it.lives.last("it")
    assert life is not None
    monkeypatch.setattr(marked_processes, "environments", forks_when_read)
    groups.begin(life)
    await until(lambda: groups.is_complete(life.effect))
    assert reads
    assert it.alive() <= set(groups.members(life.effect))


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_whoever_is_started_is_moved_before_it_is_searched_what_another_one_has_forked(
    spawner: Spawner, table: LinuxProcessTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    groups: LifeGroups,
) -> None:  # fmt: skip
    it, may_go_on = Scene(spawner, table, tmp_path, "S & exec S", 2), threading.Event()
    await it.begin()
    begun = [Life(str(uuid.uuid4()), one) for one in it.alive()]

    def waits(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        assert may_go_on.wait(60)
        return environments(pids)

    monkeypatch.setattr(marked_processes, "environments", waits)
    try:
        for life in begun:
            groups.begin(life)
        await until(lambda: all(groups.members(life.effect) == (life.found,) for life in begun), 30)
    finally:
        may_go_on.set()


async def test_who_joins_a_session_that_was_read_before_is_found_and_others_are_not_asked(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, asked, marked = tmp_path / "go", list[int](), MarkedProcesses()
    script = f"until test -e {go}; do sleep 0.01; done; env -i sleep 60 & exec sleep 60"
    leader = await spawner.start(["sh", "-c", script], output=tmp_path / "log")
    await until(lambda: command_line(leader.pid)[:1] == ["sh"])
    marked.search()
    go.touch()
    await until(lambda: command_line(leader.pid)[:1] == ["sleep"])

    def counted(pid: int) -> int | None:
        asked.append(pid)
        return session_of(pid)

    monkeypatch.setattr(marked_processes, "session_of", counted)
    marked.search()
    members = list(marked.in_sessions({leader.pid}))
    assert len(members) == 2
    assert os.getppid() not in asked
    await spawner.end(leader, soft=0.0)


RELAY = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
        time.sleep(0.003)
    os._exit(0)
print("begun", flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.wall_clock  # twenty searches are enough where nobody else wants the processors
async def test_a_helper_that_hands_over_to_a_fork_of_itself_all_the_time_ends_with_its_life(
    spawner: Spawner, tmp_path: Path
) -> None:
    word, log = f"w{uuid.uuid4().hex}", tmp_path / "relay.log"
    lives = Lives(spawner, tmp_path)

    def left() -> list[int]:
        return [one.pid for one in live_processes() if word in command_line(one.pid)]

    async def begun_and_killed(number: int) -> ProcessId:
        effect = str(uuid.uuid4())
        main = await spawner.start(
            [sys.executable, "-c", RELAY, word], output=log, env=lives.marks("it", effect)
        )
        lives.begin("it", Life(effect, main))
        await until(lambda: said(log).count("begun") == number)
        os.kill(main.pid, signal.SIGKILL)
        await until(lambda: not is_alive(main))
        return main

    for number in range(1, sample(3, 6)):
        main = await begun_and_killed(number)
        for _ in range(20):  # where others work, a search may be overtaken
            await lives.end("it", main, ticks_now())
            if not any(left() for _ in range(5)):
                break
        assert not any(left() for _ in range(5))


class CountedMapping(dict[str, Life]):
    """Counts how often all of it is gone through."""

    times = 0

    def __iter__(self) -> Iterator[str]:
        self.times += 1
        return super().__iter__()

    def items(self) -> Any:
        """As of a dict."""
        self.times += 1
        return super().items()


async def test_a_restart_goes_through_all_recorded_lives_no_more_often_than_they_change(
    spawner: Spawner, tmp_path: Path
) -> None:
    recorded = CountedMapping({f"p{number}": Life(f"e{number}", ProcessId(1, 1)) for number in range(100)})
    lives = Lives(spawner, tmp_path, lambda: recorded)
    assert [lives.last(f"p{number}") for number in range(100)] == list(recorded.values())
    await lives.end("p7")
    first = recorded.times
    lives.begin("p7", Life("later", ProcessId(1, 2)))
    assert lives.last("p7") == Life("later", ProcessId(1, 2))
    assert first <= 2
    assert recorded.times <= 2 * first


def noted_searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which processes are searched from now on, each once for each search; none is short enough for the
    loop."""
    search, threads = MarkedProcesses.search, list[int]()

    def noted(self: MarkedProcesses, most: int | None = None) -> bool:
        threads.append(threading.get_ident())
        return search(self, most)

    monkeypatch.setattr(MarkedProcesses, "search", noted)
    monkeypatch.setattr(marked_processes, "SHORT_S", 0.0)
    return threads


async def test_what_is_left_of_many_that_die_at_once_is_searched_together_and_beside_the_loop(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = {f"p{number}": Life(f"e{number}", ProcessId(1, 1)) for number in range(50)}
    lives, threads = Lives(spawner, tmp_path, lambda: recorded), noted_searches(monkeypatch)
    await asyncio.gather(*map(lives.end, recorded))
    assert threading.get_ident() not in threads
    assert 0 < len(threads) < 25


async def test_no_search_goes_on_for_who_is_just_being_started_for_another_life(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = {"PULSE_EFFECT": "other"}
    other = await spawner.start(["sleep", "1000"], output=tmp_path / "log", env=marks)
    recorded = {"it": Life("e1", ProcessId(1, 1)), "other": Life("other", other)}

    def shows_nothing_yet(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        return ((pid, None if pid == other.pid else raw) for pid, raw in environments(pids))

    monkeypatch.setattr(marked_processes, "environments", shows_nothing_yet)
    lives, threads = Lives(spawner, tmp_path, lambda: recorded), noted_searches(monkeypatch)
    fewest = 1_000
    for _ in range(20):  # who else begins on this machine is doubted, too
        threads.clear()
        await lives.end("it")
        fewest = min(fewest, len(threads))
    assert fewest == 1
    await spawner.end(other, soft=0.0)


@pytest.mark.parametrize("groups", ["with control groups"], indirect=True)
async def test_groups_of_many_that_are_started_at_once_are_completed_in_one_search(
    monkeypatch: pytest.MonkeyPatch, groups: LifeGroups
) -> None:
    are_moved, threads = threading.Event(), noted_searches(monkeypatch)

    def waits(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
        assert are_moved.wait(60)
        return environments(pids)

    monkeypatch.setattr(marked_processes, "environments", waits)
    with child_of_test(
        subprocess.Popen(["sh", "-c", "sleep 1000 & " * 40 + "wait"], process_group=0)
    ) as shell:
        await until(lambda: len(children(shell.pid)) == 40)
        begun = [Life(f"e{pid}", ProcessId(pid, start_of(pid))) for pid in children(shell.pid)]
        for life in begun:
            groups.begin(life)
        await until(lambda: all(groups.members(life.effect) for life in begun), 30)
        are_moved.set()
        await asyncio.to_thread(groups.close, wait=True)
        os.killpg(shell.pid, signal.SIGKILL)
    assert 0 < len(threads) < 30


async def test_who_is_left_of_one_is_searched_without_a_look_at_those_of_others(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects = {name: str(uuid.uuid4()) for name in ("it", "other", "third")}
    marks = HomeMarks(tmp_path)
    begun = {
        name: subprocess.Popen(
            ["sleep", "1000"],
            env={"PULSE_EFFECT": effect, **marks.variables(name)},
            start_new_session=True,
        )
        for name, effect in effects.items()
    }
    try:
        # Who is just being executed shows no mark.
        await until(lambda: all(bearer_of(one.pid) for one in begun.values()))
        found = {name: ProcessId(one.pid, start_of(one.pid)) for name, one in begun.items()}
        recorded = {name: Life(effects[name], found[name]) for name in effects}
        lives = Lives(spawner, tmp_path, lambda: recorded, mains=lambda: found)
        lives.leftovers({**found, "it": None})  # the watcher's last look
        looked = list[ProcessId]()

        def looks(one: ProcessId) -> bool:
            looked.append(one)
            return is_alive(one)

        monkeypatch.setattr(lives_module, "is_alive", looks)
        left = lives._left({**found, "it": None}, "it")
        assert [one.found for one in left["it"]] == [found["it"]]
        assert set(looked) == {found["it"]}
    finally:
        for one in begun.values():
            one.kill()
            one.wait(timeout=60)


def start_of(pid: int) -> int:
    seen = read_stat(pid)
    assert seen is not None
    return seen.started


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (
            "oom 1\noom_kill 1\noom_group_kill 0\n",
            " (out of memory, the kernel has killed 1 process of it since its start)",
        ),
        ("oom 1\noom_kill 0\n", ""),
        (None, ""),
    ],
    ids=["killed", "none killed", "not counted"],
)
async def test_of_a_killed_process_it_is_told_whether_the_kernel_killed_some_of_its_life_for_want_of_memory(
    spawner: Spawner, tmp_path: Path, events: str | None, words: str
) -> None:
    found = await spawner.start(["sleep", "1000"], output=tmp_path / "log")
    groups, group = LifeGroups(tmp_path), ControlGroup(str(tmp_path / "life"))
    os.mkdir(group.path)
    if events is not None:
        (tmp_path / "life" / "memory.events").write_text(events)
    groups._groups["effect"] = group
    lives = Lives(spawner, tmp_path, lambda: {"it": Life("effect", found)}, groups)
    table = LinuxProcessTable(spawner, lives=lives)
    os.kill(found.pid, signal.SIGKILL)
    await until(lambda: not is_alive(found))
    process = ProcessSettings(name="it", start=("sleep", "1000"))
    sight = (await table.look([process], {"it": found}))["it"]
    assert sight.ended == f"was killed by SIGKILL{words}"
    table.close()
    groups.close()


@pytest.mark.parametrize("gone", ["one that lives", "all, which were renamed", "all, which live"])
async def test_a_look_at_many_that_are_down_asks_for_all_lives_a_few_times_where_names_are_gone_from_the_settings(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    asked, own = list[ProcessId](), read_stat(os.getpid())
    assert own is not None
    some = [{"name": f"it-{number}", "start": ["sleep", f"9{number}"]} for number in range(100)]
    process = Settings.model_validate({"process": some}).process
    dead = [Life(one.name, ProcessId(2**22, 1), start_sum(one)) for one in process]
    recorded = {
        "one that lives": {life.effect: life for life in dead} | {"gone": Life("gone", own.found, "other")},
        "all, which were renamed": {f"was-{life.effect}": life for life in dead},
        "all, which live": {f"was-{life.effect}": Life(life.effect, own.found, "other") for life in dead},
    }[gone]

    def counted(one: ProcessId) -> bool:
        asked.append(one)
        return is_alive(one)

    for module in (lives_module, process_table):
        monkeypatch.setattr(module, "is_alive", counted)
    known = Lives(spawner, tmp_path, lambda: recorded, guarded=lambda: process)
    seen = await LinuxProcessTable(spawner, tmp_path, known, lambda: process).look(process, {})
    assert not any(one.found for one in seen.values())
    assert len(asked) <= 10 * len(process)


async def test_of_many_that_start_the_same_and_are_renamed_each_is_looked_at_once(
    spawner: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[ProcessId]()

    def noted(one: ProcessId) -> bool:
        looks.append(one)
        return is_alive(one)

    some = [{"name": f"new{number}", "start": ["sleep", "1000"]} for number in range(60)]
    guarded = Settings.model_validate({"process": some}).process
    alike = start_sum(guarded[0])
    known = {
        f"{kind}{number}": Life(f"{kind}{number}", ProcessId(2**22 + number, number), alike)
        for kind in ("old", "new")
        for number in range(60)
    }
    monkeypatch.setattr(lives_module, "is_alive", noted)
    assert Lives(spawner, tmp_path, lambda: known, guarded=lambda: guarded).last("new1") == known["new1"]
    assert len(looks) <= len(known)


async def test_it_is_said_whose_life_could_have_no_group(spawner: Spawner, tmp_path: Path) -> None:
    try:
        folder = home_groups(tmp_path)
    except NoControlGroups as error:
        pytest.skip(str(error))
    said = list[tuple[str, str]]()
    groups = LifeGroups(tmp_path, effect_of=spawner.effect_of, failed=lambda *words: said.append(words))
    found = await spawner.start(["sleep", "1000"], output=tmp_path / "log")
    Path(folder.path, "cgroup.max.descendants").write_text("0")
    try:
        async with groups.birthplace("effect", name="it") as place:
            assert place is None
        groups.begin(Life("effect", found), name="it")
        await until(lambda: said)
        ((name, words),) = said
        assert (name, f"process {found.pid} is in no control group of its own" in words) == ("it", True)
    finally:
        os.kill(found.pid, signal.SIGKILL)
        groups.close(wait=True)
        assert folder.remove()


async def test_a_life_that_could_have_no_group_is_settled_though_nobody_can_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bool:
        raise OSError(errno.EMFILE, "Too many open files")

    groups = LifeGroups(tmp_path)
    monkeypatch.setattr(groups, "_enter", fails)
    monkeypatch.setattr(life_groups, "is_alive", fails)
    groups.begin(Life("effect", ProcessId(os.getpid(), 0)), name="it")
    await until(lambda: not groups._pending, 10.0)
    groups.close(wait=True)
