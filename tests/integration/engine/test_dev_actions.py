"""`upulse dev` asks staging's own watchers, and with `--execute` acts with staging's own executors."""

from dataclasses import replace
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.app.engine.dev_reports import DevRemark, RulesLoaded, SampleTaken, TickSeen
from pulse_core.app.engine.dev_session import try_once
from pulse_core.app.engine.staging_actions import StagingActions
from pulse_core.model.kinds import Effect
from pulse_core.ports.engine import EngineFault
from tests.integration.engine.engine_home import Ear, author, new_home, save, tried
from tests.integration.rule_host.rule_host_engines import written
from upulse_cli.views.dev import Lines, spelled
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.home import home_context

HANDS = '''
import asyncio
from pulse_core import Policy, Reading, Result, Safety
from pydantic import BaseModel


class Heat:
    """How warm it is."""

    name = key = "heat"
    interval, timeout = 0.2, 5.0

    def __init__(self):
        self.nudge = asyncio.Event()

    async def collect(self):
        BODY

    def should_wake(self, window):
        return False


class CoolParams(BaseModel):
    degrees: int


class Cool:
    """Carries out `cool`."""

    action, params = "cool", CoolParams

    def policy(self, params):
        return Policy(Safety.AT_MOST_ONCE, timeout=5.0)

    def check(self, params):
        pass

    async def execute(self, effect, params, event):
        return Result({"now": params.degrees, "key": event.subject})

    async def verify(self, effect, params, event):
        return None
'''
WARM = """
async def warm(prev, curr, inner):
    degrees = curr.window("heat").values("degrees")
    return (await inner(prev, curr)).noting(f"felt {list(degrees[-1:])}")
"""
ENGINE = """
from hands import Cool, Heat
from rules.own import warm
RULES, WATCHERS, EXECUTORS = [warm], [Heat()], [Cool()]
"""


def sensing(home: Path, body: str = 'return Reading({"degrees": 60})') -> None:
    """Staging has a watcher, an executor, and a rule that says what the watcher felt."""
    written(home / "staging", WARM, ENGINE, hands=HANDS.replace("BODY", body))


async def test_what_staging_senses_is_shown_and_seen_by_its_rules(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    sensing(home.path)
    async with author(home) as ear:
        assert (await ear.next(RulesLoaded)).loaded.watchers == ("heat",)
        sensed = await ear.next(SampleTaken)
        assert (sensed.watcher, sensed.sample.key, dict(sensed.sample.data)) == (
            "heat",
            "heat",
            {"degrees": 60},
        )
        assert list(Lines().of(sensed)) == ['sample    heat: {"degrees": 60}']
        assert spelled(sensed)["data"] == {"degrees": 60}
        seen = await ear.next(TickSeen, lambda seen: seen.layers[0].notes == ("felt [60]",))
        assert seen.is_again


async def test_a_watcher_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    sensing(home.path, "return 1 / 0")
    async with author(home) as ear:
        broke = await ear.next(EngineFault)
        assert broke.whose == "watcher:heat"
        assert "ZeroDivisionError" in broke.message
        assert "hands.py:" in broke.message
        assert next(iter(Lines().of(broke))).startswith("error     watcher:heat: ")


async def test_a_watcher_that_is_taken_out_is_not_asked_any_more(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    sensing(home.path)
    async with author(home) as ear:
        await ear.next(SampleTaken)
        save(home, WARM)
        began = await ear.next(RulesLoaded, lambda began: not began.loaded.watchers)
        assert began.loaded.rules == ("warm",)
        await ear.next(TickSeen, lambda seen: not seen.is_again and seen.layers[0].notes == ("felt []",))


async def test_once_says_whom_it_does_not_ask_and_begins_no_process_for_a_save_to_come(
    tmp_path: Path,
) -> None:
    home = new_home(tmp_path / "home")
    sensing(home.path)
    ear, warmed = Ear(), list[object]()

    class Hosts(ChildHosts):
        def warm(self) -> None:
            warmed.append(self)

    target = tried(home.path, ear)
    assert await try_once(replace(target, engine=replace(target.engine, standby_hosts=Hosts)))
    assert not warmed
    assert (await ear.next(DevRemark, lambda remark: "heat" in remark.words)).words == "not asked now: heat"


async def test_what_only_staging_can_do_is_done_here_and_said(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    sensing(home.path)
    engine = workflow_context(home_context(Home(home.path)))
    hands = StagingActions(engine.action_hosts, SystemClock(), lambda report: None)
    try:
        await hands.load(str(home.path / "staging"))
        assert set(hands.executors) == {"cool"}
        said = await hands.execute(Effect(action="cool", key="my:cool", params={"degrees": 20}))
        assert said == "my:cool was done, here and unrecorded: {'now': 20, 'key': 'my:cool'}"
        said = await hands.execute(Effect(action="cool", key="my:cool", params={"degrees": "warm"}))
        assert said.startswith("my:cool failed, here and unrecorded: ")
        assert "degrees" in said
    finally:
        await hands.close()
    assert not hands.executors


@pytest.mark.parametrize("body", ["raise Unsure('who knows')", "os._exit(1)"])
async def test_what_may_have_been_done_is_said_and_ends_nothing(tmp_path: Path, body: str) -> None:
    home = new_home(tmp_path / "home")
    head = f"import os\nfrom pulse_core import Unsure\n{HANDS}"
    hands_py = head.replace('return Result({"now": params.degrees, "key": event.subject})', body)
    written(home.path / "staging", WARM, ENGINE, hands=hands_py.replace("BODY", "return Reading({})"))
    engine = workflow_context(home_context(Home(home.path)))
    hands = StagingActions(engine.action_hosts, SystemClock(), lambda report: None)
    try:
        await hands.load(str(home.path / "staging"))
        said = await hands.execute(Effect(action="cool", key="my:cool", params={"degrees": 20}))
        assert said.startswith("my:cool may have been done, here and unrecorded: ")
    finally:
        await hands.close()


WISHES = """
async def wishes(prev, curr, inner):
    return (await inner(prev, curr)).plus(
        Effect(action="restart-process", key="my:restart", params={"name": "gateway"}),
        Effect(action="dance", key="my:dance"),
        Effect(action="cool", key="my:cool", params={"degrees": 20}),
        Effect(action="run-command", key="my:run", params={"argv": ["/opt/tool"]}),
        Effect(action="stop-process", key="my:stop", params={"process": "demon"}),
    )
"""


async def test_a_wish_that_would_be_refused_says_why_before_anybody_promotes_it(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    engine = ENGINE.replace("warm", "wishes")
    written(
        home.path / "staging", WISHES, engine, hands=HANDS.replace("BODY", 'return Reading({"degrees": 60})')
    )
    async with author(home) as ear:
        await ear.next(SampleTaken)
        seen = await ear.next(TickSeen)
        restart, dance, cool, run, stop = seen.wishes
        assert (restart.state, dance.state, cool.state) == ("refused", "refused", "new")
        assert "process: Field required" in restart.why
        assert "'dance'" in dance.why
        assert (run.state, stop.state) == ("refused", "refused")
        assert "'/opt/tool' may not be run; to allow it, add" in run.why
        assert "no process 'demon' in config.toml" in stop.why
        assert any("my:restart (it would be refused: " in line for line in Lines().of(seen))
