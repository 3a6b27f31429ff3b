"""`silence`: what a person wants held back is held back, for as long as that was said, and not longer."""

from datetime import UTC, datetime
from time import process_time
from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from pulse_core.composition import current_holds
from pulse_core.model.glob import glob_matches, usable_pattern
from pulse_core.model.kinds import DaemonStarted, Effect, ProcessDied
from pulse_core.model.payload import Role
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.blast_radius import blast_radius_with
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.silences.events import SilenceAdded, SilenceRemoved
from pulse_core.silences.listing import list_silences
from pulse_core.silences.projection import SILENCES, Silences
from pulse_core.silences.rule import DAY, MOST, next_start, remaining, silence, status_lines
from pulse_core.silences.settings import SilenceSettings
from pulse_core.testing import Story, given

blast_radius = blast_radius_with(current_holds)

HOUR_US = 3_600_000_000
KEYS = ("restart-process:gateway", "restart-process:worker", "notify:flapping:gateway")


async def busy(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Something inside that wishes all of these."""
    return (await inner(prev, curr)).plus(*(Effect(action="note", key=key) for key in KEYS))


def silenced(match: str, hours: int = 2, why: str = "") -> Story:
    story = given(silence, busy)
    story.event(SilenceAdded(expires_us=hours * HOUR_US, why=why), match, actor="ada")
    return story


def emitted(story: Story) -> list[str]:
    story.tick()
    return [effect.key for effect in story.emitted]


@pytest.mark.parametrize(
    ("match", "left"),
    [
        ("restart-process:gateway", [KEYS[1], KEYS[2]]),
        ("restart-process:*", [KEYS[2]]),
        ("*:gateway", [KEYS[1]]),
        ("restart-process:g?teway", [KEYS[1], KEYS[2]]),
        ("notify:*", [KEYS[0], KEYS[1]]),
        ("*", []),
        ("gateway", list(KEYS)),
        ("RESTART-process:gateway", list(KEYS)),
    ],
)
def test_a_silence_holds_back_what_its_pattern_says(match: str, left: list[str]) -> None:
    assert emitted(silenced(match)) == left


def test_it_is_said_which_silence_held_back_what_and_why() -> None:
    story = silenced("restart-process:gateway", why="new disks")
    story.after("30m").tick()
    note = story.expect_note("restart-process:gateway is held back by the silence")
    assert "'restart-process:gateway' of ada (new disks), for another 90 min" in note
    assert story.layers[-1].outcome == "dropped"


def test_what_a_silence_had_held_back_says_so() -> None:
    gateway = {"name": "gateway", "start": ["g"]}
    story = given(silence, process_watchdog, settings={"process": [gateway]})
    story.event(ProcessDied(pid=7, evidence="gone", healthy=True), "gateway")
    story.event(SilenceAdded(expires_us=HOUR_US), "restart-process:*", actor="ada")
    story.tick()
    story.expect_nothing()
    story.after("61m").tick()
    held = "; held back until now: the silence 'restart-process:*' of ada"
    assert story.expect("restart-process").reason == f"gateway is dead: gone{held}"


def test_what_ended_while_no_daemon_ran_is_not_said_to_have_held_back_until_now() -> None:
    gateway = {"name": "gateway", "start": ["g"]}
    story = given(silence, process_watchdog, settings={"process": [gateway]})
    story.event(DaemonStarted(pid=1, version="1"))
    story.event(ProcessDied(pid=7, evidence="gone", healthy=True), "gateway")
    story.event(SilenceAdded(expires_us=HOUR_US), "restart-process:*", actor="ada")
    story.tick()
    story.expect_nothing()
    story.after("9h").event(DaemonStarted(pid=2, version="1"))
    story.tick()
    assert story.expect("restart-process").reason == "gateway is dead: gone"


def test_it_expires_by_itself_and_is_looked_at_when_it_does() -> None:
    story = silenced("*", hours=1)
    assert emitted(story) == []
    assert story.verdict.tick_ms == 3_600_001
    story.after("3599s")
    assert emitted(story) == []
    story.after("1s")
    assert emitted(story) == list(KEYS)


def test_it_can_be_removed_before_its_time() -> None:
    story = given(silence, busy)
    added = story.event(SilenceAdded(expires_us=HOUR_US), "*")
    assert emitted(story) == []
    story.event(SilenceRemoved(), added.id)
    assert emitted(story) == list(KEYS)


@pytest.mark.parametrize(("down", "left"), [("1h", []), ("3h", list(KEYS))])
def test_it_holds_and_expires_across_a_restart(down: str, left: list[str]) -> None:
    story = silenced("*", hours=2)
    story.after(down).restart()
    assert emitted(story) == left


def test_it_holds_across_a_reboot() -> None:
    story = silenced("*", hours=2)
    story.reboot()
    assert emitted(story) == []


@pytest.mark.parametrize("jump", [-10_000, 10_000])
def test_a_jump_of_the_clock_neither_ends_it_nor_makes_it_longer(jump: int) -> None:
    story = silenced("*", hours=2)
    story.now = story.now._replace(at=story.now.at + jump * HOUR_US)
    story.after("119m")
    assert emitted(story) == []
    story.after("1m")
    assert emitted(story) == list(KEYS)


def test_of_several_the_one_that_holds_longest_is_named() -> None:
    story = silenced("restart-process:*", hours=1)
    story.event(SilenceAdded(expires_us=5 * HOUR_US), "restart-process:gateway", actor="bob")
    story.tick()
    assert "of bob" in story.expect_note("restart-process:gateway is")
    assert "of ada" in story.expect_note("restart-process:worker is")
    assert story.verdict.tick_ms == 3_600_001  # when the first of them ends


@pytest.mark.parametrize(("wide", "narrow"), [(1, 5), (5, 1)])
def test_how_a_pattern_is_written_does_not_decide_which_is_named(wide: int, narrow: int) -> None:
    story = silenced("*", hours=wide)
    story.event(SilenceAdded(expires_us=narrow * HOUR_US), "restart-process:gateway", actor="bob")
    story.tick()
    assert "for another 5 h" in story.expect_note("restart-process:gateway is")


def test_the_watchdog_is_held_back_and_acts_when_the_silence_ends() -> None:
    gateway = {"process": [{"name": "gateway", "start": ["g"]}]}
    story = given(silence, process_watchdog, settings=gateway)
    story.event(SilenceAdded(expires_us=HOUR_US), "restart-process:gateway")
    story.event(ProcessDied(pid=1, evidence="gone", healthy=True), "gateway")
    assert not story.ticks(every="10m", times=5)
    story.after("10m").tick()
    story.expect("restart-process", key="restart-process:gateway")


def test_a_silence_on_notices_holds_back_those_of_the_blast_radius_too() -> None:
    story = given(blast_radius, silence, busy, settings={"budget": {"actions_per_minute": 1}})
    story.event(SilenceAdded(expires_us=HOUR_US), "notify:blast-radius*")
    assert emitted(story) == [KEYS[0]]
    story.after("2h").tick()
    assert "notify:blast-radius:engine" in [effect.key for effect in story.emitted]


# Recurring windows


def window(days: tuple[str, ...] = (), at: str = "22:30", lasting: str = "4h") -> SilenceSettings:
    return SilenceSettings.model_validate({"match": "*", "days": days, "at": at, "for": lasting})


def moment(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("when", "minutes"),
    [
        ("2027-01-15T22:29:59", 0),
        ("2027-01-15T22:30:00", 240),
        ("2027-01-15T23:59:00", 151),
        ("2027-01-16T00:00:00", 150),
        ("2027-01-16T02:29:00", 1),
        ("2027-01-16T02:30:00", 0),
    ],
)
def test_a_window_goes_on_after_midnight(when: str, minutes: int) -> None:
    assert remaining(window(), moment(when)) == minutes * 60_000_000


@pytest.mark.parametrize(
    ("day", "days", "holds"),
    [
        ("2027-01-15", ("fri",), True),
        ("2027-01-15", ("sat", "thu"), False),
        ("2027-01-16", ("sat",), True),
        ("2024-02-29", ("thu",), True),
        ("2027-01-15", (), True),
    ],
)
def test_a_window_begins_on_its_days(day: str, days: tuple[str, ...], holds: bool) -> None:
    assert (remaining(window(days), moment(f"{day}T22:31")) > 0) is holds
    assert (remaining(window(days), moment(f"{day}T22:31") + 3 * HOUR_US) > 0) is holds


def test_a_window_of_a_week_holds_for_a_week() -> None:
    week = window(("mon",), "00:00", "7d")
    assert remaining(week, moment("2027-01-18T00:00")) == 7 * DAY
    assert remaining(week, moment("2027-01-24T23:59")) == 60_000_000


@pytest.mark.parametrize(
    ("when", "begins"),
    [
        ("2027-01-15T22:29", "2027-01-15T22:30"),
        ("2027-01-15T22:30", "2027-01-22T22:30"),
        ("2027-01-16T00:00", "2027-01-22T22:30"),
    ],
)
def test_it_is_known_when_a_window_begins_next(when: str, begins: str) -> None:
    assert next_start(window(("fri",)), moment(when)) == moment(begins)


@over(
    at=st.integers(0, 4 * 10**15),
    days=st.sets(st.sampled_from(("mon", "wed", "sun"))),
    minutes=st.integers(1, 7 * 1440),
)
def test_a_window_holds_exactly_between_its_beginnings_and_ends(
    at: int, days: set[str], minutes: int
) -> None:
    one = window(tuple(days), "05:45", f"{minutes}m")
    soon = next_start(one, at)
    assert soon > at
    assert remaining(one, soon) == minutes * 60_000_000
    if left := remaining(one, at):
        assert remaining(one, at + left - 1) > 0
        assert remaining(one, at + left) == 0 or soon <= at + left
    else:
        assert not any(remaining(one, at + (soon - at) * part // 10) for part in range(10))


def test_a_recurring_silence_of_the_settings_holds_back_like_another() -> None:
    windows: list[dict[str, Any]] = [{"match": "restart-*", "at": "22:30", "for": "1h", "why": "backups"}]
    story = given(silence, busy, settings={"silence": windows}, at=moment("2027-01-15T22:00"))
    assert emitted(story) == list(KEYS)
    for key in KEYS:
        story.acked(key)
    story.after("30m")
    assert emitted(story) == [KEYS[2]]
    story.expect_note("the recurring silence 'restart-*' (backups), for another 1 h")
    assert story.verdict.tick_ms == 3_600_001
    story.after("1h")
    assert emitted(story) == [KEYS[0], KEYS[1]]


def test_a_recurring_silence_holds_to_its_last_microsecond() -> None:
    windows = [{"match": "*", "at": "22:30", "for": "1h"}]
    story = given(silence, busy, settings={"silence": windows}, at=moment("2027-01-15T23:30") - 1)
    assert emitted(story) == []
    assert story.verdict.tick_ms == 1
    story.now = story.now.plus(1)
    assert emitted(story) == list(KEYS)


def test_people_alone_may_add_and_remove_silences() -> None:
    assert (SilenceAdded.by, SilenceRemoved.by) == (Role.PERSON, Role.PERSON)


def test_rules_that_know_no_capability_find_silences_in_the_snapshot_by_name() -> None:
    snapshot = silenced("notify:*").snapshot
    assert snapshot.silences is snapshot.of(SILENCES)
    assert [one.match for one in snapshot.silences.of.values()] == ["notify:*"]
    assert given(silence).snapshot.silences.of == {}


def test_a_silence_of_an_old_log_that_nobody_could_match_holds_nothing_back_and_is_told() -> None:
    story = silenced("[!" * 30_000)
    story.event(SilenceAdded(expires_us=10**30), "notify:*", actor="ada")
    assert emitted(story) == [KEYS[0], KEYS[1]]
    assert list(status_lines(story.snapshot)) == [
        "silences  notify:* for another 36500 days",
        f"a silence holds nothing back: it has 60,000 characters, not 1 to 500: {'[!' * 20!r}",
    ]
    assert list_silences(story.snapshot.state, story.snapshot.settings, story.now)["silences"][1]["ends"]


def test_the_status_tells_what_is_silenced() -> None:
    story = silenced("notify:*")
    story.after("30m")
    assert list(status_lines(story.snapshot)) == ["silences  notify:* for another 90 min"]
    story.after("2h")
    assert list(status_lines(story.snapshot)) == []


def test_so_many_silences_count_that_comparing_takes_no_time() -> None:
    story = silenced("none")
    for number in range(MOST - 1):
        story.event(SilenceAdded(expires_us=HOUR_US), f"no*{number}")
    story.event(SilenceAdded(expires_us=HOUR_US), "*")
    assert emitted(story) == list(KEYS)
    assert list(status_lines(story.snapshot)) == [
        "silences  none for another 2 h, no*0 for another 1 h, no*1 for another 1 h and 197 more",
        f"1 silence too many: the oldest {MOST} count; remove some: upulse silence list",
    ]


def test_thousands_of_silences_of_an_old_log_are_folded_in_no_time_and_expired_ones_go() -> None:
    story = silenced("*")
    (added,) = (event for event in story.events if event.kind == SilenceAdded.kind)
    began = process_time()
    state = SILENCES.after(Silences(), [added._replace(id=str(number)) for number in range(4_000)])
    assert len(state.of) == 4_000
    assert process_time() - began < 1
    late = added.mono + 3 * HOUR_US
    state = SILENCES.after(state, [added._replace(id=f"late-{number}", mono=late) for number in range(97)])
    assert set(state.of) == {f"late-{number}" for number in range(97)}


def test_what_a_rule_wishes_is_compared_once_with_each_silence_and_no_pattern_is_read_again() -> None:
    """All of it is on the daemon's loop, and an engine may wish a hundred effects in each tick."""
    story = given(silence, busy)
    for number in range(MOST):
        story.event(SilenceAdded(expires_us=HOUR_US), f"nothing*{number}?")
    assert emitted(story) == list(KEYS)
    before = usable_pattern.cache_info()
    story.after("1s").tick()
    now = usable_pattern.cache_info()
    assert (now.hits - before.hits, now.misses) == (MOST * len(KEYS), before.misses)


def test_as_many_patterns_as_there_may_be_at_once_are_kept_as_read() -> None:
    patterns = [f"nothing*{number}?" for number in range(MOST + 2 * 256)]
    for _ in range(2):
        before = usable_pattern.cache_info().misses
        assert not any(glob_matches(pattern, KEYS[0]) for pattern in patterns)
    assert usable_pattern.cache_info().misses == before
