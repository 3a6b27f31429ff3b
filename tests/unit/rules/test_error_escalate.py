"""Lines in logs: who is told, how often, and what explains them away."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from pulse_core.composition import SURVIVAL
from pulse_core.model.kinds import Effect, LogMatched, Paused, ProcessDied, ProcessStopRequested, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.model.names import NETWORK
from pulse_core.projections.logs import QUIET
from pulse_core.rules.onion import compose, rule_name, run_synchronously
from pulse_core.rules.survival.error_escalate import (
    MOST,
    OTHERS,
    Explains,
    error_escalate_with,
    sources,
    writing_process,
)
from pulse_core.rules.survival.kill_switch import kill_switch
from pulse_core.silences.events import SilenceAdded
from pulse_core.silences.rule import silence
from pulse_core.testing import Story, given

error_escalate = next(rule for rule in SURVIVAL if rule_name(rule) == "error_escalate")
APP, KEY = "/var/log/app.log", "notify:log:/var/log/app.log"
GATEWAY = {"process": [{"name": "gateway", "start": ["gateway"]}]}
RESTART = Effect(
    action="restart-process",
    key="restart-process:gateway",
    params={"process": "gateway"},
    tick=1,
    survival=True,
)
OWN = "/root/.upulse/logs/gateway.log"


def story(**settings: Any) -> Story:
    return given(error_escalate, settings=settings)


def say(told: Story, *lines: str, source: str = APP, severity: str = "error", untold: int = 0) -> Story:
    told.event(LogMatched(severity=severity, lines=lines, count=len(lines) + untold), source)
    return told


def tick(told: Story) -> list[str]:
    """The titles of what one tick tells; it arrives at once."""
    told.tick()
    for effect in told.emitted:
        told.acked(effect.key)
    return [str(effect.params["title"]) for effect in told.emitted]


def titles(told: Story, every: str, times: int) -> list[str]:
    return [title for _ in range(times) for title in tick(told.after(every))]


# Telling


def test_the_first_line_is_told_at_once_and_with_its_words() -> None:
    told = say(story(), "ERROR: no disk")
    told.tick()
    effect = told.expect("notify", key=KEY, title=f"errors in {APP}", text="ERROR: no disk")
    assert effect.survival


def test_a_source_whose_name_cannot_be_shown_is_told_of_once() -> None:
    told = say(story(), "ERROR once", source="/logs/z\u202e.log")
    assert titles(told, "1s", 30) == ["errors in /logs/z\u202e.log"]
    assert [one for one in titles(told, "5m", 4) if "resolved" not in one] == []


def test_nothing_is_told_where_nothing_was_said() -> None:
    told = story()
    told.tick()
    told.expect_nothing()


def test_the_same_line_again_is_told_once_however_often_it_comes() -> None:
    told = story()
    heard: list[str] = []
    for second in range(500):
        heard += tick(say(told.after("1s"), f"ERROR: request {second} took {second * 7} ms"))
    assert heard == [f"errors in {APP}"]


def test_another_line_waits_for_its_turn_and_is_told_with_others() -> None:
    told = say(story(), "ERROR: no disk")
    assert tick(told) == [f"errors in {APP}"]
    say(told.after("10s"), "ERROR: no memory")
    say(told.after("10s"), "ERROR: no hope", "ERROR: no disk")
    assert tick(told) == []
    told.expect_note("again in")
    assert titles(told, "30s", 9) == []
    assert tick(told.after("10s")) == [f"errors in {APP}"]
    assert told.emitted[0].params["text"] == "ERROR: no hope\nERROR: no memory"
    assert titles(told, "1m", 5) == []


@pytest.mark.parametrize(("severity", "seconds"), [("warning", 3_600), ("error", 300), ("critical", 60)])
def test_worse_lines_wait_less(severity: str, seconds: int) -> None:
    told = say(story(notify={"remind": "0s"}), "first", severity=severity)
    assert len(tick(told)) == 1
    for second in range(0, seconds, 20):
        say(told.after("20s"), "first" if second else "second", severity=severity)
        heard = tick(told)
        assert bool(heard) == (second + 20 >= seconds), second


def test_other_lines_wait_to_the_microsecond() -> None:
    told = say(story(), "first")
    tick(told)
    say(told.after("1s"), "second")
    told.now = told.now.plus(299 * 1_000_000 - 1)
    assert tick(told) == []
    told.now = told.now.plus(1)
    assert tick(told) == [f"errors in {APP}"]


def test_of_several_that_wait_the_worst_one_says_for_how_long() -> None:
    told = say(story(), "first")
    tick(told)
    say(say(told.after("10s"), "second", severity="warning"), "third", severity="critical")
    assert tick(told.after("49s")) == []
    assert tick(told.after("1s")) == [f"critical lines in {APP}"]


def test_every_source_is_told_of_by_itself() -> None:
    told = say(say(story(), "ERROR one"), "ERROR one", source="/var/log/other.log")
    assert sorted(tick(told)) == ["errors in /var/log/app.log", "errors in /var/log/other.log"]


def test_the_worst_lines_are_shown_first_and_not_too_many() -> None:
    words = ["red", "blue", "green", "white", "black", "brown", "grey"]
    told = say(story(), *(f"warning {word}" for word in words), severity="warning")
    say(told, "CRITICAL", severity="critical")
    assert tick(told) == [f"critical lines in {APP}"]
    shown = str(told.emitted[0].params["text"]).splitlines()
    assert shown[0] == "CRITICAL"
    assert shown[1] == "warning grey"
    assert shown[-1] == "and 3 others"
    tick(say(told := story(), *(f"warning {word}" for word in words[:6]), severity="warning"))
    assert str(told.emitted[0].params["text"]).endswith("\nand 1 other")
    assert len(shown) == 6


def test_as_many_as_are_shown_leave_no_others() -> None:
    told = say(story(), "red", "blue", "green", "white", "black")
    tick(told)
    assert told.emitted[0].params["text"].splitlines() == ["black", "white", "green", "blue", "red"]


def test_one_line_is_called_one() -> None:
    told = say(story(), "ERROR")
    tick(told)
    tick(told.after("10m"))
    assert told.emitted[0].params["text"] == "nothing more of it for 10 min; 1 line in all"


def test_lines_that_are_alike_are_counted() -> None:
    told = say(story(), "took 1 ms", "took 2 ms", "took 3 ms")
    tick(told)
    assert told.emitted[0].params["text"] == "took 1 ms (one of 3 alike)"


def test_what_goes_on_is_told_again_after_a_while() -> None:
    told = story(notify={"remind": "1h"})
    heard: list[str] = []
    for _ in range(150):
        heard += tick(say(told.after("1m"), "ERROR"))
    assert heard == [f"errors in {APP}", f"still: errors in {APP}", f"still: errors in {APP}"]


def test_it_is_said_when_it_is_over() -> None:
    told = say(story(), "ERROR one", untold=3)
    assert tick(told) == [f"errors in {APP}"]
    assert titles(told, "1m", 9) == []
    assert tick(told.after("1m")) == [f"resolved: errors in {APP}"]
    assert told.emitted[0].params["over"] is True
    assert told.emitted[0].params["text"] == "nothing more of it for 10 min; 4 lines in all"
    assert titles(told, "1h", 48) == []
    assert tick(say(told, "ERROR one")) == [f"errors in {APP}"]


def test_the_end_of_a_quiet_time_is_waited_for() -> None:
    told = say(story(), "WARN", severity="warning")
    tick(told)
    assert told.verdict.tick_ms == 600_001
    told.after("599s").tick()
    assert told.verdict.tick_ms == 1_001


def test_it_is_over_to_the_microsecond() -> None:
    told = say(story(), "ERROR")
    tick(told)
    told.now = told.now.plus(QUIET - 1)
    assert tick(told) == []
    assert told.verdict.tick_ms == 1
    assert sources(told.snapshot) == [APP]
    told.now = told.now.plus(1)
    assert tick(told) == [f"resolved: errors in {APP}"]
    assert sources(told.snapshot) == []


def test_only_sources_with_something_to_say_are_looked_at() -> None:
    told = story()
    notice = Effect(action="notify", key="notify:resource:disk:/", params={"title": "x"}, survival=True)
    told.event(notice, notice.key)
    assert sources(told.snapshot) == []
    told.raised("network", "down")
    told.raised("log:/var/log/storm.log", "storm")
    say(told, "ERROR")
    assert sources(told.snapshot) == ["/var/log/storm.log", APP]
    told.now = told.now.plus(QUIET - 1)
    assert sources(told.snapshot) == ["/var/log/storm.log", APP]
    told.now = told.now.plus(1)
    assert sources(told.snapshot) == ["/var/log/storm.log"]


def test_of_more_sources_than_a_tick_has_time_for_the_others_are_told_of_together() -> None:
    told = story()
    for number in range(MOST + 8):
        say(told, "WARN", source=f"/logs/{number}.log", severity="warning")
    say(told, "FATAL", source="/logs/fatal.log", severity="critical")
    first = tick(told)
    others = told.expect("notify", key=f"notify:{OTHERS}", title="lines in 9 more logs")
    assert str(others.params["text"]).endswith("\nand 4 others")
    assert len(first) == MOST + 1
    assert "critical lines in /logs/fatal.log" in first
    assert titles(told, "1s", 30) == []
    told.now = told.now.plus(QUIET)
    assert sum(one.startswith("resolved: ") for one in titles(told, "1s", 2)) == MOST + 1


@pytest.mark.parametrize(
    ("severity", "title"), [("warning", "warnings"), ("error", "errors"), ("critical", "critical lines")]
)
def test_a_title_says_how_bad_the_worst_line_is(severity: str, title: str) -> None:
    told = say(say(story(), "first", severity="warning"), "second", severity=severity)
    assert tick(told) == [f"{title} in {APP}"]


def test_long_lines_are_cut() -> None:
    told = say(story(), "x" * 400)
    tick(told)
    assert told.emitted[0].params["text"] == "x" * 300


def test_what_is_new_after_the_end_is_told_at_once_even_in_the_same_moment() -> None:
    told = say(story(), "WARN one", severity="warning")
    assert tick(told) == [f"warnings in {APP}"]
    assert tick(told.after("10m")) == [f"resolved: warnings in {APP}"]
    assert tick(say(told, "WARN one", severity="warning")) == [f"warnings in {APP}"]


def test_the_turn_of_other_lines_is_not_overslept() -> None:
    told = say(story(), "first")
    tick(told)
    tick(say(told.after("100s"), "second"))
    assert told.verdict.tick_ms <= 1_001  # a fresh error: looked at closely
    told.after("100s").tick()
    assert told.verdict.tick_ms == 100_001


def test_of_what_did_not_come_again_nobody_is_reminded_as_if_it_lasted() -> None:
    told = say(story(notify={"remind": "2m"}), "ERROR once")
    assert tick(told) == [f"errors in {APP}"]
    assert titles(told, every="1m", times=9) == []
    assert tick(told.after("2m")) == [f"resolved: errors in {APP}"]


def test_a_reminder_repeats_what_lasts() -> None:
    told = say(story(notify={"remind": "5m"}), "WARN slow", severity="warning")
    tick(told)
    assert tick(say(told.after("5m"), "WARN slow", severity="warning")) == [f"still: warnings in {APP}"]
    assert told.emitted[0].params["text"] == "WARN slow (one of 2 alike)"


# Looking closer


def test_after_an_error_ticks_come_faster_for_a_minute() -> None:
    told = say(story(), "ERROR")
    for _ in range(59):
        told.tick()
        assert told.verdict.tick_ms == 1_001
        told.after("1s")
    told.after("1s").tick()
    assert told.verdict.tick_ms > 60_000


def test_after_a_warning_they_do_not() -> None:
    told = say(story(), "WARN", severity="warning")
    told.tick()
    assert told.verdict.tick_ms > 60_000


# Storms


def test_a_storm_is_told_at_once_though_the_source_was_just_told_of() -> None:
    told = say(story(), "ERROR one")
    assert tick(told) == [f"errors in {APP}"]
    say(told.after("1s"), untold=5_000)
    told.raised(f"log:{APP}", "storm", "5600 lines within a minute, of which 5000 are only counted")
    assert tick(told.after("1s")) == [f"storm in {APP}"]
    assert "5600 lines within a minute" in str(told.emitted[0].params["text"])
    assert titles(told, "1m", 30) == []
    told.cleared(f"log:{APP}")
    assert tick(told) == [f"resolved: errors in {APP}"]


def test_a_reminder_of_a_storm_says_how_many_lines_came_so_far() -> None:
    told = say(story(notify={"remind": "20s"}), "ERROR one", untold=999)
    told.raised(f"log:{APP}", "storm", "1000 lines within a minute")
    assert tick(told) == [f"storm in {APP}"]
    assert told.emitted[0].params["text"] == "1000 lines within a minute.\nERROR one"
    say(told.after("10s"), untold=1_000)
    assert tick(told.after("10s")) == [f"still: storm in {APP}"]
    assert str(told.emitted[0].params["text"]).startswith(
        "1000 lines within a minute; 2,000 lines in all so far."
    )


def test_in_a_storm_that_was_told_other_lines_wait_for_their_turn() -> None:
    told = say(story(), "ERROR one")
    told.raised(f"log:{APP}", "storm", "5600 lines within a minute")
    assert tick(told) == [f"storm in {APP}"]
    assert tick(say(told.after("10s"), "ERROR two")) == []
    told.expect_note("again in 4.8 min")


def test_a_storm_of_what_journald_suppressed_is_told_without_a_line() -> None:
    told = story()
    told.raised("log:agent.service", "storm", "412 lines within a minute, of which 412 are only counted")
    assert tick(told) == ["storm in agent.service"]
    told.tick()
    assert told.verdict.tick_ms == 86_400_000  # it ends by an event, not by itself
    told.cleared("log:agent.service")
    assert tick(told.after("1m")) == ["resolved: errors in agent.service"]


# Silence and pause


def test_a_silence_holds_it_back_and_its_end_does_not_lose_it() -> None:
    told = given(silence, error_escalate)
    told.event(SilenceAdded(expires_us=300_000_000), "notify:log:*", actor="ada")
    say(told, "ERROR")
    assert tick(told) == []
    assert titles(told, "1m", 4) == []
    assert tick(told.after("61s")) == [f"errors in {APP}"]


def test_nothing_is_told_while_paused() -> None:
    told = given(kill_switch, error_escalate)
    told.event(Paused(why="moving"), actor="ada")
    assert tick(say(told, "ERROR")) == []


# Causes


def up(told: Story, name: str = "gateway") -> Story:
    told.event(ProcessUp(pid=7, started=70, evidence="process 7 is alive"), name)
    return told


def die(told: Story) -> Story:
    told.event(ProcessDied(pid=7, evidence="exited with status 1", healthy=True), "gateway")
    return told


def test_the_last_words_of_a_process_that_is_restarted_page_nobody() -> None:
    told = up(story(**GATEWAY)).after("1h")
    say(told, "Traceback", source=OWN)
    assert tick(told) == []
    told.expect_note("it is looked whether gateway dies of it")
    assert told.verdict.tick_ms <= 1_001
    die(told.after("500ms"))
    assert titles(told, "5s", 3) == []
    told.expect_note("gateway is dead, which is seen to")
    told.event(RESTART, RESTART.key)
    say(told.after("1s"), "ERROR: starting without a cache", source=OWN)
    up(told.after("1s"))
    assert titles(told, "10s", 5) == []
    told.expect_note("gateway died of it, or with it, and is up again")
    assert tick(say(told, "ERROR: something else", source=OWN).after("2s")) == [f"errors in {OWN}"]
    assert told.emitted[0].params["text"] == "ERROR: something else"


def test_a_process_that_lives_on_is_told_of_a_second_later() -> None:
    told = up(story(**GATEWAY)).after("1h")
    say(told, "Traceback", source=OWN)
    assert tick(told) == []
    assert tick(told.after("1s")) == [f"errors in {OWN}"]


def test_whether_it_dies_of_it_is_not_overslept() -> None:
    told = say(up(story(**GATEWAY)).after("1h"), "WARN", source=OWN, severity="warning")
    assert tick(told.after("400ms")) == []
    assert told.verdict.tick_ms == 601


def test_the_journal_of_a_guarded_unit_is_its_process_s() -> None:
    told = story(process=[{"name": "agent", "systemd_unit": "agent.service"}])
    up(told, "agent").after("1h")
    assert tick(say(told, "ERROR", source="agent.service")) == []
    assert tick(say(told, "ERROR", source="other.service")) == ["errors in other.service"]


@pytest.mark.parametrize(
    ("unit", "user", "source", "its"),
    [
        ("agent.service", False, "agent", True),
        ("agent.service", False, "agent.service", True),
        ("agent.socket", False, "agent.socket", True),
        ("agent.service", False, "agent.socket", False),
        ("agent.service", True, "user:agent.service", True),
        ("agent.service", True, "user:agent", True),
        ("agent.service", True, "agent.service", False),
        ("agent.service", False, "/var/log/agent", False),
        (None, False, "None.service", False),
        (None, False, "/home/x/logs/agent.log", True),
        (None, False, "/home/x/agent.log", False),
        (None, False, "/home/x/logs/agent.log.1", False),
    ],
)
def test_a_log_is_known_by_its_unit_or_its_place(
    unit: str | None, user: bool, source: str, its: bool
) -> None:
    how = {"systemd_unit": unit, "systemd_user": user} if unit else {"start": ["a"]}
    processes = story(process=[{"name": "zeta", "start": ["z"]}, {"name": "agent", **how}]).settings.process
    found = writing_process(source, processes)
    assert (found.name if found else None) == ("agent" if its else None)


def test_a_stop_that_has_expired_explains_nothing() -> None:
    told = up(story(**GATEWAY)).after("1h")
    told.event(ProcessStopRequested(expires_us=60_000_000), "gateway", actor="ada")
    say(told.after("1m"), "ERROR", source=OWN)
    assert tick(told.after("1s")) == [f"errors in {OWN}"]


def test_what_was_never_restarted_did_not_come_up_again() -> None:
    told = up(say(story(**GATEWAY), "ERROR", source=OWN).after("1s"))
    assert tick(told.after("1s")) == [f"errors in {OWN}"]


def test_what_is_well_again_explains_no_lines_about_something_else() -> None:
    told = story()
    told.raised("memory")
    told.cleared("memory")
    assert tick(say(told, "ERROR: connection refused")) == [f"errors in {APP}"]


def test_its_last_words_may_bear_the_moment_in_which_it_came_up_again() -> None:
    told = die(up(story(**GATEWAY)).after("1h"))
    told.event(RESTART, RESTART.key)
    up(say(told.after("1s"), "ERROR: lost", source=OWN))
    assert titles(told, "5s", 3) == []
    told.expect_note("gateway died of it, or with it, and is up again")


def test_whether_it_dies_of_it_is_waited_for_to_the_microsecond() -> None:
    told = say(up(story(**GATEWAY)).after("1h"), "ERROR", source=OWN)
    told.now = told.now.plus(999_999)
    assert tick(told) == []
    told.now = told.now.plus(1)
    assert tick(told) == [f"errors in {OWN}"]


@pytest.mark.parametrize(("later", "muted"), [(0, True), (30_000_000, True), (30_000_001, False)])
def test_an_outage_has_an_aftermath(later: int, muted: bool) -> None:
    told = story()
    told.raised("network", "down")
    told.cleared("network")
    told.now = told.now.plus(later)
    assert bool(tick(say(told, "ERROR: connection refused"))) is not muted


@pytest.mark.parametrize("first", ["network", "disk:/", "memory"])
def test_of_two_causes_the_one_that_is_wider_is_named(first: str) -> None:
    told = story()
    for condition in ("llm:http://127.0.0.1:4000/", "memory", "disk:/", "network"):
        told.raised(condition, "down" if condition == "network" else "")
        if condition == first:
            break
    tick(say(told, "litellm: cannot allocate memory, no space left, timeout"))
    told.expect_note(f"explained by {first}")


def test_the_lines_of_what_is_stopped_on_purpose_page_nobody() -> None:
    told = up(story(**GATEWAY)).after("1h")
    told.event(ProcessStopRequested(expires_us=3_600_000_000), "gateway", actor="ada")
    say(told, "ERROR: connection closed", source=OWN)
    assert titles(told, "5s", 5) == []
    told.expect_note("gateway is stopped on purpose")


@pytest.mark.parametrize(
    ("condition", "state", "line", "muted"),
    [
        ("network", "down", "ERROR: connection refused", True),
        ("network", "dns-only", "could not resolve host", True),
        ("network", "slow", "ERROR: request timed out", False),
        ("network", "degraded", "ERROR: request timed out", False),
        ("network", "down", "ERROR: index out of range", False),
        ("disk:/", "", "OSError: [Errno 28] No space left on device", True),
        ("disk:/", "", "ERROR: connection refused", False),
        ("inodes:/", "", "No space left on device", True),
        ("memory", "", "MemoryError: cannot allocate memory", True),
        ("swap", "", "MemoryError: cannot allocate memory", True),
        ("llm:http://127.0.0.1:4000/", "down", "litellm.exceptions.ServiceUnavailableError", True),
        ("llm:http://127.0.0.1:4000/", "down", "ERROR: index out of range", False),
    ],
)
def test_what_is_wrong_at_large_explains_lines_about_it(
    condition: str, state: str, line: str, muted: bool
) -> None:
    told = story()
    told.raised(condition, state)
    assert bool(tick(say(told.after("1m"), line))) is not muted
    if muted:
        told.expect_note(f"explained by {condition}")


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize(("earlier", "muted"), [(60_000_000, True), (60_000_001, False)])
def test_an_outage_explains_no_lines_of_long_before_it(earlier: int, muted: bool, is_over: bool) -> None:
    told = say(story(), "ERROR: connection refused")
    told.now = told.now.plus(earlier)
    told.raised("network", "dns-only")
    if is_over:
        told.cleared("network")
    assert bool(tick(told)) is not muted


def test_what_an_outage_explains_is_not_told_afterwards_but_what_lasts_is() -> None:
    told = story()
    told.raised("network", "down")
    say(told.after("1m"), "ERROR: connection refused")
    assert tick(told) == []
    told.cleared("network")
    say(told.after("5s"), "ERROR: connection refused")
    assert titles(told, "10s", 6) == []
    told.expect_note("explained by network, which was wrong until")
    assert tick(say(told, "ERROR: connection refused")) == [f"errors in {APP}"]


class CountedPattern:
    """A pattern that counts how often it is searched for, which takes long in many long lines."""

    def __init__(self) -> None:
        self.searches = 0

    def search(self, line: str) -> None:
        self.searches += 1


def test_a_line_is_searched_once_and_only_where_a_condition_may_explain_it() -> None:
    network, disks = CountedPattern(), CountedPattern()
    told = given(error_escalate_with(cast(Explains, (((NETWORK,), network), (("disk:",), disks)))))
    told.raised("log:/var/log/other.log", "storm")
    told.raised("network", "down")
    for letter in "abcdefghij":
        say(told, f"ERROR {letter}")
    titles(told, "1s", 20)
    assert (network.searches, disks.searches) == (10, 0)


class CountedMapping(dict[str, Moment]):
    """A mapping that counts how often all of it is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()

    def items(self) -> Any:
        self.looks += 1
        return super().items()


