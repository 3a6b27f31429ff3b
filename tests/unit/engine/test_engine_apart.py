"""What the engine may not wish, and how soon it may wish again."""

import sys
from typing import Any

import pytest

from pulse_core.actions import BUDGET
from pulse_core.composition import is_reserved
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.execute.effect_tasks import objection
from pulse_core.llm import endpoint
from pulse_core.model.kinds import Effect, EffectAcked
from pulse_core.model.names import ARCHIVE_SESSIONS, CLEAN_PATHS, ROLLBACK_ENGINE, STOP_PROCESS
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import FoldResult
from pulse_core.rules.survival import rollback
from pulse_core.rules.survival.process_watchdog import restart_key
from pulse_core.rules.survival.resource_guard import effect_keys
from pulse_core.testing import Story, given

blast_radius, error_escalate, network_watchdog, resource_guard = (
    sys.modules[f"pulse_core.rules.survival.{name}"]  # the package has the rules under these names
    for name in ("blast_radius", "error_escalate", "network_watchdog", "resource_guard")
)


def fold_result(*keys: str) -> FoldResult:
    return FoldResult(Verdict(tuple(Effect(action="note", key=key, rule="mine") for key in keys)))


def keys(found: FoldResult) -> list[str]:
    return [effect.key for effect in found.verdict.effects]


def story(**settings: object) -> Story:
    return given(settings={"engine": settings})


@pytest.mark.parametrize(
    "key", ["restart-process:gateway", "rollback-engine", "notify:flapping:x", "notify:network"]
)
def test_a_key_of_survival_is_a_fault_of_the_rule_that_wishes_it(key: str) -> None:
    found = filter_effects(fold_result(key, "mine"), story().snapshot)
    assert keys(found) == ["mine"]
    assert [fault.whose for fault in found.faults] == ["rule:mine"]
    assert f"my:{key}" in found.faults[0].message


@pytest.mark.parametrize(
    "key", ["notify:disk-fills-up:/", "restart", "my:restart-process:gateway", "notify:logs"]
)
def test_every_other_key_is_free(key: str) -> None:
    assert filter_effects(fold_result(key), story().snapshot) == fold_result(key)


def test_a_key_may_be_wished_again_only_some_time_after_it_was_settled() -> None:
    told = story(repeat="30s")
    told.event(Effect(action="note", key="k"), "k")
    told.event(EffectAcked(took_us=1), "event-1")  # never begun: passed over
    told.acked("k")
    assert keys(filter_effects(fold_result("k"), told.snapshot)) == []
    assert filter_effects(fold_result("k"), told.snapshot).faults == ()
    assert keys(filter_effects(fold_result("k"), told.after("29s").snapshot)) == []
    assert keys(filter_effects(fold_result("k"), told.after("1s").snapshot)) == ["k"]


GUARDED: dict[str, Any] = {
    "process": [{"name": "gateway", "start": ["gateway"], "restart": {"healthy_after": "2m"}}],
    "engine": {"repeat": "30s"},
}


def wishing(action: str, key: str = "mine", **params: Any) -> FoldResult:
    return FoldResult(Verdict((Effect(action=action, key=key, params=params, rule="mine"),)))


def up(**data: Any) -> Story:
    """The gateway came up a moment ago."""
    told = given(settings=GUARDED)
    told.happened("process-up", "gateway", pid=7, started=360_000, evidence="there")
    return told


def test_no_rule_stops_what_is_guarded() -> None:
    found = filter_effects(wishing("stop-process", process="gateway"), up().snapshot)
    assert keys(found) == []
    (fault,) = found.faults
    assert fault.whose == "rule:mine"
    assert "wish for restart-process" in fault.message


def test_what_nobody_guards_may_be_stopped() -> None:
    consumer = {"pid": 8, "started": 80}
    assert keys(filter_effects(wishing("stop-process", consumer=consumer), up().snapshot)) == ["mine"]


def test_no_rule_takes_the_engine_back() -> None:
    found = filter_effects(wishing("rollback-engine", to="a", reject="b"), up().snapshot)
    assert keys(found) == []
    assert "let a person do it" in found.faults[0].message


def test_a_rule_restarts_only_what_has_been_up_for_long_enough() -> None:
    restart, told = wishing("restart-process", process="gateway"), up()
    found = filter_effects(restart, told.snapshot)
    assert (found.verdict, found.faults) == (Verdict(), ())
    assert [one.why for one in found.withheld] == ["gateway is up for less than 2 min"]
    assert keys(filter_effects(restart, told.after("119s").snapshot)) == []
    assert keys(filter_effects(restart, told.after("1s").snapshot)) == ["mine"]
    told.happened("process-died", "gateway", pid=7, evidence="gone", healthy=True)
    assert keys(filter_effects(restart, told.after("1h").snapshot)) == []


def test_a_rule_restarts_nothing_twice_a_minute_however_soon_it_is_healthy() -> None:
    told = given(
        settings={"process": [{"name": "gateway", "start": ["g"], "restart": {"healthy_after": "0s"}}]}
    )
    told.happened("process-up", "gateway", pid=7, started=360_000, evidence="there")
    restart = wishing("restart-process", process="gateway")
    assert keys(filter_effects(restart, told.after("59s").snapshot)) == []
    assert keys(filter_effects(restart, told.after("1s").snapshot)) == ["mine"]


