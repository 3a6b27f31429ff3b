"""`llm_watchdog`: evidence, intent, root cause, budget, verify and escalate, restarts in between."""

from itertools import pairwise
from typing import Any

import pytest

from pulse_core.composition import SURVIVAL
from pulse_core.llm.rule import describe_endpoint as story_of
from pulse_core.llm.rule import llm_watchdog, seen
from pulse_core.llm.settings import LlmSettings
from pulse_core.model.kinds import (
    DaemonStarted,
    Effect,
    Paused,
    ProcessDied,
    ProcessStartRequested,
    ProcessStopRequested,
    ProcessUp,
)
from pulse_core.projections.conditions import Condition, Measure
from pulse_core.rules.survival.restart_plan import RestartPlan, restarts_for, since_last_restart
from pulse_core.silences.events import SilenceAdded
from pulse_core.testing import Story, given

MINUTE = 60_000_000
URL = "http://127.0.0.1:4000/health"
FAR = "https://llm.one.example/health"
NAME, KEY, TOPIC = f"llm:{URL}", "restart-process:litellm", f"notify:llm:{URL}"
LITELLM = {
    "name": "litellm",
    "start": ["litellm"],
    "restart": {"max": 3, "within": "1h", "backoff": "5m", "backoff_max": "10m", "healthy_after": "20m"},
}
ENDPOINT = {"url": URL, "restart": "litellm", "grace": "1m"}


def up(story: Story, pid: int = 7, name: str = "litellm") -> None:
    story.event(ProcessUp(pid=pid, started=pid, evidence="there"), name)


def ill(story: Story, url: str = URL, *, failures: int = 3, proven: bool = True) -> Story:
    """A sample with that many failures in a row."""
    return story.sample(
        "llm", **{url: {"ok": False, "failures": failures, **({"proven": True} if proven else {})}}
    )


def a_story(**settings: Any) -> Story:
    """An endpoint of a process that has been up for long, proven to be down a moment ago."""
    chosen = {"llm": [ENDPOINT], "process": [LITELLM], **settings}
    story = given(llm_watchdog, settings=chosen)
    up(story)
    story.after("1h")
    for llm in chosen["llm"]:
        ill(story, llm["url"]).raised(f"llm:{llm['url']}", "down", "no answer; 3 questions in a row failed")
    return story


def tried(story: Story, *, pid: int = 8, healthy: bool = False) -> None:
    """The restart that was just wished is done: the old process dies, and a new one is there."""
    story.event(ProcessDied(pid=7, evidence="was killed", healthy=healthy), "litellm")
    story.after("1s").acked(KEY, pid=pid, started=pid)
    up(story, pid)


def proven_again(story: Story) -> None:
    """The grace is over, and enough questions after it had no answer either."""
    story.after("3m")
    ill(story)


# Restart


def test_what_is_proven_down_is_restarted_and_nobody_is_woken() -> None:
    story = a_story()
    story.tick()
    effect = story.expect("restart-process", key=KEY, process="litellm", for_condition=NAME)
    assert effect.survival
    assert "if_dead" not in effect.params
    assert effect.samples
    assert "no answer; 3 questions in a row failed" in effect.reason
    story.expect_nothing("notify")


def test_an_endpoint_that_is_well_is_left_alone() -> None:
    story = given(llm_watchdog, settings={"llm": [ENDPOINT], "process": [LITELLM]})
    up(story)
    ill(story, failures=1, proven=False)
    story.tick()
    story.expect_nothing()


def test_without_a_process_to_restart_a_person_is_told_at_once() -> None:
    story = a_story(llm=[{"url": URL}])
    story.tick()
    notice = story.expect("notify", key=TOPIC, title=f"{URL} gives no good answer")
    assert "no answer; 3 questions in a row failed" in str(notice.params["text"])
    assert "no process is named" in str(notice.params["text"])
    story.expect_nothing("restart-process")
    story.acked(TOPIC)
    assert story.ticks(every="1m", times=30) == []


@pytest.mark.parametrize("state", ["refuses", "tls", "unreachable"])
def test_what_a_restart_does_not_mend_is_told_and_not_restarted(state: str) -> None:
    story = a_story()
    story.raised(NAME, state)
    story.tick()
    story.expect_nothing("restart-process")
    story.expect("notify", key=TOPIC)


# Evidence


