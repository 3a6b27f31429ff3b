"""`check_watchdog`: a notice, a restart, a command; verify and escalate; what holds it back."""

from typing import Any

import pytest

from pulse_core.checks.rule import check_watchdog
from pulse_core.checks.status import lines as status_lines
from pulse_core.checks.status import report, seen
from pulse_core.composition import SURVIVAL, is_reserved
from pulse_core.model.kinds import (
    DaemonStarted,
    LogMatched,
    Paused,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStopRequested,
    ProcessUp,
    SafeModeEntered,
)
from pulse_core.rules.survival.error_escalate import error_escalate
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.silences.events import SilenceAdded
from pulse_core.testing import Story, given

MINUTE = 60_000_000
NAME, TOPIC = "check:it", "notify:check:it"
RESTART, COMMAND = "restart-process:gateway", "run-command:check:it"
GATEWAY: dict[str, Any] = {
    "name": "gateway",
    "start": ["gateway"],
    "restart": {"max": 3, "within": "1h", "backoff": "5m", "backoff_max": "10m", "healthy_after": "20m"},
}
RUNS = {"then": "run-command", "run": ["/bin/mend", "it"], "tries": 2, "pause": "5m"}
RESTARTS = {"then": "restart gateway", "grace": "1m"}


def bad(story: Story, *, proven: bool = True) -> Story:
    """A sample of a look that found it bad."""
    return story.sample(
        "checks", it={"ok": False, "history": [1, [], None], **({"proven": "1 look"} if proven else {})}
    )


def a_story(*rules: Any, **check: Any) -> Story:
    """A check that has just failed, beside a process that has been up for an hour."""
    one = {"name": "it", "file": "/x", **check}
    story = given(*(rules or (check_watchdog,)), settings={"process": [GATEWAY], "check": [one]})
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    story.after("1h")
    bad(story).raised(NAME, "failing", "/x is not there")
    return story


def restarted(story: Story, pid: int = 8) -> None:
    """The restart that was just wished is done."""
    story.event(ProcessDied(pid=7, evidence="was killed", healthy=False, intended=True), "gateway")
    story.after("1s").acked(RESTART, pid=pid, started=pid)
    story.event(ProcessUp(pid=pid, started=pid, evidence="there"), "gateway")


# Tell


def test_what_is_taken_out_of_the_settings_is_told_as_that() -> None:
    story = a_story()
    story.tick()
    story.acked(TOPIC)
    story.settings = story.settings.model_copy(update={"check": ()})
    story.cleared(NAME, gone := "it was taken out", unwatched=True)
    story.tick()
    title = "no longer watched: check it"
    story.expect("notify", key=TOPIC, over=True, unwatched=True, title=title, text=gone)


def test_a_person_is_told_once_and_when_it_is_over() -> None:
    story = a_story()
    story.tick()
    notice = story.expect("notify", key=TOPIC, title="check it fails", text="/x is not there")
    assert notice.samples
    assert notice.params["severity"] == "warning"
    story.acked(TOPIC)
    assert story.ticks(every="1m", times=30) == []
    story.cleared(NAME)
    story.tick()
    story.expect("notify", key=TOPIC, title="resolved: check it", over=True)
    assert story.expect("notify").params["text"] == "it is well"


def test_its_notices_are_as_severe_as_it_says() -> None:
    story = a_story(severity="critical")
    story.tick()
    story.acked(story.expect("notify", severity="critical").key)
    story.cleared(NAME)
    story.tick()
    story.expect("notify", over=True, severity="critical")


def test_a_reminder_says_how_long_it_lasts() -> None:
    story = a_story()
    story.tick()
    story.acked(TOPIC)
    story.after("25h").tick()
    text = "/x is not there, raised 25 h ago; first seen 25 h ago"
    story.expect("notify", title="still: check it fails", text=text)
    story.acked(TOPIC)
    story.after("25h").sample("checks", it={"ok": False, "detail": "/x was changed 2.1 days ago"}).tick()
    text = "/x was changed 2.1 days ago; first seen 2.1 days ago"
    story.expect("notify", title="still: check it fails", text=text)


