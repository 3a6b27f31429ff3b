"""No engine holds the loop of a daemon: whole daemons in this process, with engines that try."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.callback_times import CallbackTimes, callback_times
from tests.hostile_engines import HARMLESS, RULES, WISHES, engines, hostile_daemon, rules, watchers, wishing
from tests.long_form import sample

ENGINES = {
    "refused effects": rules(*(wishing(wish, 100 // len(WISHES)) for wish in WISHES.values())),
    "notes and inner calls": rules(RULES["inner without end"], *(RULES["notes without end"],) * 8),
    "samples": watchers("return Reading({str(n): 'x' * 50 for n in range(1_000)})"),
    **sample({}, engines()),
}
LONGEST_MS, TIMES = 5.0, 6
"""What is promised of every callback, and how many times as long as with a harmless engine one may take where other tests
run, too, and the same work takes longer."""


async def ticked(place: Path, files: Mapping[str, str]) -> CallbackTimes:
    """The callbacks of a daemon with this engine, for some ticks."""
    async with hostile_daemon(place, files) as daemon:
        with callback_times() as times:
            until = daemon.ticker.number + 5
            async with asyncio.timeout(60):
                while daemon.ticker.number < until:
                    await asyncio.sleep(0.05)
        await daemon.parts.vitals.flush()
        for tick in await daemon.parts.vitals.ticks(1_000):
            assert sum(len(note) for layer in tick.layers for note in layer.notes) < 16 * 1024
    return times


@pytest.mark.wall_clock
@pytest.mark.parametrize("name", ENGINES)
async def test_no_callback_of_the_loop_is_long(name: str, tmp_path: Path) -> None:
    took, callback = (await ticked(tmp_path / "hostile", ENGINES[name])).worst
    if took > LONGEST_MS:  # a slow machine, or imports, and decoders that are made once
        harmless, _ = (await ticked(tmp_path / "harmless", HARMLESS)).worst
        took, callback = (await ticked(tmp_path / "again", ENGINES[name])).worst
        assert took <= max(LONGEST_MS, TIMES * harmless), (
            f"{callback}: {took:.1f} ms, harmless {harmless:.1f}"
        )