FEW = " of 3 questions in a row, which it takes, failed since it last answered or litellm was started"


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ({}, "nobody has asked since the daemon began"),
        ({URL: {"ok": True}}, "it answered when it was asked last"),
        ({URL: {"ok": False, "failures": 2}}, f"2{FEW}"),
    ],
)
def test_nothing_is_killed_without_proof_in_the_newest_sample(sample: dict[str, Any], words: str) -> None:
    story = a_story().sample("llm", **sample)
    story.tick()
    story.expect_nothing()
    story.expect_note(f"held back: {words}")


def test_proof_of_before_a_restart_is_none_after_it() -> None:
    story = a_story()
    story.tick()
    tried(story)
    story.after("70s").tick()
    story.expect_nothing()
    story.expect_note(f"held back: 0{FEW}")


def test_proof_from_within_the_grace_is_none() -> None:
    story = a_story()
    story.tick()
    tried(story)
    ill(story.after("50s"))
    story.after("20s").tick()
    story.expect_nothing()


def test_proof_from_the_very_end_of_the_grace_is_one() -> None:
    story = a_story()
    story.tick()
    tried(story)
    ill(story.after("1m")).tick()
    story.expect_note("it was restarted lately")


# Grace


def test_a_process_has_its_grace_after_a_restart() -> None:
    story = a_story()
    story.tick()
    tried(story)
    story.after("30s").tick()
    story.expect_nothing()
    story.expect_note("litellm was started, and has 30 s left to answer")


def test_a_process_that_was_found_up_a_moment_ago_has_its_grace_too() -> None:
    story = a_story()
    story.event(ProcessDied(pid=7, evidence="gone", healthy=True), "litellm")
    up(story, 8)
    ill(story).tick()
    story.expect_nothing()
    story.expect_note("litellm was started")


# Intent, and whose business it is


def test_a_process_that_is_down_is_the_process_watchdogs() -> None:
    story = a_story()
    story.event(ProcessDied(pid=7, evidence="gone", healthy=True), "litellm")
    story.tick()
    story.expect_nothing()
    story.expect_note("litellm is not up")


def test_a_commanded_stop_is_not_fought() -> None:
    story = a_story()
    story.event(ProcessStopRequested(expires_us=10 * MINUTE), "litellm", actor="anna")
    story.tick()
    story.expect_nothing()
    story.expect_note("litellm is stopped by anna")
    ill(story.after("11m")).tick()
    story.expect("restart-process", key=KEY)


def test_a_start_by_hand_ends_the_intent() -> None:
    story = a_story()
    story.event(ProcessStopRequested(expires_us=10 * MINUTE), "litellm", actor="anna")
    story.event(ProcessStartRequested(), "litellm", actor="anna")
    story.tick()
    story.expect("restart-process", key=KEY)


def test_a_restart_that_somebody_else_wished_is_waited_for() -> None:
    story = a_story()
    story.event(Effect(action="restart-process", key=KEY, params={"process": "litellm"}), KEY)
    story.tick()
    story.expect_nothing()
    story.expect_note("the restart of litellm is under way")


@pytest.mark.parametrize(
    ("payload", "subject"), [(SilenceAdded(expires_us=10 * MINUTE), "restart-process:lite*"), (Paused(), "")]
)
def test_silence_and_pause_hold_it_back(payload: Any, subject: str) -> None:
    story = a_story()
    story.rules = SURVIVAL
    story.event(payload, subject, actor="anna")
    story.tick()
    story.expect_nothing()


# Root cause


def test_a_dead_dependency_holds_the_restart_back() -> None:
    database = {"name": "database", "start": ["db"]}
    story = a_story(process=[database, {**LITELLM, "depends_on": ["database"]}])
    story.tick()
    story.expect_nothing()
    story.expect_note("litellm depends on database")
    up(story, 9, "database")
    story.tick()
    story.expect("restart-process", key=KEY)


FAR_AWAY = {
    "llm": [{**ENDPOINT, "url": FAR}],
    "network": {"dns": ["one.example"], "http": ["http://192.0.2.1/"]},
}
BY_ADDRESS = {**FAR_AWAY, "llm": [{**ENDPOINT, "url": "http://192.0.2.7:4000/"}]}
AT_HOME = {**FAR_AWAY, "llm": [ENDPOINT]}
BY_NAME_AT_HOME = {**FAR_AWAY, "llm": [{**ENDPOINT, "url": "http://localhost:4000/"}]}


