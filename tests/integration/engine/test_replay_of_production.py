"""What a real daemon's rules emitted is what a replay of the same ticks says, tick by tick and key by key."""

import asyncio
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.app.engine.recorded_ticks import RecordedTicks
from pulse_core.model.tick import NOBODY, TickRecord
from pulse_core.model.vitals import MINUTE_US
from pulse_core.projections.state import Snapshot
from tests.integration.cli.cli_home import ALLOW, CliHome, eventually
from tests.integration.engine.engine_home import PATIENT, new_home
from tests.integration.rule_host.rule_host_engines import written
from tests.long_form import sample
from upulse_cli.wiring.home import home_context

TICKS = sample(10, 20)
"""In each of three parts: after a quarantine, after a promote, after a restart."""
CONFIG = f"""
[daemon]
tick_ms = 100
[watch]
system_interval = "300ms"
[rollback]
errors = 100
[budget]
actions_per_minute = 0
{PATIENT}repeat = "700ms"
quarantine = 5
{ALLOW}"""
RULES = '''
def wish(key, tick):
    return Effect(action="run-command", key=key, params={"argv": ["/bin/true"]}, reason=f"tick {tick}")


def step(count, event):
    return count + 1


COUNT = Projection(start=0, step=step, kinds={"effect-acked"})


async def drops(prev, curr, inner):
    """Drop what another one wishes, now and then."""
    verdict = await inner(prev, curr)
    kept = tuple(one for one in verdict.effects if curr.tick % 6 or "third" not in one.key)
    return Verdict(kept, verdict.tick_ms)


async def by_number(prev, curr, inner):
    verdict = await inner(prev, curr)
    return verdict if curr.tick % 3 else verdict.plus(wish(f"NAME:third-{curr.tick}", curr.tick))


async def by_senses(prev, curr, inner):
    """What it sees of this tick and of the one before."""
    verdict = await inner(prev, curr)
    load, seen = curr.window("system-resource").values("load1"), len(prev.window("system-resource").samples)
    gap, row = curr.tick - prev.tick, curr.state.seq - prev.state.seq
    return verdict.plus(wish(f"NAME:saw-{len(load)}-{max(load, default=0)}-{seen}-{gap}-{row}", curr.tick))


async def by_memory(prev, curr, inner):
    verdict = await inner(prev, curr)
    return verdict.plus(wish(f"NAME:acked-{curr.own['count'] // 3}", curr.tick))


async def always(prev, curr, inner):
    return (await inner(prev, curr)).plus(wish("NAME:always", curr.tick))


async def fails(prev, curr, inner):
    if curr.tick % 7 == 0:
        raise ValueError("a seventh")
    return (await inner(prev, curr)).plus(wish(f"NAME:tick-{curr.tick // 10}", curr.tick))


async def late(prev, curr, inner):
    """It fails until it is quarantined, so that what it would wish later is never heard."""
    if not curr.engine.quarantined:
        raise ValueError("not yet")
    return (await inner(prev, curr)).plus(wish(f"NAME:late-{curr.tick}", curr.tick))
'''
NAMES = "drops, by_number, by_senses, by_memory, always, fails"


def listed(names: str) -> str:
    return f"from rules.own import COUNT, {names}\nRULES = [{names}]\nPROJECTIONS = {{'count': COUNT}}\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    home = new_home(tmp_path / "home", RULES.replace("NAME", "my"), CONFIG, listed(f"{NAMES}, late"))
    home.start_daemon()
    try:
        eventually(lambda: home.status()["engine"]["commit"], "the first commit to be in force")
        yield home
    finally:
        home.end_everything()


def records(home: CliHome) -> list[TickRecord]:
    with SqliteVitalsReader(home.path) as vitals:
        return vitals.ticks_since(0)


def some_ticks(home: CliHome, count: int) -> None:
    """Wait until so many more have asked the rules."""
    whole = sum(bool(row.engine) for row in records(home)) + count
    eventually(lambda: sum(bool(row.engine) for row in records(home)) >= whole, f"{count} ticks")


def replayed(home: CliHome, *words: str, code: int = 0) -> dict[str, Any]:
    return dict(home.upulse("replay", "--since", "1h", *words, "--json", code=code).json)


@pytest.mark.timeout(600)
def test_a_replay_of_what_was_in_force_says_exactly_what_was_emitted(served: CliHome) -> None:
    eventually(lambda: served.status()["engine"]["quarantined"], "the rule to be quarantined")
    some_ticks(served, TICKS)
    written(served.path / "staging", RULES.replace("NAME", "your"), listed(NAMES))
    second = served.upulse("promote", "--gate", "loads").out.strip()
    some_ticks(served, TICKS)
    os.kill(served.status()["daemon"]["pid"], signal.SIGKILL)
    control = home_context(Home(served.path)).daemon
    eventually(lambda: control.lock_holder() is None, "the killed daemon to let go of the home")
    served.start_daemon()
    some_ticks(served, TICKS)
    served.upulse("daemon", "stop")

    told = replayed(served, "--engine", "in-force", "--against", "recorded")
    assert told["differences"] == []
    again = replayed(served, "--engine", "in-force", "--against", "recorded")
    assert {**again, "caveats": ()} == {**told, "caveats": ()}
    wishes = [(one["key"], one["tick"]) for one in told["engine"]["wishes"]]
    rows = records(served)
    emitted = [(key, row.tick) for row in rows for key in row.effects if key.startswith(("my:", "your:"))]
    assert sorted(wishes) == sorted(emitted)
    assert {key.rpartition("-")[0] for key, _ in wishes} >= {
        "my:third",
        "your:third",
        "my:acked",
        "your:tick",
    }
    assert not any("late" in key for key, _ in wishes)

    first, *_ = commits = list(
        dict.fromkeys(row.engine for row in rows if row.engine and row.engine != NOBODY)
    )
    assert commits == [first, second]
    other = replayed(served, "--engine", "main", "--against", "recorded", code=3)
    only = {(one["only"], one["key"].partition("-")[0]) for one in other["differences"]}
    assert only >= {("old", "my:third"), ("new", "your:third")}

    before = seen_at(served, {row.tick for row in rows if row.effects})
    asyncio.run(trimmed(served, rows[-1].moment.at + MINUTE_US))
    assert seen_at(served, set(before)) == before
    coarse = replayed(served, "--engine", "in-force", "--against", "recorded", code=3)
    assert coarse["engine"]["ticks"] < told["engine"]["ticks"]
    assert any("only ticks that emitted effects are kept" in caveat for caveat in coarse["caveats"])
    third = [(one["key"], one["tick"]) for one in coarse["engine"]["wishes"] if ":third" in one["key"]]
    assert third == [(key, tick) for key, tick in wishes if ":third" in key]


def seen_at(home: CliHome, ticks: Collection[int]) -> dict[int, Snapshot]:
    """What the rules saw at these ticks."""
    with RecordedTicks(home_context(Home(home.path)), 0) as past:
        return {then.snapshot.tick: then.snapshot for then in past.ticks() if then.snapshot.tick in ticks}


async def trimmed(home: CliHome, before: int) -> None:
    """Forget what is older, as the daemon does in time."""
    async with SqliteVitals.open(home.path / "vitals.db") as vitals:
        await vitals.trim(before)


def test_what_is_recorded_is_no_engine(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    assert "is no engine" in home.upulse("replay", "--engine", "recorded", code=1).err