def test_a_reminder_says_how_old_its_newest_look_is_where_another_one_is_overdue() -> None:
    story = a_story()
    story.tick()
    story.acked(TOPIC)
    story.after("25h").sample("checks", it={"ok": False, "detail": "/x was changed 5 s ago"})
    story.after("59s").tick()  # as if all had stood still
    text = "/x was changed 5 s ago, seen 59 s ago; first seen 25 h ago"
    story.expect("notify", title="still: check it fails", text=text)


def test_what_is_well_is_left_alone() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x"}]})
    story.sample("checks", it={"ok": True}).tick()
    story.expect_nothing()


def test_an_outage_of_the_network_explains_a_page_elsewhere() -> None:
    checks = [{"name": "it", "http": "http://one.example/"}]
    story = given(check_watchdog, settings={"check": checks, "network": {"http": ["http://two.example/"]}})
    story.raised("network", "down")
    bad(story).raised(NAME, "failing", "http://one.example/: it did not answer")
    story.tick()
    story.expect_nothing()
    story.expect_note("held back: the network is down")


def test_what_was_not_looked_at_yet_is_not_told_though_another_was() -> None:
    story = a_story().sample("checks", other={"ok": True})
    story.tick()
    story.expect_nothing()
    story.expect_note("held back: nobody has looked since the daemon began")


# Restart


def test_the_process_is_restarted_and_nobody_is_told() -> None:
    story = a_story(**RESTARTS).sample("network", state="")
    story.tick()
    effect = story.expect("restart-process", key=RESTART, process="gateway", for_condition=NAME)
    assert effect.samples == (1,)
    assert effect.reason == "check it fails: /x is not there"
    story.expect_nothing("notify")
    restarted(story)
    story.after("10s").cleared(NAME)
    assert story.ticks(every="1m", times=3) == []


def test_a_restart_that_did_not_help_is_told_and_repeated_with_the_pauses_of_a_dead_process() -> None:
    story = a_story(**RESTARTS)
    story.tick()
    restarted(story)
    bad(story.after("30s")).tick()
    story.expect_nothing()
    story.expect_note("gateway was started, and has 30 s left to answer")
    bad(story.after("90s")).tick()
    story.expect_nothing("restart-process")
    text = str(story.expect("notify", key=TOPIC, title="check it fails").params["text"])
    assert "gateway was restarted once" in text
    assert "gateway is tried again in" in text
    assert story.verdict.held == ((NAME, "the pause between two restarts of gateway"),)
    story.acked(TOPIC)
    bad(story.after("5m")).tick()
    story.expect("restart-process", key=RESTART)
    restarted(story, 9)
    story.cleared(NAME)
    story.tick()
    story.expect("notify", over=True, text="it is well; tried before: 2 restarts")


def test_what_is_done_later_is_told_by_what_is_seen_then() -> None:
    story = a_story(**RESTARTS, every="2s")
    story.tick()
    restarted(story)
    story.after("90s").sample(
        "checks",
        it={"ok": False, "detail": "/x was changed 100 s ago", "history": [1, [], None], "proven": "1"},
    )
    story.tick()
    text = str(story.expect("notify", key=TOPIC).params["text"])
    assert text.startswith("/x was changed 100 s ago; ")
    story.acked(TOPIC)
    story.after("5m").sample(
        "checks",
        it={"ok": False, "detail": "/x was changed 7 min ago", "history": [1, [], None], "proven": "1"},
    )
    story.tick()
    assert story.expect("restart-process").reason == "check it fails: /x was changed 7 min ago"


def test_a_restart_that_a_person_requested_is_that_and_none_for_the_check() -> None:
    story = a_story(process_watchdog, check_watchdog, **RESTARTS)
    story.event(ProcessRestartRequested(), "gateway", actor="ann")
    story.tick()
    assert (
        story.expect("restart-process", key=RESTART).reason == "gateway is to be restarted: ann asked for it"
    )
    story.expect_note("gateway is restarted since ann asked for it")