@pytest.mark.parametrize(
    ("settings", "state", "holds"),
    [
        (FAR_AWAY, "down", True),
        (FAR_AWAY, "dns-only", True),
        (FAR_AWAY, "http-only", True),
        (FAR_AWAY, "slow", False),
        (FAR_AWAY, "degraded", False),
        (BY_ADDRESS, "down", True),
        (BY_ADDRESS, "dns-only", False),
        (AT_HOME, "down", False),
        (BY_NAME_AT_HOME, "down", False),
    ],
)
def test_an_outage_of_the_network_explains_what_is_beyond_it(
    settings: dict[str, Any], state: str, holds: bool
) -> None:
    story = a_story(**settings).sample("network", state=state)
    story.raised("network", state)
    story.tick()
    if holds:
        story.expect_nothing()
        story.expect_note(f"the network is {state}")
    else:
        story.expect("restart-process", key=KEY)


def test_nobody_is_told_of_what_the_outage_explains() -> None:
    story = a_story(**{**FAR_AWAY, "llm": [{"url": FAR}]}).sample("network", state="down")
    story.raised("network", "down")
    story.tick()
    story.expect_nothing()


def test_a_network_that_looks_bad_is_looked_at_again_first() -> None:
    story = a_story(**FAR_AWAY).sample("network", state="down")
    story.tick()
    story.expect_nothing()
    story.expect_note("it looks bad")
    ill(story.after("30s"), FAR).sample("network", state="").tick()
    story.expect("restart-process", key=KEY)


def test_a_network_that_was_last_well_before_the_endpoint_failed_is_looked_at_first() -> None:
    story = given(llm_watchdog, settings={"process": [LITELLM], **FAR_AWAY})
    up(story)
    story.after("1h").sample("network", state="")
    ill(story.after("20s"), FAR).raised(f"llm:{FAR}", "down")
    story.after("1s").tick()
    story.expect_nothing()
    story.expect_note("it is looked at first")
    story.after("9s").sample("network", state="").tick()
    story.expect("restart-process", key=KEY)


def test_a_network_that_nobody_looks_at_any_more_excuses_nothing() -> None:
    story = given(llm_watchdog, settings={"process": [LITELLM], **FAR_AWAY})
    up(story)
    story.after("1h").sample("network", state="down")
    ill(story.after("10m"), FAR).raised(f"llm:{FAR}", "down")
    story.tick()
    story.expect("restart-process", key=KEY)


# Verify, escalate


def test_a_restart_that_helps_wakes_nobody() -> None:
    story = a_story()
    story.tick()
    tried(story)
    story.after("2m").cleared(NAME)
    assert story.ticks(every="1m", times=5) == []


def test_a_restart_that_did_not_help_is_told_with_what_was_tried() -> None:
    story = a_story()
    story.tick()
    tried(story)
    proven_again(story)
    story.tick()
    notice = story.expect("notify", key=TOPIC)
    assert "litellm was restarted once" in str(notice.params["text"])
    assert "tried again in" in str(notice.params["text"])
    assert story.verdict.tick_ms == 120_001
    story.expect_nothing("restart-process")
    story.acked(TOPIC)
    ill(story.after("3m")).tick()
    story.expect("restart-process", key=KEY)
    story.expect_nothing("notify")


def test_what_stands_is_told_by_its_newest_answer_which_may_fail_otherwise_than_the_first_ones() -> None:
    story = a_story()
    story.tick()
    tried(story)

    def told() -> str:
        condition = story.snapshot.conditions[NAME]
        assert condition
        return seen(NAME, condition, story.snapshot)

    answer = {"ok": False, "detail": "it answered 500"}
    story.sample("llm", **{URL: {**answer, "excused": "litellm was started"}})
    assert told() == "it answered 500; that counts for nothing: litellm was started"
    story.after("3m").sample("llm", **{URL: {**answer, "failures": 14, "proven": True}})
    assert told() == "it answered 500; 14 questions in a row failed"
    story.tick()
    assert story.expect("notify", key=TOPIC).params["text"].startswith(f"{told()}, first seen ")
    story.acked(TOPIC)
    story.after("3m").sample("llm", **{URL: {**answer, "failures": 20, "proven": True}}).tick()
    reason = f"{URL} gives no good answer: it answered 500; 20 questions in a row failed"
    assert story.expect("restart-process", key=KEY).reason == reason
    story.sample("llm", **{URL: {"ok": True}})
    assert told() == ""


