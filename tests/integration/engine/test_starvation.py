"""No engine holds the loop of a daemon: whole daemons in this process, with engines that try."""

import asyncio
from pathlib import Path

import pytest

from tests.callback_times import callback_times
from tests.hostile_engines import RULES, WISHES, hostile_daemon, rules, watchers, wishing

ENGINES = {
    "refused effects": rules(*(wishing(wish, 100 // len(WISHES)) for wish in WISHES.values())),
    "notes and inner calls": rules(RULES["inner without end"], *(RULES["notes without end"],) * 8),
    "samples": watchers("return Reading({str(n): 'x' * 50 for n in range(1_000)})"),
}


@pytest.mark.parametrize("name", ENGINES)
async def test_no_callback_of_the_loop_is_long(name: str, tmp_path: Path) -> None:
    async with hostile_daemon(tmp_path, ENGINES[name]) as daemon:
        with callback_times() as times:
            until = daemon.ticker.number + 5
            async with asyncio.timeout(60):
                while daemon.ticker.number < until:
                    await asyncio.sleep(0.05)
        await daemon.parts.vitals.flush()
        ticks = await daemon.parts.vitals.ticks(1_000)
    times.assert_short()
    recorded = [sum(len(note) for layer in tick.layers for note in layer.notes) for tick in ticks]
    assert max(recorded) < 16 * 1024