def restarts_in_an_hour(healthy_after: int, *names: str) -> int:
    """How often a process, healthy after so many minutes, is restarted if the first of these checks fails all the time, and
    each other one since the first has spent its budget."""
    process = {**GATEWAY, "restart": {**GATEWAY["restart"], "healthy_after": f"{healthy_after}m"}}
    checks = [{"name": name, "file": "/x", **RESTARTS} for name in names]
    looks = {name: {"ok": False, "history": [1, [], None], "proven": "1 look"} for name in names}
    story, number = given(check_watchdog, settings={"process": [process], "check": checks}), 0
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    story.after("1h")
    story.raised(f"check:{names[0]}", "failing", "/x is not there")
    for _ in range(45):
        story.sample("checks", **looks).tick()
        if any(effect.key == RESTART for effect in story.emitted):
            up, number = story.snapshot.process("gateway").up, number + 1
            for name in names[1:] if number == 3 else ():
                story.raised(f"check:{name}", "failing", "/x is not there")
            assert up is not None
            healthy = story.now.since(up) >= healthy_after * MINUTE
            story.event(ProcessDied(pid=7, evidence="ended", healthy=healthy, intended=True), "gateway")
            story.after("1s").acked(RESTART, pid=7, started=number)
            story.event(ProcessUp(pid=7, started=number, evidence="there"), "gateway")
        story.after("90s")
    return number


@pytest.mark.parametrize("healthy_after", [1, 20])
def test_checks_that_restart_the_same_process_share_its_budget(healthy_after: int) -> None:
    alone = restarts_in_an_hour(healthy_after, "it")
    assert restarts_in_an_hour(healthy_after, "it", "other") == alone > 3


def test_proof_of_before_a_restart_is_none_after_it() -> None:
    story = a_story(**RESTARTS)
    story.tick()
    restarted(story)
    story.after("2m").tick()
    story.expect_nothing()
    story.expect_note("another look will say whether that helped")


@pytest.mark.parametrize("proven", [{}, {"it": {"ok": True}}])
def test_nothing_is_restarted_without_proof_in_the_newest_sample(proven: dict[str, Any]) -> None:
    story = a_story(**RESTARTS).sample("checks", **proven)
    story.tick()
    story.expect_nothing()


def test_nothing_is_restarted_that_a_person_wants_down_or_whose_needs_are_down() -> None:
    story = a_story(**RESTARTS)
    story.event(ProcessStopRequested(expires_us=60 * MINUTE), "gateway", actor="ann")
    story.tick()
    story.expect_nothing()
    story.expect_note("gateway is stopped by ann")
    needs = {"name": "database", "start": ["database"]}
    checks = [{"name": "it", "file": "/x", **RESTARTS}]
    processes = [needs, {**GATEWAY, "depends_on": ["database"]}]
    story = given(check_watchdog, settings={"process": processes, "check": checks})
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    bad(story.after("1h")).raised(NAME, "failing")
    story.tick()
    story.expect_nothing()
    story.expect_note("gateway depends on database, which is not up")


@pytest.mark.parametrize("then", [RESTARTS, RUNS])
def test_nothing_is_done_while_nobody_can_look_but_a_person_is_told(then: dict[str, Any]) -> None:
    story = a_story(**then)
    story.raised(NAME, "unknown", "the file system of /x does not answer")
    story.tick()
    story.expect(
        "notify", text="the file system of /x does not answer; nothing is done while nobody can look"
    )
    assert len(story.emitted) == 1


def test_nothing_is_done_without_any_sample() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x", **RUNS}]})
    story.raised(NAME, "failing")
    story.tick()
    story.expect_nothing()


def test_a_restart_that_failed_is_told_at_once() -> None:
    story = a_story(**RESTARTS)
    story.tick()
    story.failed(RESTART, "no such program")
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    story.after("2m").tick()
    text = str(story.expect("notify", key=TOPIC).params["text"])
    assert "; a restart of gateway was tried once, last 2 min ago, which failed: no such program" in text


# Run a command


