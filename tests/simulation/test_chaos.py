"""Lives on which everything goes wrong; a seed that fails is printed and can be lived again.

`make campaign` lives thousands of them.
"""

import asyncio
import os
import subprocess
import sys

import pytest

from pulse_core.model.kinds import Paused
from tests.long_form import sample, sampled
from tests.simulation.chaos import live
from tests.simulation.world import World, simulate

pytestmark = pytest.mark.usefixtures("usual_rounds")


@pytest.mark.parametrize("seed", sampled(range(6), 2))
def test_the_laws_hold_whatever_goes_wrong(seed: int) -> None:
    assert live(seed, deeds=60).daemon is not None


LIFE = "from tests.simulation.chaos import live\nfor event in live(11, deeds=60).log.events: print(*event)"


def test_a_seed_is_lived_the_same_way_twice_also_by_another_python() -> None:
    def told(seed: str) -> bytes:
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
        }  # the order of sets and of what they hold is another
        return subprocess.run(
            [sys.executable, "-c", LIFE], env=environment, capture_output=True, check=True, timeout=60
        ).stdout

    first = told("1")
    assert first.count(b"\n") > 100
    assert told("2") == first


def test_a_long_life_holds_the_laws_too() -> None:
    assert live(7, deeds=sample(150, 600)).daemon is not None


def test_the_dead_write_nothing() -> None:
    async def story(world: World) -> None:
        async def slow() -> None:
            await asyncio.sleep(1)

        await world.start()
        world.log.commit = slow
        asking = asyncio.create_task(world.ask(Paused()))
        await asyncio.sleep(0.5)
        await world.crash()
        world.log.commit = None
        await world.start()
        await asyncio.sleep(5)
        assert not world.events(Paused.kind)
        await asyncio.wait([asking])

    simulate(story, {})