def test_a_rule_does_not_restart_what_a_person_wants_down() -> None:
    restart, told = wishing("restart-process", process="gateway"), up().after("1h")
    assert keys(filter_effects(restart, told.snapshot)) == ["mine"]
    told.happened("process-stop-requested", "gateway", expires_us=3_600 * 10**6)
    found = filter_effects(restart, told.snapshot)
    assert [one.why for one in found.withheld] == ["pulse wants gateway down"]
    assert keys(filter_effects(restart, told.after("2h").snapshot)) == ["mine"]


@pytest.mark.parametrize(
    ("tick", "why"), [(1, "stopped by pulse in the meantime"), (None, None)], ids=["rule", "person"]
)
def test_a_rules_restart_is_not_begun_once_a_person_wants_it_down(tick: int | None, why: str | None) -> None:
    told = up().after("1h")
    told.event(Effect(action="restart-process", key="mine", params={"process": "gateway"}, tick=tick), "mine")
    told.happened("process-stop-requested", "gateway", expires_us=3_600 * 10**6)
    (open_,) = told.snapshot.effects.open.values()
    assert objection(open_, told.snapshot.state, told.now) == why


def test_a_restart_of_what_nobody_knows_is_left_to_be_refused() -> None:
    assert keys(filter_effects(wishing("restart-process", process="stranger"), up().snapshot)) == ["mine"]


def notice(over: bool = False) -> FoldResult:
    params = {"title": "x", "text": "x", "over": over}
    return FoldResult(Verdict((Effect(action="notify", key="notify:x", params=params, rule="mine"),)))


def test_what_people_know_is_told_again_when_a_reminder_is_due() -> None:
    told = given(settings={"engine": {"repeat": "30s"}, "notify": {"remind": "4h"}})
    told.event(notice().verdict.effects[0], "notify:x")
    told.acked("notify:x")
    assert keys(filter_effects(notice(), told.after("3h").snapshot)) == []
    assert keys(filter_effects(notice(), told.after("1h").snapshot)) == ["notify:x"]


def test_without_reminders_it_is_told_once() -> None:
    told = given(settings={"notify": {"remind": "0s"}})
    told.event(notice().verdict.effects[0], "notify:x")
    told.acked("notify:x")
    assert keys(filter_effects(notice(), told.after("9d").snapshot)) == []


def test_that_it_is_over_is_told_once_to_who_heard_of_it() -> None:
    told = story()
    assert keys(filter_effects(notice(over=True), told.snapshot)) == []
    told.event(notice().verdict.effects[0], "notify:x")
    told.acked("notify:x")
    assert keys(filter_effects(notice(over=True), told.after("1m").snapshot)) == ["notify:x"]
    told.event(notice(over=True).verdict.effects[0], "notify:x")
    told.acked("notify:x")
    assert keys(filter_effects(notice(over=True), told.after("9h").snapshot)) == []
    assert keys(filter_effects(notice(), told.snapshot)) == ["notify:x"]


@pytest.mark.parametrize(
    "key",
    [
        restart_key("gateway"),
        *(key for action in (CLEAN_PATHS, ARCHIVE_SESSIONS, STOP_PROCESS) for key in effect_keys(action, "disk:/")),
        ROLLBACK_ENGINE,
        *(
            f"notify:{topic}"
            for topic in (
                BUDGET, rollback.TOPIC, error_escalate.TOPIC + "/a.log", resource_guard.TOPIC + "memory",
                endpoint.PREFIX + "http://x/", network_watchdog.OUTAGE, network_watchdog.QUALITY, "flapping:gateway",
                "stop:gateway", "doubt:gateway",
            )
        ),
    ],
)  # fmt: skip
def test_every_key_that_survival_rules_wish_is_their_own(key: str) -> None:
    assert is_reserved(key)


def reasons(found: FoldResult) -> list[str]:
    return [one.why for one in found.withheld]


def test_whatever_comes_to_nothing_says_why() -> None:
    told = story(repeat="30s")
    told.event(notice().verdict.effects[0], "notify:x")
    told.acked("notify:x")
    assert reasons(filter_effects(notice(), told.snapshot)) == [
        "the last one was settled less than 30 s ago ([engine] repeat)"
    ]
    told.after("1m")
    assert reasons(filter_effects(notice(), told.snapshot)) == [
        "it was told already (told again every 4 h, [notify] remind)"
    ]
    assert reasons(filter_effects(notice(over=True), story().snapshot)) == [
        "nothing was told that would be over by it"
    ]
    down = given(settings={"process": [{"name": "gateway", "start": ["g"]}]})
    assert reasons(filter_effects(wishing("restart-process", process="gateway"), down.snapshot)) == [
        "gateway is not up: that is survival's to mend"
    ]
    assert "Pulse's own" in reasons(filter_effects(fold_result("notify:network"), told.snapshot))[0]


def test_it_is_noted_at_the_rule_that_wished_it_and_so_is_a_key_that_is_open() -> None:
    told = story()
    told.event(Effect(action="note", key="open"), "open")
    layers = (LayerOutcome("mine", "added", ("a note",)), LayerOutcome("other", "passed"))
    found = filter_effects(
        fold_result("open", "notify:network", "free")._replace(layers=layers), told.snapshot
    )
    assert keys(found) == ["open", "free"]
    mine, other = (layer.notes for layer in found.layers)
    assert mine[:2] == ("a note", "open is not requested: an effect with this key is open already")
    assert mine[2].startswith("notify:network is not requested: ")
    assert other == ()