def test_the_command_is_run_and_nobody_is_told_if_it_helps() -> None:
    story = a_story(**RUNS)
    story.tick()
    effect = story.expect("run-command", key=COMMAND, argv=["/bin/mend", "it"], for_condition=NAME)
    assert effect.survival
    story.expect_nothing("notify")
    story.tick()
    story.expect_note("the command that mends it is running")
    story.after("1s").acked(COMMAND)
    story.tick()
    story.expect_nothing()
    story.expect_note("another look will say whether that helped")
    story.after("5s").cleared(NAME)
    assert story.ticks(every="1m", times=10) == []


def test_that_a_command_helped_in_the_end_is_told_with_what_was_tried() -> None:
    story = a_story(**RUNS)
    story.tick()
    story.after("1s").acked(COMMAND)
    bad(story.after("30s")).tick()
    story.acked(TOPIC)
    story.cleared(NAME)
    story.tick()
    notice = story.expect("notify", over=True, text="it is well; tried before: 1 command")
    assert notice.samples


def test_commands_that_failed_are_not_told_as_what_mended_it() -> None:
    story = a_story(**RUNS)
    for pause in ("5m", "10m"):
        story.tick()
        story.failed(COMMAND, "exit 4")
        bad(story.after(pause))
    story.tick()
    story.acked(TOPIC)
    story.cleared(NAME)
    story.tick()
    story.expect("notify", over=True, text="it is well, though 2 commands failed")


def test_of_commands_that_were_tried_before_it_is_told_how_many_failed() -> None:
    story = a_story(**RUNS)
    story.tick()
    story.failed(COMMAND, "exit 4")
    bad(story.after("5m"))
    story.tick()
    story.acked(TOPIC)
    story.acked(COMMAND)
    story.cleared(NAME)
    story.tick()
    story.expect("notify", over=True, text="it is well; tried before: 2 commands, of which 1 failed")


def test_a_command_that_does_not_help_is_told_tried_again_later_and_then_no_more() -> None:
    story = a_story(**RUNS)
    story.tick()
    story.after("1s").acked(COMMAND)
    bad(story.after("30s")).tick()
    story.expect_nothing("run-command")
    text = str(story.expect("notify", key=TOPIC).params["text"])
    assert "'/bin/mend' was run once, last 30 s ago; it is run again in" in text
    assert story.verdict.tick_ms == 270_001
    story.acked(TOPIC)
    bad(story.after("5m")).tick()
    story.expect("run-command", key=COMMAND)
    story.expect_note("running '/bin/mend'")
    story.failed(COMMAND, "exit 1")
    bad(story.after("1m")).tick()
    story.expect("notify", key=TOPIC)
    story.acked(TOPIC)
    assert [one.action for one in story.ticks(every="30m", times=4)] == []
    story.expect_note("it is not run again before it is well")
    story.after("24h").tick()
    assert "'/bin/mend' was tried 2 times" in str(story.expect("notify").params["text"])
    assert "which failed: exit 1" in str(story.expect("notify").params["text"])


@pytest.mark.parametrize("worked", [True, False])
def test_that_its_tries_are_used_up_is_told_once(worked: bool) -> None:
    story = a_story(**RUNS)
    for _ in range(2):
        story.tick()
        story.expect("run-command", key=COMMAND)
        story.after("1s").acked(COMMAND) if worked else story.failed(COMMAND, "exit 4")
        bad(story.after("1s")).tick()
        story.acked(TOPIC)
        told = str(story.expect("notify", key=TOPIC).params["text"])
        bad(story.after("6m"))
    assert "; it is not run again before it is well" in told
    assert story.ticks(every="1h", times=3) == []


def test_the_last_notice_of_a_command_that_failed_does_not_promise_another_look() -> None:
    story = a_story(**{**RUNS, "tries": 1})
    story.tick()
    story.failed(COMMAND, "exit 4")
    bad(story.after("1s"), proven=False).tick()
    text = str(story.expect("notify", key=TOPIC).params["text"])
    assert text.endswith("which failed: exit 4; it is not run again before it is well")
    story.acked(TOPIC)
    bad(story.after("1s")).tick()
    story.expect_nothing()


