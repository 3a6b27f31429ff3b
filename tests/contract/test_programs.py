"""What everybody who starts programs promises: on this machine, and in memory."""

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pulse_adapters.host import programs
from pulse_adapters.host.programs import LifePrograms
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.memory.programs import MemoryPrograms
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.proc import read_stat
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import ProcessId
from pulse_core.ports.programs import ProgramObservation, Programs, ProgramSpec

PATIENCE_S = 60.0


@dataclass
class Stage:
    """Programs that sleep until somebody kills one; the effects of the test are nobody else's."""

    programs: Programs
    place: Path
    kill: Callable[[str, ProcessId], None]
    effect: str = field(default_factory=lambda: uuid.uuid4().hex)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, *argv: str) -> ProcessId:
        env = {"PATH": os.defpath}
        program = ProgramSpec(argv or ("sleep", "1000"), str(self.place), env, str(self.place / "output.log"))
        return await self.programs.start(self.effect, program)

    async def until_told(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.told.wait()
        self.told.clear()


@pytest.fixture(params=["machine", "memory"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    if request.param == "memory":
        memory = MemoryPrograms()
        yield Stage(memory, tmp_path, lambda effect, _: memory.end(effect, -signal.SIGTERM))
        return
    spawner = Spawner()
    programs = LifePrograms(spawner)
    stage = Stage(programs, tmp_path, lambda _, main: os.kill(main.pid, signal.SIGTERM))
    yield stage
    if main := await programs.find(stage.effect):
        await programs.stop(stage.effect, main, 0.0)
    programs.close()
    spawner.close()


async def test_a_program_lives_until_it_ends_and_then_its_exit_is_known(stage: Stage) -> None:
    stage.programs.listen(stage.told.set)
    main = await stage.start()
    stage.programs.watch(main)
    await stage.until_told()
    seen = await stage.programs.look(main)
    assert (seen.alive, seen.exit, seen.processes) == (True, None, 1)
    assert seen.memory > 0
    stage.kill(stage.effect, main)
    await stage.until_told()
    assert await stage.programs.look(main) == ProgramObservation(False, -signal.SIGTERM)


async def test_a_live_program_is_found_by_its_effect(stage: Stage) -> None:
    assert await stage.programs.find(stage.effect) is None
    main = await stage.start()
    assert await stage.programs.find(stage.effect) == main
    await stage.programs.stop(stage.effect, main, 5.0)
    assert await stage.programs.find(stage.effect) is None


async def test_whoever_is_stopped_has_ended_and_a_second_stop_does_nothing(stage: Stage) -> None:
    main = await stage.start()
    for _ in range(2):
        await stage.programs.stop(stage.effect, main, 5.0)
    assert not (await stage.programs.look(main)).alive


async def test_of_a_stranger_nobody_knows_how_it_ended(stage: Stage) -> None:
    assert await stage.programs.look(ProcessId(1 << 22, 1)) == ProgramObservation(False)


async def test_how_one_has_ended_is_known_as_soon_as_it_is_dead(tmp_path: Path) -> None:
    spawner = Spawner()
    programs = LifePrograms(spawner)
    spec = ProgramSpec(
        ("sh", "-c", "until [ -e end ]; do sleep 0.01; done; exit 3"),
        str(tmp_path),
        {"PATH": os.defpath},
        str(tmp_path / "output.log"),
    )
    main = await programs.start(uuid.uuid4().hex, spec)
    (tmp_path / "end").touch()
    os.waitid(os.P_PID, main.pid, os.WEXITED | os.WNOWAIT)  # blocks the loop, which is told of nothing
    assert await programs.look(main) == ProgramObservation(False, 3)
    spawner.close()


@pytest.mark.parametrize(
    ("script", "exit_", "written"),
    [("exit 3", 3, "3"), ("kill -9 $$", 137, "137"), ("kill -15 0; sleep 0.01; exit 4", 4, "4")],
)
async def test_the_exit_status_is_written_down_where_that_is_wanted(
    tmp_path: Path, script: str, exit_: int, written: str
) -> None:
    """The third one handles the signal that its whole group gets, as a soft stop sends it."""
    spawner = Spawner()
    programs, status = LifePrograms(spawner), tmp_path / "exit"
    status.touch()
    argv = ("sh", "-c", f"until [ -e end ]; do sleep 0.01; done; trap 'echo soft >&2' TERM; {script}")
    output = str(tmp_path / "output.log")
    spec = ProgramSpec(argv, str(tmp_path), {"PATH": os.defpath}, output, status=str(status))
    main = await programs.start(uuid.uuid4().hex, spec)
    (tmp_path / "end").touch()
    os.waitid(os.P_PID, main.pid, os.WEXITED | os.WNOWAIT)
    assert await programs.look(main) == ProgramObservation(False, exit_)
    assert status.read_text().strip() == written
    assert ("soft\n" in Path(output).read_text()) is (exit_ == 4)
    for name, why in (("nowhere", "there is no such file"), ("exit", "it may not be executed")):
        with pytest.raises(PulseError, match=why):
            await programs.start("x", spec._replace(argv=(str(tmp_path / name),)))
    spawner.close()


async def test_the_program_is_known_apart_from_who_writes_down_its_exit_status(tmp_path: Path) -> None:
    spawner, status = Spawner(), tmp_path / "exit"
    programs, effect = LifePrograms(spawner), uuid.uuid4().hex
    status.touch()
    argv, env = ("sh", "-c", "echo $$; sleep 60; true"), {"PATH": os.defpath}
    spec = ProgramSpec(argv, str(tmp_path), env, str(tmp_path / "output.log"), status=str(status))
    main = await programs.start(effect, spec)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (said := (tmp_path / "output.log").read_text().strip()):
                await asyncio.sleep(0.005)
        assert (await programs.look(main)).pid == int(said) != main.pid
        os.kill(int(said), signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_S):
            while (seen := await programs.look(main)).alive:
                await asyncio.sleep(0.005)
        assert seen.exit == 128 + signal.SIGKILL
    finally:
        await programs.stop(effect, main, 0.0)
        spawner.close()


async def test_who_is_held_does_nothing_until_it_goes_on_and_can_be_stopped_all_the_same(
    stage: Stage,
) -> None:
    main = await stage.start()
    for over in (False, True, False):
        await stage.programs.pause(stage.effect, main, over)
        assert (await stage.programs.look(main)).alive
        if isinstance(stage.programs, LifePrograms):
            async with asyncio.timeout(PATIENCE_S):  # who runs just now takes the signal a moment later
                while (stat := read_stat(main.pid)) and (stat.state == "T") is over:
                    await asyncio.sleep(0.001)
            assert stat is not None
    await stage.programs.stop(stage.effect, main, 5.0)
    assert not (await stage.programs.look(main)).alive
    await stage.programs.pause(stage.effect, main)


async def test_who_is_held_is_searched_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, read = list[int](), process_tree.live_process_table

    def noted() -> process_tree.Table:
        threads.append(threading.get_ident())
        return read()

    spawner = Spawner()
    stage = Stage(LifePrograms(spawner), tmp_path, lambda *_: None)
    main = await stage.start()
    for module in (programs, process_tree):
        monkeypatch.setattr(module, "live_process_table", noted)
    await stage.programs.pause(stage.effect, main)
    assert threads
    assert threading.get_ident() not in threads
    await stage.programs.stop(stage.effect, main, 0.0)
    spawner.close()


async def test_none_is_started_where_survival_would_lack_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "are_descriptors_scarce", lambda shares: shares == 2)
    spawner = Spawner()
    stage = Stage(LifePrograms(spawner), tmp_path, lambda *_: None)
    with pytest.raises(PulseError, match="Too many open files"):
        await stage.start()
    spawner.close()
