"""`usage_guard` and its gauges: bounds of a process's tree, told or restarted, with budget, intent and verification."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from pulse_core.model.kinds import (
    DaemonStarted,
    Effect,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopRequested,
    ProcessUp,
)
from pulse_core.model.names import PROCESS_USAGE, USAGE
from pulse_core.model.payload import Payload
from pulse_core.projections.conditions import Conditions
from pulse_core.projections.gauges import History, Streak, conclude_gauges, streaks, streaks_to_json
from pulse_core.rules.measurements import described, too_early_reason, unmeasured_reason, usage_gauges
from pulse_core.rules.survival.process_watchdog import ProcessState, evaluate_status
from pulse_core.rules.survival.usage_guard import usage_guard
from pulse_core.settings.processes import ProcessSettings
from pulse_core.testing import Story, given

GIB = 1 << 30
AGENT: dict[str, Any] = {
    "name": "agent",
    "start": ["agent"],
    "memory_max": "2G",
    "for": "5m",
    "then": "restart",
}
NAME, KEY, TOPIC = "usage:agent:memory", "restart-process:agent", "notify:usage:agent:memory"


def a_story(**more: Any) -> Story:
    """A process that has been up for an hour, and takes too much."""
    story = given(usage_guard, settings={"process": [{**AGENT, **more}]})
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "agent")
    story.after("1h").raised(NAME, "high", "agent takes 2.1 GiB of memory")
    return story


def restarted(story: Story, pid: int = 8) -> None:
    """The restart that was just requested is done."""
    story.event(ProcessDied(pid=7, evidence="was stopped", healthy=True), "agent")
    story.after("1s").acked(KEY, pid=pid, started=pid)
    story.event(ProcessUp(pid=pid, started=pid, evidence="there"), "agent")


def test_a_leaking_process_is_restarted_and_nobody_is_woken() -> None:
    story = a_story()
    story.tick()
    effect = story.expect("restart-process", key=KEY, process="agent", for_condition=NAME)
    assert effect.survival
    assert effect.reason == "agent takes 2.1 GiB of memory"
    story.expect_nothing("notify")
    restarted(story)
    story.cleared(NAME)
    assert not story.after("1h").tick().effects


@pytest.mark.parametrize("by_pulse", [True, False])
def test_a_new_life_is_not_restarted_for_what_the_one_before_it_took(by_pulse: bool) -> None:
    story = a_story(**{"for": "5s"}).sample(PROCESS_USAGE)
    if by_pulse:
        story.tick()
        story.expect("restart-process", key=KEY)
        restarted(story)
    else:
        story.event(ProcessDied(pid=7, evidence="was stopped", healthy=True), "agent")
        story.event(ProcessUp(pid=8, started=8, evidence="there"), "agent")
    story.after("7s").tick()
    story.expect_nothing()
    story.expect_note("what it takes since it was started is not known yet")
    story.after("3s").sample(PROCESS_USAGE).tick()  # the watcher would have ended the condition, were it well
    story.expect("restart-process", key=KEY)


@pytest.mark.parametrize(("by", "waits"), [("the bound", True), ("a person", False), ("a rule", False)])
def test_a_death_soon_after_a_restart_waits_only_where_that_was_charged_to_the_budget(
    by: str, waits: bool
) -> None:
    for healthy in (False, True):
        story = a_story()
        wish = Effect(action="restart-process", key=KEY, params={"process": "agent"}, tick=1)
        wish = wish.model_copy(update={"survival": by != "a rule"})
        if by == "a person":
            story.event(ProcessRestartRequested(), "agent", actor="root")
        story.event(wish, KEY)
        story.event(ProcessDied(pid=7, evidence="was stopped", intended=True, healthy=True), "agent")
        story.acked(KEY, pid=8, started=8)
        story.event(ProcessUp(pid=8, started=8, evidence="there"), "agent")
        story.after("5s").event(ProcessDied(pid=8, evidence="was killed", healthy=healthy), "agent")
        status = evaluate_status(story.settings.process[0], story.snapshot)
        is_backing_off = waits and not healthy
        assert status.state is (ProcessState.BACKING_OFF if is_backing_off else ProcessState.DUE)


def test_by_default_a_person_is_told_once_and_when_it_is_over() -> None:
    story = a_story(then="tell")
    story.tick()
    told = story.expect("notify", key=TOPIC)
    assert told.params["title"] == "agent takes too much memory"
    story.expect_nothing("restart-process")
    story.acked(TOPIC)
    story.after("1m").tick()
    story.expect_nothing()
    story.cleared(NAME)
    story.tick()
    assert story.expect("notify", key=TOPIC).params["title"] == "resolved: agent takes too much memory"


def test_what_it_takes_once_its_bound_is_raised_is_not_called_less() -> None:
    story = a_story(then="tell", memory_max="4G")
    story.tick()
    story.acked(TOPIC)
    story.sample(PROCESS_USAGE, agent={"memory": 3 * GIB})
    story.cleared(NAME)
    story.tick()
    text = story.expect("notify", key=TOPIC).params["text"]
    assert text == "agent takes 3.0 GiB of memory (allowed: 4.0 GiB)"


def test_who_takes_as_much_after_a_restart_has_time_and_then_a_person_is_told() -> None:
    story = a_story()
    story.tick()
    restarted(story)
    story.after("1m").tick()
    story.expect_nothing()
    story.expect_note("has 4 min to take less")
    story.after("4m").sample(PROCESS_USAGE, agent={"memory": 3 * GIB}).tick()
    assert "agent was restarted once" in story.expect("notify", key=TOPIC).params["text"]
    words = "agent takes 3.0 GiB of memory (allowed: 2.0 GiB), 5 min after the last restart"
    assert story.expect("restart-process", key=KEY).reason == words


def test_the_budget_of_restarts_bounds_those_for_usage() -> None:
    story = a_story(restart={"max": 2, "within": "10h", "backoff": "1s", "backoff_max": "1h"})
    wished = 0
    for pid in range(8, 40):
        story.tick()
        if any(effect.key == KEY for effect in story.emitted):
            wished += 1
            restarted(story, pid)
        story.after("5m")
    assert wished == 4  # two at once, then after 1 h and 2 h more at least


@pytest.mark.parametrize("request_", [ProcessRestartRequested(), ProcessStartRequested()])
def test_a_person_who_requests_a_restart_or_start_gives_a_fresh_budget(request_: Payload) -> None:
    story = a_story(restart={"max": 2, "within": "10h", "backoff": "1s", "backoff_max": "10h"})
    for pid in range(8, 16):
        if any(effect.key == KEY for effect in story.tick().effects):
            restarted(story, pid)
        story.after("5m")
    story.tick()
    story.expect_note("its budget is spent by 2 restarts")
    story.event(request_, "agent", actor="root")
    if request_.kind == ProcessRestartRequested.kind:
        story.tick()
        story.expect_note("agent is restarted since root asked for it")
        wish = Effect(action="restart-process", key=KEY, params={"process": "agent"}, survival=True)
        story.event(wish, KEY)
        restarted(story, 30)
    story.after("6m").tick()
    assert story.expect("restart-process", key=KEY).params["for_condition"] == NAME


@pytest.mark.parametrize("is_over", [False, True])
def test_a_death_after_restarts_for_its_memory_says_what_those_were_for(is_over: bool) -> None:
    story = a_story(restart={"max": 2, "within": "10h", "backoff": "1s", "backoff_max": "10h"})
    for pid in (8, 9):
        story.tick()
        story.expect("restart-process", key=KEY)
        restarted(story, pid)
        story.after("6m")
    if is_over:
        story.cleared(NAME)
    story.event(ProcessDied(pid=9, evidence="process 9 was killed by SIGKILL", healthy=False), "agent")
    status = evaluate_status(story.settings.process[0], story.snapshot)
    assert (status.state, status.why) == (
        ProcessState.FLAPPING,
        "dead after 2 restarts for taking too much memory or CPU: process 9 was killed by SIGKILL",
    )
    died = Effect(action="restart-process", key=KEY, params={"process": "agent"}, tick=1, survival=True)
    story.event(died, KEY)
    restarted(story, 10)
    story.event(ProcessDied(pid=10, evidence="process 10 was killed by SIGKILL", healthy=False), "agent")
    why = evaluate_status(story.settings.process[0], story.snapshot).why
    assert why.startswith("dead after 3 restarts, 2 of them for taking too much memory or CPU: ")


def test_restarts_of_an_earlier_time_are_not_part_of_what_is_told_at_the_end() -> None:
    story = a_story(restart={"max": 1, "within": "10h", "backoff": "2h", "backoff_max": "4h"})
    for pid, words in (
        (8, "it takes no more than it may; tried before: 1 restart"),
        (9, "it takes no more than it may; tried before: 1 restart this time"),
    ):
        story.tick()
        story.expect("restart-process", key=KEY)
        restarted(story, pid)
        story.after("6m").tick()
        story.acked(TOPIC)
        story.cleared(NAME)
        story.tick()
        story.expect("notify", key=TOPIC, text=words)
        story.acked(TOPIC)
        story.after("11h").raised(NAME, "high", "agent takes 2.1 GiB of memory")


def test_a_budget_that_allows_no_restart_has_a_person_told() -> None:
    story = a_story(restart={"max": 0})
    story.tick()
    story.expect_nothing("restart-process")
    assert "allows no restart" in story.expect("notify").params["text"]


def test_a_stop_that_a_person_wants_is_not_fought() -> None:
    story = a_story()
    story.event(ProcessStopRequested(expires_us=3_600_000_000), "agent", actor="root")
    story.tick()
    story.expect_nothing()
    story.expect_note("agent is stopped by root")


def test_what_was_measured_long_ago_is_told_with_its_age() -> None:
    story = a_story(then="tell")
    story.tick()
    assert story.expect("notify").params["text"].startswith("agent takes 2.1 GiB of memory; ")
    story.acked(TOPIC)
    story.after("4h").tick()
    assert story.expect("notify").params["text"].startswith("agent takes 2.1 GiB of memory, raised 4 h ago; ")
    story.acked(TOPIC)
    story.after("4h").sample(PROCESS_USAGE, agent={"memory": 3 * GIB}).tick()
    newest = "agent takes 3.0 GiB of memory (allowed: 2.0 GiB); "
    assert story.expect("notify").params["text"].startswith(newest)


def test_the_newest_measurement_is_told_from_the_first_one_after_the_condition_was_raised() -> None:
    story = a_story(then="tell")
    story.after("10s").sample(PROCESS_USAGE, agent={"memory": 3 * GIB}).tick()
    assert "takes 3.0 GiB of memory" in story.expect("notify").params["text"]


def test_what_the_life_before_took_is_told_as_such() -> None:
    story = a_story(then="tell")

    def words() -> str:
        condition = story.snapshot.conditions[NAME]
        assert condition
        return described(NAME, condition, story.snapshot)

    assert words() == "agent takes 2.1 GiB of memory"
    story.after("1s").event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
    assert words() == "agent takes 2.1 GiB of memory, measured before it went down"
    story.after("1s").event(ProcessUp(pid=8, started=8, evidence="there"), "agent")
    assert words() == "agent takes 2.1 GiB of memory, measured before it came up"
    story.after("1s").sample(PROCESS_USAGE, agent={"memory": 3 * GIB})
    assert words() == "agent takes 3.0 GiB of memory (allowed: 2.0 GiB)"
    story.after("1s").event(ProcessDied(pid=8, evidence="was killed", healthy=True), "agent")
    assert words().endswith("takes 3.0 GiB of memory (allowed: 2.0 GiB), measured before it went down")
    # It may live and not serve: then it is measured all the same.
    story.after("1s").sample(PROCESS_USAGE, agent={"memory": 4 * GIB})
    assert words() == "agent takes 4.0 GiB of memory (allowed: 2.0 GiB)"


def test_nobody_is_told_what_a_process_takes_that_is_down() -> None:
    story = a_story(then="tell")
    story.event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
    story.tick()
    story.expect_nothing()
    story.expect_note("agent is not up, and takes nothing")


def test_a_stop_ends_the_condition_of_what_a_process_took() -> None:
    story = a_story(then="tell")
    story.event(ProcessStopRequested(expires_us=3_600_000_000), "agent", actor="root")
    process = ProcessSettings.model_validate(AGENT)
    over = {NAME: Streak(story.now, story.now)}
    for said, evidence in (
        ({"memory": 3 * GIB}, []),
        ({}, ["agent was stopped by root, and is not measured any more"]),
    ):
        history = story.snapshot.process("agent")
        gauges = usage_gauges(process, said, unmeasured_reason("agent", history, 60_000_000, story.now))
        raised = History(story.snapshot.conditions, over, 60_000_000)
        drafts, left = conclude_gauges(gauges, (USAGE,), raised, story.now)
        assert [getattr(draft.payload, "evidence", "") for draft in drafts] == evidence
        story.event(ProcessDied(pid=7, evidence="was stopped", healthy=True), "agent")
    assert not left


def test_a_process_that_stays_down_is_not_measured_any_more() -> None:
    story = a_story(then="tell")
    process = ProcessSettings.model_validate(AGENT)
    story.event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
    for after, evidence in (("30s", []), ("90s", ["agent is down for 2 min, and is not measured any more"])):
        story.after(after)
        gone = unmeasured_reason("agent", story.snapshot.process("agent"), 60_000_000, story.now)
        raised = History(story.snapshot.conditions, {NAME: Streak(story.now, story.now)}, 60_000_000)
        drafts, _ = conclude_gauges(usage_gauges(process, {}, gone), (USAGE,), raised, story.now)
        assert [getattr(draft.payload, "evidence", "") for draft in drafts] == evidence
        assert all(getattr(draft.payload, "unwatched", False) for draft in drafts)
        # It may live and not serve: then it is measured all the same.
        held, _ = conclude_gauges(
            usage_gauges(process, {"memory": 3 * GIB}, gone), (USAGE,), raised, story.now
        )
        assert held == ()


def test_a_dead_process_is_left_to_the_watchdog() -> None:
    story = a_story()
    story.event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
    story.tick()
    story.expect_nothing()


def conclusions(
    process: ProcessSettings, samples: Sequence[float | None], story: Story
) -> list[tuple[str, float]]:
    """The kinds of what follows from one sample every 10 s, and when."""
    conditions, told = Conditions(), list[tuple[str, float]]()
    over: Mapping[str, Streak] = {}
    for number, value in enumerate(samples):
        said = {} if value is None else {"memory": value * GIB, "cpu": value}
        history = History(conditions, over, 60_000_000)
        drafts, over = conclude_gauges(usage_gauges(process, said), (USAGE,), history, story.now)
        for draft in drafts:
            told.append((draft.payload.kind, number * 10.0))
            story.event(draft.payload, draft.subject)
            conditions = story.snapshot.conditions
        over = streaks({"over": streaks_to_json(over)})
        story.after("10s")
    return told


def test_how_long_it_was_too_much_is_told_at_least_as_long_as_that_must_be() -> None:
    story, process = given(), ProcessSettings.model_validate({**AGENT, "for": "300ms"})
    for after, words in (("400ms", "300 ms"), ("1400ms", "1 s")):
        since = story.now
        story.after(after)
        raised = History(Conditions(), {NAME: Streak(since, story.now)}, 60_000_000)
        drafts, _ = conclude_gauges(usage_gauges(process, {"memory": 3 * GIB}), (USAGE,), raised, story.now)
        assert getattr(drafts[0].payload, "evidence", "").endswith(f", for at least {words}")


def test_a_sample_that_is_too_early_to_end_the_condition_is_told_as_such() -> None:
    story = a_story(then="tell", restart={"grace": "10s"}, **{"for": "1m"})

    def words() -> str:
        condition = story.snapshot.conditions[NAME]
        assert condition
        return described(NAME, condition, story.snapshot)

    story.after("1s").event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
    story.after("1s").event(ProcessUp(pid=8, started=8, evidence="there"), "agent")
    story.after("4s").sample(PROCESS_USAGE, agent={"memory": GIB})
    early = "agent takes 1.0 GiB of memory (allowed: 2.0 GiB); that counts for nothing: "
    assert words() == f"{early}it had been up for 4 s, not 10 s"
    story.after("7s")
    assert words() == f"{early}it had been up for 4 s, not 10 s"  # still the newest one
    story.sample(PROCESS_USAGE, agent={"memory": 3 * GIB})
    assert words() == "agent takes 3.0 GiB of memory (allowed: 2.0 GiB)"


def test_too_much_memory_counts_after_for_and_ends_below_nine_tenths() -> None:
    process = ProcessSettings.model_validate({**AGENT, "for": "30s"})
    samples = [1.0, 2.1, 2.2, 1.9, *[2.1] * 5, 1.9, 1.7, 2.5]
    raised, cleared = ("condition-raised", 70.0), ("condition-cleared", 100.0)
    assert conclusions(process, samples, given()) == [raised, cleared]


def test_a_process_that_is_down_keeps_its_condition_until_it_is_measured_again() -> None:
    process = ProcessSettings.model_validate({**AGENT, "for": "0s"})
    assert conclusions(process, [2.5, None, None, 0.1], given()) == [
        ("condition-raised", 0.0),
        ("condition-cleared", 30.0),
    ]


@pytest.mark.parametrize(("by_pulse", "grace", "for_"), [(True, "30s", "5m"), (False, "1m", "30s")])
def test_what_a_start_takes_before_it_has_come_up_does_not_end_the_condition(
    by_pulse: bool, grace: str, for_: str
) -> None:
    story = a_story(restart={"grace": grace}, **{"for": for_})
    process = story.settings.process[0]

    def is_early(memory: float) -> bool:
        (gauge,) = usage_gauges(process, {"memory": memory * GIB})
        return bool(too_early_reason(gauge, process, story.snapshot.state, story.now))

    assert not is_early(0.1)  # it has been up for an hour
    if by_pulse:
        story.tick()
        assert is_early(0)  # as one that is being ended, and not known to be dead yet
        restarted(story)
    else:
        story.event(ProcessDied(pid=7, evidence="was killed", healthy=True), "agent")
        assert is_early(0.1)
        story.event(ProcessUp(pid=8, started=8, evidence="there"), "agent")
    assert (is_early(0.1), is_early(1.9), is_early(2.5)) == (True, False, False)
    story.after("31s")
    assert not is_early(0.1)
    story.event(ProcessUp(pid=9, started=9, evidence="there"), "agent")
    story.cleared(NAME)
    assert not is_early(0.1)


def test_a_bound_that_is_taken_out_of_the_settings_ends_the_condition() -> None:
    story = given()
    story.raised(NAME)
    history = History(story.snapshot.conditions, {}, 60_000_000)
    process = ProcessSettings.model_validate({"name": "agent", "start": ["agent"]})
    drafts, _ = conclude_gauges(usage_gauges(process, {"memory": 3 * GIB}), (USAGE,), history, story.now)
    assert [(draft.payload.kind, draft.subject) for draft in drafts] == [("condition-cleared", NAME)]


def test_cores_have_a_bound_of_their_own() -> None:
    process = ProcessSettings.model_validate({"name": "a", "start": ["a"], "cpu_max": 1.5, "for": "10s"})
    (gauge,) = usage_gauges(process, {"cpu": 1.75})
    assert (gauge.name, gauge.words) == ("usage:a:cpu", "a uses 1.75 cores (allowed: 1.5)")
    assert gauge.is_over(gauge.bound.raise_)
    (gauge,) = usage_gauges(process, {"cpu": 1.4})
    assert gauge.words == "a uses 1.40 cores (allowed: 1.5; after it was more: less than 1.35)"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"memory_max": "0"}, "memory_max is no bound"),
        ({"memory_max": "unlimited"}, "memory_max is no bound"),
        ({"memory_max": "2 GB"}, "is no size; write a number, or a size as '2G'"),
        ({"cpu_max": -1}, "greater than or equal to 0"),
        ({"then": "restart", "memory_max": ""}, "then is about memory_max and cpu_max, and there is none"),
        ({"for": "1m", "memory_max": "", "then": "tell"}, "for is about memory_max and cpu_max"),
        ({"then": "kill"}, "'tell' or 'restart'"),
    ],
)
def test_wrong_bounds_are_refused_with_what_would_work(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words) as refused:
        ProcessSettings.model_validate({**AGENT, **more})
    assert "or 'unlimited'" not in str(refused.value)  # which is refused as well


@pytest.mark.parametrize("then", ["restart", "tell"])
def test_a_daemon_looks_before_it_answers_what_an_earlier_one_saw(then: str) -> None:
    story = a_story(then=then).sample(PROCESS_USAGE)
    story.after("10s").event(DaemonStarted(pid=2, version="1"))
    story.after("1s").tick()
    story.expect_nothing()
    story.expect_note("nobody has looked since the daemon began")
    story.after("1s").sample(PROCESS_USAGE).tick()
    assert story.emitted