def test_that_restarts_have_spent_the_budget_is_told_once() -> None:
    story, told = a_story(**RESTARTS), []
    for minute in range(60):
        story.tick()
        for effect in story.emitted:
            if effect.action == "notify":
                story.acked(TOPIC)
                told.append(str(effect.params["text"]))
            else:
                restarted(story, pid=8 + minute)
        bad(story.after("1m"))
    assert ["its budget is spent by 3 restarts" in text for text in told] == [False, True]


def test_the_pause_holds_over_episodes_and_the_number_of_tries_does_not() -> None:
    story = a_story(**RUNS)
    for _ in range(4):
        story.tick()
        story.expect("run-command", key=COMMAND)
        story.after("1s").acked(COMMAND)
        story.after("1s").cleared(NAME)
        bad(story.after("30s")).raised(NAME, "failing")
        story.tick()
        story.expect_nothing()
        story.expect_note("it is run again in")
        bad(story.after("5m"))


def test_the_pause_is_as_long_as_the_settings_say() -> None:
    story = a_story(**RUNS)
    story.tick()
    story.acked(COMMAND)
    bad(story.after("299999999us")).tick()
    story.expect_nothing("run-command")
    bad(story.after("1us")).tick()
    story.expect("run-command", key=COMMAND)


def test_a_command_that_is_wished_for_and_not_begun_is_told() -> None:
    story = a_story(**RUNS)
    bad(story.after("20s")).tick()
    story.expect_nothing("notify")
    assert story.verdict.tick_ms == 40_001
    story = a_story(**RUNS)
    bad(story.after("1m")).tick()
    story.expect("run-command")
    assert "; first seen 1 min ago; '/bin/mend' should run, and does not: see upulse config check" in str(
        story.expect("notify", key=TOPIC).params["text"]
    )


def test_nothing_else_can_hold_the_key_of_its_command() -> None:
    assert is_reserved(COMMAND)
    assert not is_reserved("run-command:checkup")


# What holds for all survival rules


def test_a_pause_and_a_silence_hold_it_back() -> None:
    for payload, subject in ((Paused(), ""), (SilenceAdded(expires_us=60 * MINUTE), "*:check:it")):
        story = a_story(*SURVIVAL, **RUNS)
        story.event(payload, subject, actor="ann")
        story.tick()
        story.expect_nothing()


def test_all_survival_rules_together_do_the_same() -> None:
    story = a_story(*SURVIVAL, **RUNS)
    story.tick()
    story.expect("run-command", key=COMMAND)
    assert len(story.emitted) == 1


# Lines


def lines(story: Story, severity: str = "error", source: str = "/log/app.log") -> Story:
    story.event(LogMatched(severity=severity, lines=("ERROR: it",), count=1), source)
    return story


def a_log_story() -> Story:
    settings = {
        "log": [{"path": "/log/*.log", "keywords": ["ERROR"]}],
        "check": [{"name": "it", "log": "/log/*.log", "lines": 3}, {"name": "other", "file": "/x"}],
    }
    return given(check_watchdog, error_escalate, settings=settings)


def test_lines_that_a_check_counts_are_told_by_it_alone() -> None:
    story = lines(a_log_story())
    story.tick()
    story.expect_nothing()
    story.expect_note("notify:log:/log/app.log is left to a check that counts these lines")


@pytest.mark.parametrize(("severity", "source"), [("critical", "/log/app.log"), ("error", "/other/app.log")])
def test_critical_lines_and_those_of_others_are_told_all_the_same(severity: str, source: str) -> None:
    story = lines(a_log_story(), severity, source)
    story.tick()
    story.expect("notify", key=f"notify:log:{source}")


def test_other_lines_beside_a_critical_one_change_nothing_about_that() -> None:
    story = a_log_story()
    story.event(LogMatched(severity="error", lines=("ERROR: that",), count=1), "/log/app.log")
    lines(story, "critical").tick()
    story.expect("notify", key="notify:log:/log/app.log")


def test_that_lines_are_over_is_told_if_they_were_told() -> None:
    story = lines(a_log_story(), "critical")
    story.tick()
    story.acked("notify:log:/log/app.log")
    lines(story.after("11m")).tick()
    story.expect_nothing()
    story.after("11m").tick()
    story.expect("notify", key="notify:log:/log/app.log", over=True)


