"""What a promote says that will be different, as replay has found it, and what scripts hear of a replay."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pulse_adapters.git.repository import Repository
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.app.engine.change_summary import MOST, changes_in_words, excess_in_words
from pulse_core.app.engine.effect_diff import WishedEffect
from pulse_core.app.engine.replay import Replay
from pulse_core.model.moment import iso
from pulse_core.ports.engine import Revision
from tests.integration.cli.cli_home import ALLOW, CliHome, eventually
from tests.integration.engine.engine_home import PATIENT, WISHING, new_home, save
from tests.integration.rule_host.rule_host_engines import rule

OFTEN = f'[daemon]\ntick_ms = 200\n{PATIENT}repeat = "1s"\nnew_effects_per_hour = 20\n{ALLOW}'
OTHER = WISHING.replace("wishing", "other").replace("my:wish", "my:other")
GREEDY = """
async def greedy(prev, curr, inner):
    keys = (f"my:{curr.tick}:{number}" for number in range(30))
    wishes = (Effect(action="run-command", key=key, params={"argv": ["/bin/true"]}) for key in keys)
    return (await inner(prev, curr)).plus(*wishes)
"""


def replay(*wishes: WishedEffect, ticks: int = 7, **defined: str) -> Replay:
    return Replay(Revision("c", "/nowhere"), ticks, list(wishes), defined=defined)


def wish(tick: int, rule: str = "night", reason: str = "it is late") -> WishedEffect:
    return WishedEffect(f"my:{rule}", tick, iso(tick * 10_000_000), rule, "notify", reason)


def test_nothing_changes_in_one_line() -> None:
    assert (
        changes_in_words(replay(wish(1), a="x:1"), replay(wish(1), a="y:2", ticks=1), {"x"})
        == "1 tick: nothing changes"
    )


def test_each_rule_has_its_count_its_times_and_examples() -> None:
    night, noon = "rules/night.py:1", "rules/noon.py:1"
    old = replay(wish(1), wish(3), old="rules/old.py:1", night=night, noon=noon)
    new = replay(
        wish(3),
        *(wish(tick, "day", "it is\nday") for tick in (4, 5, 6)),
        day="rules/day.py:1",
        night=night,
        noon=noon,
    )
    changed = {"rules/old.py", "rules/day.py", "rules/noon.py"}
    assert changes_in_words(old, new, changed).splitlines() == [
        "7 ticks: 3 effects newly requested, 1 effect no longer requested",
        "new rules: day",
        "rules gone: old",
        "rules edited: noon",
        "+ day 3 times newly requested, from 1970-01-01 00:00:40Z to 1970-01-01 00:01:00Z",
        "    1970-01-01 00:00:40Z notify my:day: it is ↵ day",
        "    1970-01-01 00:00:50Z notify my:day: it is ↵ day",
        "- night 1 time no longer requested, at 1970-01-01 00:00:10Z",
        "    1970-01-01 00:00:10Z notify my:night: it is late",
    ]


def test_no_file_is_read_that_a_host_names(tmp_path: Path) -> None:
    """It may be one that has no end."""
    (named := tmp_path / "named").write_text("something else than before")
    old, new = replay(a="rules/a.py:1"), replay(a=f"{named}:1")
    assert changes_in_words(old, new, {"rules/a.py"}) == "7 ticks: nothing changes"


def test_however_much_is_different_it_can_be_recorded() -> None:
    many = [wish(number, f"rule-{number % 90}" * 5, "x" * 5_000) for number in range(2_000)]
    defined = {f"rule-{number}": "" for number in range(500)}
    words = changes_in_words(replay(), replace(replay(*many), defined=defined), ())
    assert len(words) < 2_000
    assert words.endswith("upulse replay tells all")
    assert words.count("+ ") >= 3
    assert MOST < 2_000


HOUR = 3_600 * 10**6


def wishes(number: int, rule: str = "night", at: int = 0) -> list[WishedEffect]:
    """So many, one a second, the first of them at this time."""
    times = (iso(at + 10**6 * one) for one in range(number))
    return [WishedEffect(f"{rule}:{one}", one, when, rule, "notify", "") for one, when in enumerate(times)]


def test_effects_of_the_hour_that_has_most_of_them_count_beyond_those_of_the_rules_in_force() -> None:
    old = replay(*wishes(30, at=HOUR))
    assert not excess_in_words(old, replay(*wishes(10), *wishes(40, at=HOUR)), 10)
    assert not excess_in_words(old, replay(*wishes(40, "renamed", at=HOUR)), 10)
    assert not excess_in_words(old, replay(), 0)
    told = excess_in_words(old, replay(*wishes(5), *wishes(30, at=HOUR), *wishes(1_200, "day", HOUR)), 10)
    assert told.splitlines() == [
        "1,200 effects more than now in an hour (that of 1970-01-01 01:00Z); 10 are allowed",
        "most of them by the rule 'day': notify 1,200 times",
        "if that is meant: --skip replay --why WORDS, or raise [engine] new_effects_per_hour",
    ]
    assert "11 effects more" in excess_in_words(old, replay(*wishes(41, "renamed", at=HOUR)), 10)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    home = new_home(tmp_path / "home", WISHING, OFTEN)
    home.start_daemon()
    try:
        eventually(lambda: home.status()["engine"]["commit"], "the first commit to be in force")
        yield home
    finally:
        home.end_everything()


def test_what_a_promote_says_stays_with_it_and_a_replay_ends_with_a_code(served: CliHome) -> None:
    with SqliteVitalsReader(served.path) as vitals:
        eventually(lambda: any("my:wish" in tick.effects for tick in vitals.ticks_since(0)), "a wish")
        eventually(lambda: len(vitals.ticks_since(0)) > 5, "some ticks")
    save(served, GREEDY)
    refused = served.upulse("promote", "--gate", "loads", "--gate", "replay", code=1).err
    assert "the gate 'replay' says no" in refused
    assert "20 are allowed" in refused
    assert "most of them by the rule 'greedy': run-command " in refused
    assert "--skip replay --why WORDS, or raise [engine] new_effects_per_hour" in refused
    save(served, OTHER)
    promoted = served.upulse("promote", "--gate", "loads", "--gate", "replay", "-m", "Another one")
    assert Repository(served.path).head() == promoted.out.strip()
    for words in (
        "new rules: other",
        "rules gone: wishing",
        "+ other ",
        "- wishing ",
        "my:other: it is time",
    ):
        assert words in promoted.err
        assert words in served.upulse("engine", "show", "main").out
    (event,) = served.upulse("events", "--kind", "promote", "--subject", promoted.out.strip(), "--json").lines
    assert event["data"]["changed"] == ["engine.py", "rules/own.py"]
    told = served.upulse("engine", "show", "main", "--json").json
    assert "new rules: other" in told["changes"]
    assert next(gate for gate in told["gates"] if gate.startswith("replay")).count("\n") == 0
    told = json.loads(served.upulse("replay", "--engine", "main", "--against", "main", "--json").out)
    assert told["differences"] == []
    save(served, OTHER + rule("raise ValueError('no')", "failing"))
    failing = served.upulse("replay", "--against", "main", "--json", code=3).json
    assert failing["differences"] == []
    assert any("rule:failing: ValueError: no" in fault for fault in failing["engine"]["faults"])
    served.upulse("daemon", "stop")
    config = served.path / "config.toml"
    was = config.read_text()
    config.write_text(was.replace('repeat = "1s"', 'repeat = "1h"'))
    against = ("replay", "--engine", "in-force", "--against", "recorded", "--json")
    others = served.upulse(
        *against, code=3
    ).json  # what may be repeated after an hour was repeated after a second
    assert any("other settings were in force for a part of it" in caveat for caveat in others["caveats"])
    config.write_text(was)
    assert served.upulse(*against).json["differences"] == []
    with closing(sqlite3.connect(served.path / "vitals.db")) as vitals:
        vitals.execute(
            "UPDATE tick SET engine = NULL WHERE engine != ''"
        )  # as in records of before they said it
        vitals.commit()
    believed = served.upulse("replay", "--engine", "in-force", "--against", "in-force", "--json").json
    assert len(believed["engine"]["wishes"]) >= 2
    assert any("the log is believed" in caveat for caveat in believed["caveats"])
    served.upulse("replay", "--since", "soon", code=2)
    served.upulse("explain", "--at", "soon", code=2)
    assert "has not come yet" in served.upulse("explain", "--at", "2099-01-01", code=1).err
    assert "no tick was recorded" in served.upulse("replay", "--since", "2099-01-01", code=1).err