def test_when_the_next_restart_is_due_at_once_it_is_told_all_the_same() -> None:
    story = a_story()
    story.tick()
    tried(story)
    ill(story.after("11m")).tick()
    story.expect("restart-process", key=KEY)
    text = str(story.expect("notify", key=TOPIC).params["text"])
    assert text == (
        "no answer; 3 questions in a row failed, first seen 11 min ago;"
        " litellm was restarted once, last 11 min ago; restarting litellm"
    )


def test_a_restart_of_which_nothing_is_known_yet_has_not_failed() -> None:
    told = a_story()
    condition = told.snapshot.conditions[NAME]
    assert condition is not None
    open_ = condition._replace(measures=(Measure("restart-process", told.now),) * 2)
    words = story_of(LlmSettings.model_validate(ENDPOINT), open_, RestartPlan("no more"), told.snapshot)
    assert words.endswith("litellm was restarted 2 times, last 0 s ago; no more")


def test_when_it_was_last_settled_is_forgotten_the_last_wish_counts() -> None:
    story = a_story()
    wished = story.now
    story.after("3m")
    assert since_last_restart("litellm", [wished.plus(-MINUTE), wished], story.snapshot) == 3 * MINUTE


def test_what_others_tell_is_not_called_off() -> None:
    story = a_story()
    notice = Effect(action="notify", key="notify:resource:disk:/", params={"title": "x"}, survival=True)
    story.event(notice, notice.key)
    story.acked(notice.key)
    story.cleared(NAME)
    story.tick()
    story.expect_nothing()


def test_without_any_sample_nothing_is_proven() -> None:
    story = a_story().restart()
    story.tick()
    story.expect_nothing()
    story.expect_note(f"held back: 0{FEW}")


def test_a_restart_that_failed_is_told_with_its_error() -> None:
    story = a_story()
    story.tick()
    story.failed(KEY, "no such program")
    ill(story.after("61s"), proven=False).tick()
    notice = story.expect("notify", key=TOPIC)
    assert "; a restart of litellm was tried once, last 61 s ago, which failed: no such program" in str(
        notice.params["text"]
    )


def test_when_it_answers_again_people_who_were_told_are_told() -> None:
    story = a_story()
    story.tick()
    tried(story)
    proven_again(story)
    story.tick()
    story.acked(TOPIC)
    story.cleared(NAME)
    story.tick()
    notice = story.expect("notify", key=TOPIC, over=True, title=f"resolved: {URL}")
    assert notice.params["text"] == "it answers; tried before: 1 restart"


def test_an_endpoint_that_is_taken_out_of_the_settings_is_called_off() -> None:
    story = a_story(llm=[{"url": URL}])
    story.tick()
    story.acked(TOPIC)
    story.settings = story.settings.model_copy(update={"llm": ()})
    story.cleared(NAME)
    story.tick()
    story.expect("notify", key=TOPIC, over=True)


# Budget


def restarts_of(story: Story, hours: int) -> list[float]:
    """Minutes at which it was restarted while it never answered, looked at every minute."""
    began, found = story.now, []
    for _ in range(hours * 60):
        story.after("1m")
        ill(story)
        story.tick()
        for effect in story.emitted:
            if effect.action == "restart-process":
                found.append(story.now.since(began) / MINUTE)
                tried(story, healthy=True)  # as a process, it was well all the time
            else:
                story.acked(effect.key)
    return found


def test_backoff_budget_and_half_open_tries_for_ever() -> None:
    times = restarts_of(a_story(), 60)
    gaps = [round(late - early) for early, late in pairwise(times)]
    assert times[0] == 1
    assert gaps[:6] == [5, 10, 10, 20, 40, 60]  # 3 within the hour, then half-open: growing, an hour at most
    assert set(gaps[6:]) == {60}
    assert len(times) > 55  # of very many attempts not each is known: they are no more frequent for that


def test_a_healthy_stretch_gives_a_new_budget() -> None:
    story = a_story()
    assert len(restarts_of(story, 1)) >= 4
    story.cleared(NAME)
    ill(story.after("30m")).raised(NAME, "down")
    story.tick()
    story.expect("restart-process", key=KEY)


def test_a_short_recovery_gives_none() -> None:
    story = a_story()
    restarts_of(story, 1)
    story.cleared(NAME)
    story.tick()
    story.acked(TOPIC)
    ill(story.after("2m")).raised(NAME, "down")
    story.tick()
    story.expect_nothing("restart-process")
    story.expect_note("its budget is spent")
    story.expect("notify", key=TOPIC, title=f"{URL} gives no good answer")