def test_a_storm_of_lines_is_told_all_the_same() -> None:
    story = lines(a_log_story())
    story.raised("log:/log/app.log", "storm")
    story.tick()
    story.expect("notify", key="notify:log:/log/app.log")


# Status


def test_the_status_of_a_check_is_that_of_its_last_look_but_in_safe_mode() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x"}]})

    def told() -> tuple[list[str], object, object]:
        found = report(NAME, story.snapshot, lambda rule: story.tick())
        assert found is not None
        return list(status_lines(story.snapshot)), found["state"], found["why"]

    unseen = (["checks    0 of 1 well; unknown: it"], "unknown", "it was not looked at yet")
    assert told() == unseen
    story.sample("checks", it={"ok": False, "detail": "/x is not there"})
    assert told() == (["checks    0 of 1 well; bad: it"], "bad", "/x is not there")
    story.sample("checks", it={"ok": True})
    assert told() == (["checks    1 of 1 well"], "well", "its last look found nothing wrong")
    story.raised(NAME)
    assert told()[0] == ["checks    0 of 1 well; recovering: it"]
    story.event(SafeModeEntered(crashes=3, left_out=("engine", "optional watchers")))
    assert told() == (["checks    not watched in safe mode"], "unknown", "it is not watched in safe mode")
    assert report("check:that", story.snapshot, lambda rule: story.tick()) is None


def test_what_a_look_found_is_said_with_why_it_counts_for_nothing() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x", "evidence": 3}]})

    def told() -> object:
        found = report(NAME, story.snapshot, lambda rule: story.tick())
        return found and found["why"]

    story.sample("checks", it={"ok": False, "detail": "/x is not there", "excused": "web is not up"})
    assert told() == "/x is not there; it counts for nothing: web is not up"


def test_what_stands_is_told_by_its_newest_look_though_that_was_good() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x", "evidence": 3}]})
    story.raised(NAME, "failing", evidence="/x is not there")
    story.tick()
    story.acked(f"notify:{NAME}")

    def told() -> str:
        condition = story.snapshot.conditions[NAME]
        assert condition
        return seen(NAME, condition, story.snapshot)

    story.after("2s").sample("checks", it={"ok": True})
    assert told() == "its last look found nothing wrong (3 in a row end it)"
    story.after("2s").sample("checks", it={"ok": True, "excused": "web is stopped by ada"})
    stopped = "its last look found nothing wrong (that counts for nothing: web is stopped by ada)"
    assert told() == stopped
    story.after("5h").sample("checks", it={"ok": True, "excused": "web is stopped by ada"})
    story.tick()
    assert story.expect("notify", key=f"notify:{NAME}").params["text"].startswith(stopped)


def test_a_look_that_could_not_be_made_is_told_beside_what_stands_and_not_in_its_place() -> None:
    story = given(check_watchdog, settings={"check": [{"name": "it", "file": "/x"}]})
    story.raised(NAME, "failing", evidence="/x is not there")
    story.tick()
    story.acked(f"notify:{NAME}")
    story.after("5h").sample("checks", it={"ok": None, "detail": "the file system of /x does not answer"})
    condition = story.snapshot.conditions[NAME]
    assert condition
    text = "/x is not there, raised 5 h ago; its last look could not be made: the file system of /x does not answer"
    assert seen(NAME, condition, story.snapshot) == text
    story.tick()
    assert story.expect("notify", key=f"notify:{NAME}").params["text"] == f"{text}; first seen 5 h ago"


@pytest.mark.parametrize("what", [RUNS, RESTARTS, {}], ids=["command", "restart", "notice"])
def test_a_daemon_looks_before_it_answers_what_an_earlier_one_saw(what: dict[str, Any]) -> None:
    story = a_story(**what)
    story.after("10s").event(DaemonStarted(pid=2, version="1"))
    story.after("1s").tick()
    story.expect_nothing()
    story.expect_note("nobody has looked since the daemon began")
    bad(story.after("1s")).tick()
    assert story.emitted
