"""The head of the log is written down outside of the home, and who takes that away is not passed over."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from pulse_adapters.anchor.places import add_to_file
from pulse_core.daemon.anchor_writer import write_anchors
from pulse_core.model.anchor import Anchor
from pulse_core.model.event import Head
from pulse_core.model.kinds import Paused
from pulse_core.model.moment import US_PER_SECOND
from tests.simulation.world import World, simulate
from upulse_cli.wiring.daemon import DaemonCallbacks, later


@pytest.mark.parametrize("take_away", [Path.unlink, lambda path: path.write_text("")])
async def test_an_anchor_that_is_begun_anew_is_told(tmp_path: Path, take_away: object) -> None:
    path, said = tmp_path / "anchor", list[str]()
    rows = iter((7, 8, 9, 9))

    def newest() -> Anchor:
        if (row := next(rows, 0)) == 9 and "8" in path.read_text():
            take_away(path)  # type: ignore[operator]
        if not row:
            raise asyncio.CancelledError
        return Anchor("home", "/home", Head(row, b""), 0)

    async def write(line: str) -> bool:
        return add_to_file(path, line)

    async def changed(source: str, words: str) -> None:
        said.append(f"{source}: {words}")

    with pytest.raises(asyncio.CancelledError):
        await write_anchors(
            newest,
            {"the file": write},
            0,
            lambda source, words: said.append(f"{source}: {words}"),
            changed,
            lambda: None,
        )
    assert [words.split(";")[0].split(":")[2] for words in said] == [
        " it is begun at row 7",
        " it is begun anew at row 9",
    ]


async def test_a_place_that_takes_a_line_again_is_told_once() -> None:
    rows, told = iter((7, 8, 9)), list[object]()

    async def never(_: str, words: str) -> None:
        raise AssertionError(words)

    def newest() -> Anchor:
        if not (row := next(rows, 0)):
            raise asyncio.CancelledError
        return Anchor("home", "/home", Head(row, b""), 0)

    async def write(line: str) -> bool | None:
        if len(told) < 1:
            raise OSError("no room")
        told.append("written")
        return None

    with pytest.raises(asyncio.CancelledError):
        await write_anchors(
            newest,
            {"it": write},
            0,
            lambda _, words: told.append(words),
            never,
            lambda: told.append("mended"),
        )
    assert told == ["it: no room", "written", "mended", "written"]


def test_that_an_anchor_is_begun_anew_is_recorded_whatever_failed_there_before(tmp_path: Path) -> None:
    path, faults, calls = tmp_path / "anchor", [f"fault {number}" for number in range(9)], DaemonCallbacks()

    async def write(line: str) -> bool:
        if path.exists() and faults:
            raise OSError(faults.pop(0))
        return add_to_file(path, line)

    async def story(world: World) -> None:
        def newest() -> Anchor:
            return Anchor("home", "/home", Head(world.log.head.seq, b""), 0)

        written = partial(write_anchors, newest, {"it": write}, US_PER_SECOND, calls.failed, calls.changed)
        world.services = {"anchor": lambda _, begun: later(begun, written(lambda: None))}
        starting = asyncio.ensure_future(world.start())
        await asyncio.sleep(0)
        assert world.daemon
        calls.daemon = world.daemon
        await starting
        for _ in range(12):
            await world.ask(Paused())  # so that the log grows
            await asyncio.sleep(1)
        assert not faults
        path.unlink()
        await world.ask(Paused())
        await asyncio.sleep(3)

    said = simulate(story, {}).events("error", subject="anchor")
    assert "begun anew" in said[-1].data
