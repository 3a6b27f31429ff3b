"""The head of the log is written down outside of the home, and who takes that away is not passed over."""

import asyncio
from pathlib import Path

import pytest

from pulse_adapters.anchor.places import add_to_file
from pulse_core.daemon.anchor_writer import write_anchors
from pulse_core.model.anchor import Anchor
from pulse_core.model.event import Head


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

    with pytest.raises(asyncio.CancelledError):
        await write_anchors(
            newest,
            {"the file": write},
            0,
            lambda source, words: said.append(f"{source}: {words}"),
            lambda: None,
        )
    assert [words.split(";")[0].split(":")[2] for words in said] == [
        " it is begun at row 7",
        " it is begun anew at row 9",
    ]


async def test_a_place_that_takes_a_line_again_is_told_once() -> None:
    rows, told = iter((7, 8, 9)), list[object]()

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
            newest, {"it": write}, 0, lambda _, words: told.append(words), lambda: told.append("mended")
        )
    assert told == ["it: no room", "written", "mended", "written"]