@pytest.mark.parametrize("number", [1, 20])
def test_what_is_known_of_conditions_is_searched_once_for_all_lines(number: int) -> None:
    told = story()
    told.raised("network", "down")
    told.cleared("network")
    for letter in "abcdefghijklmnopqrst"[:number]:
        say(told, f"ERROR {letter}")
    curr = told.snapshot
    cleared = CountedMapping(curr.conditions.cleared)
    state = replace(curr.state, conditions=replace(curr.conditions, cleared=cleared))
    curr = replace(curr, state=state)
    run_synchronously(compose([error_escalate])(curr, curr))
    assert 0 < cleared.looks < 10


def test_critical_lines_are_told_whatever_explains_them() -> None:
    told = up(story(**GATEWAY)).after("1h")
    told.raised("network", "down")
    assert tick(say(told, "FATAL: connection refused", source=OWN, severity="critical")) == [
        f"critical lines in {OWN}"
    ]


# A restart in between


def test_a_restart_of_pulse_neither_repeats_nor_forgets() -> None:
    told = say(story(), "ERROR: no disk")
    assert tick(told) == [f"errors in {APP}"]
    told.restart()
    assert tick(told) == []
    say(told.after("10s"), "ERROR: no memory")
    assert tick(told.restart()) == []
    assert titles(told.restart(), "290s", 1) == [f"errors in {APP}"]
    told.after("5m").restart()
    assert tick(told) == []
    assert tick(told.after("2m")) == [f"resolved: errors in {APP}"]
    told.reboot()
    assert titles(told, "1h", 10) == []