def test_a_short_recovery_gives_none_however_long_it_is_ago() -> None:
    story = a_story()
    restarts_of(story, 1)
    story.cleared(NAME)
    story.after("2m").raised(NAME, "down")
    ill(story.after("10m")).tick()
    story.expect_nothing("restart-process")
    story.expect_note("its budget is spent")


@pytest.mark.parametrize(("well", "due"), [("20m", True), ("1199s", False)])
def test_a_new_budget_takes_as_long_as_is_set(well: str, due: bool) -> None:
    story = a_story()
    restarts_of(story, 1)
    story.cleared(NAME)
    ill(story.after(well)).raised(NAME, "down")
    story.tick()
    assert (KEY in [effect.key for effect in story.emitted]) is due


def test_a_restart_is_not_a_microsecond_early() -> None:
    story = a_story()
    story.tick()
    tried(story)  # which takes a second, from whose end its pause is counted
    story.now = story.now.plus(5 * MINUTE - 1)
    ill(story).tick()
    story.expect_nothing("restart-process")
    story.now = story.now.plus(1)
    story.tick()
    story.expect("restart-process")


@pytest.mark.parametrize(
    ("minutes", "within", "charged"),
    [
        ([0, 120], "1h", [0, 120]),
        ([0, 120.001], "1h", [120.001]),
        ([0, 200, 201], "1h", [200, 201]),
        ([0, 1, 200, 201], "1h", [200, 201]),
        ([0, 200], "4h", [0, 200]),
        ([0, 241], "4h", [241]),
        ([7], "1h", [7]),
        ([], "1h", []),
    ],
)
def test_what_was_tried_long_before_anything_else_is_not_charged(
    minutes: list[float], within: str, charged: list[float]
) -> None:
    story = given(settings={"llm": [ENDPOINT], "process": [{**LITELLM, "restart": {"within": within}}]})
    moments = {minute: story.now.plus(round(minute * MINUTE)) for minute in minutes}
    tried_then = tuple(Measure("restart-process", then, then) for then in moments.values())
    others = (Measure("collect", story.now.plus(-MINUTE), story.now),)
    condition = Condition(story.now, "down", story.now, "no answer", measures=(*others, *tried_then))
    story.after("300m")
    found = restarts_for(story.settings.process[0], NAME, condition, story.snapshot)
    assert found == [moments[minute] for minute in charged]


def test_what_was_tried_long_ago_is_not_charged_for_a_short_recovery_today() -> None:
    story = a_story()
    restarts_of(story, 1)
    story.cleared(NAME)
    ill(story.after("720h")).raised(NAME, "down")
    story.tick()
    tried(story, healthy=True)
    story.after("1m").cleared(NAME)
    ill(story.after("3m")).raised(NAME, "down")
    story.tick()
    story.expect_note("it was restarted lately; litellm is tried again in 1 min")
    ill(story.after("2m")).tick()
    story.expect("restart-process", key=KEY)


def test_no_budget_means_no_restart_but_a_word() -> None:
    story = a_story(process=[{**LITELLM, "restart": {"max": 0}}])
    story.tick()
    story.expect_nothing("restart-process")
    story.expect("notify", key=TOPIC)
    story.expect_note("max = 0")


# Restarts of Pulse in between


def test_a_restart_of_pulse_forgets_neither_attempts_nor_what_was_told() -> None:
    story = a_story()
    story.tick()
    tried(story)
    proven_again(story)
    story.tick()
    story.acked(TOPIC)
    story.restart()
    ill(story).tick()
    story.expect_nothing()
    story.expect_note("it was restarted lately")
    ill(story.after("3m")).tick()
    story.expect("restart-process", key=KEY)


def test_a_restart_of_pulse_under_way_is_not_repeated() -> None:
    story = a_story()
    story.tick()
    story.begun(KEY)
    ill(story.restart()).tick()
    story.expect_nothing()
    story.expect_note("under way")


def test_a_daemon_asks_before_it_answers_what_an_earlier_one_was_told() -> None:
    story = a_story()
    story.after("10s").event(DaemonStarted(pid=2, version="1"))
    story.after("1s").tick()
    story.expect_nothing()
    story.expect_note("nobody has asked since the daemon began")
    ill(story.after("1s")).tick()
    story.expect("restart-process", key=KEY)
