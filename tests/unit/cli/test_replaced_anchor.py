"""Who puts another file in the place of an anchor is told of, as who deletes it is."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulse_core.home import HomeLayout
from pulse_core.model.event import Head
from pulse_core.settings.telemetry import AnchorSettings
from upulse_cli.wiring import anchors


@pytest.mark.parametrize(
    ("replace", "is_told"),
    [
        (lambda lines: lines[:1], True),
        (lambda _: ["something else\n"], True),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], True),
        (lambda lines: [*lines, "the line of another home\n"], False),
        (lambda lines: [*lines, "x" * 2**20], False),  # so much of others that ours is not looked for
    ],
)
async def test_an_anchor_that_is_replaced_is_told(tmp_path: Path, replace: Any, is_told: bool) -> None:
    path, said = tmp_path / "anchor", list[str]()
    log: Any = SimpleNamespace(host="x", head=Head(1, b"1"))

    async def changed(_: str, words: str) -> None:
        said.append(words)

    async def written(rows: int) -> None:
        log.head = Head(rows, b"1")
        async with asyncio.timeout(60):
            while not path.exists() or f'"seq": {rows},' not in path.read_text():
                await asyncio.sleep(0.001)

    unused: Any = None
    write = anchors.anchoring(
        HomeLayout(tmp_path / "home"),
        log,
        SimpleNamespace(now=lambda: SimpleNamespace(at=1)),
        unused,
        unused,
        lambda _, words: said.append(words),
        changed,
        lambda: [str(path)],
        unused,
        lambda: None,
    )
    settings = AnchorSettings.model_construct(file=str(path), every=1_000)
    writing = asyncio.ensure_future(write(settings))
    await written(1)
    await written(2)
    path.write_text("".join(replace(path.read_text().splitlines(keepends=True))))
    await written(3)
    await written(4)  # what is told of the third is told by then
    writing.cancel()
    assert [words for words in said if "begun anew at row 3" in words] == said[1:]
    assert len(said[1:]) == is_told
