"""What was sensed long ago is still there, by the minute."""

import asyncio
import os
import time

import pytest

from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.moment import Moment
from tests.integration.cli.cli_home import CliHome

MINUTE = 60_000_000
DAY = 1_440 * MINUTE


async def sensed(home: CliHome, begun: int) -> None:
    """Two minutes of four samples each, from then on, and two samples of now."""
    now = round(time.time() * 1e6)
    async with SqliteVitals.open(home.path / "vitals.db") as vitals:
        for number, used in enumerate((0.1, 0.2, 0.6, 0.3, 0.5, 0.5, 0.5, 0.5)):
            at = begun + number * MINUTE // 4
            vitals.sample("system-resource", Moment(at, "b", 1), {"memory": used, "up": True})
        for at in (now - 2_000_000, now - 1_000_000):
            vitals.sample("system-resource", Moment(at, "b", 1), {"memory": 0.4})
        await vitals.flush()
        await vitals.trim(now - DAY)


def test_a_series_begins_with_minutes_and_ends_with_samples(quiet: CliHome) -> None:
    begun = (round(time.time() * 1e6) - 3 * DAY) // MINUTE * MINUTE
    asyncio.run(sensed(quiet, begun))
    told = quiet.upulse("vitals", "system-resource.memory", "--since", "2d", "--json").json[0]
    assert [point["value"] for point in told["points"]] == [0.4, 0.4]
    told = quiet.upulse("vitals", "system-resource.memory", "--since", "4d", "--json").json[0]
    values = [round(point["value"], 3) for point in told["points"]]
    assert values in (
        [0.3, 0.5, 0.4, 0.4],
        [0.4, 0.4, 0.4],
    )  # where it is long, some minutes are taken together
    said = quiet.upulse("vitals", "system-resource.memory", "--since", "4d").out
    assert "last 40.0%, lowest 10.0%, highest 60.0%" in said


def test_the_table_knows_the_bounds_of_long_ago(quiet: CliHome) -> None:
    asyncio.run(sensed(quiet, (round(time.time() * 1e6) - 3 * DAY) // MINUTE * MINUTE))
    line = next(
        line for line in quiet.upulse("vitals", "--since", "4d").out.splitlines() if ".memory" in line
    )
    assert line.split()[1:4] == ["40.0%", "10.0%", "60.0%"]
    assert "system-resource.up" in quiet.upulse("vitals", "--since", "4d").out


def test_senses_with_dots_in_their_names_are_found_like_others(quiet: CliHome) -> None:
    async def sensed_with_dots() -> None:
        async with SqliteVitals.open(quiet.path / "vitals.db") as vitals:
            for key in ("queue", "queue.mail", "queue.mail.out"):
                vitals.sample(key, Moment(round(time.time() * 1e6) - 1_000_000, "b", 1), {"length": 1})
            await vitals.flush()

    def names(key: str) -> list[str]:
        return [one["name"] for one in quiet.upulse("vitals", key, "--json").json]

    asyncio.run(sensed_with_dots())
    assert names("queue.length") == ["queue.length"]
    assert names("queue.mail.out.length") == ["queue.mail.out.length"]
    assert names("queue.mail") == ["queue.mail.length", "queue.mail.out.length"]


@pytest.mark.parametrize("rest", [0.5, 5_000, 100])
def test_vitals_that_can_not_be_read_are_said_to_be_so(quiet: CliHome, rest: float) -> None:
    quiet.start_daemon()
    try:
        quiet.pid_when_up("demo")
    finally:
        quiet.upulse("daemon", "stop")
        quiet.end_everything()
    vitals = quiet.path / "vitals.db"
    os.truncate(vitals, int(vitals.stat().st_size * rest) if rest < 1 else int(rest))
    words = "vitals.db can't be read as a whole"
    assert words in quiet.upulse("why").out
    assert words in quiet.upulse("vitals").err
    assert words in quiet.upulse("vitals", "system-resource.memory", code=1).err
