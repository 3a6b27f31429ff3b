"""Moments and durations as people write and read them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import typer
from rich.console import Console

from pulse_core.app.engine.effect_diff import EffectDifference, WishedEffect
from pulse_core.app.engine.replay import Replay, ReplayComparison
from pulse_core.ports.engine import Revision
from pulse_core.ports.readers import EventQuery
from upulse_cli.capabilities.silences.views import recurring
from upulse_cli.time_args import (
    WEEKDAYS,
    ago,
    coming_arg,
    coming_moment,
    duration_arg,
    local,
    local_moment,
    local_span,
    moment_arg,
    since_arg,
    when_words,
    yesterday_note,
    zone,
)
from upulse_cli.views.replay import shown


def test_a_number_means_after_that_row() -> None:
    assert since_arg("17") == EventQuery(since_seq=17)


@pytest.mark.parametrize(("text", "said"), [("2999-01-01", True), ("2999-01-01T08:15", True), ("10m", False)])
def test_a_beginning_that_has_not_come_yet_is_said(
    text: str, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    moment_arg(text, "--since")
    assert capsys.readouterr().err == (f"--since {text}: that has not come yet\n" if said else "")


@pytest.mark.parametrize("text", ["10m", "10m ago"])
def test_a_duration_means_that_long_ago(text: str) -> None:
    before = time.time_ns() // 1000
    found = since_arg(text).since_at
    assert found is not None
    assert 0 <= found - (before - 600_000_000) < 60_000_000
    assert when_words(text) == "in the last 10m"


def test_a_time_with_a_zone_is_that_time() -> None:
    assert when_words("yesterday") == "since yesterday"
    assert since_arg("2026-01-31T08:15:00+00:00") == since_arg("2026-01-31T08:15:00Z")
    assert since_arg("2026-01-31T08:15:00Z").since_at == 1769847300_000_000


def test_a_time_without_a_zone_is_local() -> None:
    here = datetime(2026, 1, 31, 8, 15).astimezone().astimezone(UTC).isoformat()
    assert since_arg("2026-01-31T08:15") == since_arg(here)


@pytest.mark.parametrize(
    ("text", "then"),
    [("08:15", "2026-11-24T08:15"), ("8:15", "2026-11-24T08:15"), ("15:20:30", "2026-11-23T15:20:30"),
     ("8:15:30", "2026-11-24T08:15:30"), ("today", "2026-11-24"), ("yesterday", "2026-11-23"),
     ("monday", "2026-11-23"), ("tuesday", "2026-11-17"), ("wednesday", "2026-11-18")],
)  # fmt: skip
def test_a_word_or_a_time_of_day_is_the_last_one_on_the_local_clock(text: str, then: str) -> None:
    a_tuesday = datetime(2026, 11, 24, 9, 30)
    assert local_moment(text, a_tuesday) == datetime.fromisoformat(then)


@pytest.mark.parametrize(
    ("text", "note"), [("18:59", "yesterday's, since it is 18:04 now"), ("18:03", ""), ("monday", "")]
)
def test_a_time_of_day_that_has_not_come_yet_is_told_to_be_yesterdays(text: str, note: str) -> None:
    assert yesterday_note(text, datetime(2026, 11, 24, 18, 4)) == note


@pytest.mark.parametrize(
    ("text", "then"),
    [("08:15", "2026-11-25T08:15"), ("15:20:30", "2026-11-24T15:20:30"), ("tomorrow", "2026-11-25"),
     ("monday", "2026-11-30"), ("tuesday", "2026-12-01"), ("wednesday", "2026-11-25")],
)  # fmt: skip
def test_what_is_due_is_due_at_the_next_one(text: str, then: str) -> None:
    a_tuesday = datetime(2026, 11, 24, 9, 30)
    assert coming_moment(text, a_tuesday) == datetime.fromisoformat(then)


def test_what_is_due_in_a_duration_is_due_so_long_from_now() -> None:
    before = time.time_ns() // 1000
    assert 0 <= coming_arg("2h", "--due") - (before + 7_200_000_000) < 60_000_000


@pytest.mark.parametrize(("text", "said"), [("2020-01-31", True), ("2999-01-31", False), ("Monday", False)])
def test_what_is_due_and_has_passed_is_said(
    text: str, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    coming_arg(text, "--due")
    assert capsys.readouterr().err == (f"--due {text}: that has passed\n" if said else "")


@pytest.mark.parametrize("text", ["yesterday", "2h ago", "soon", "25:00"])
def test_what_is_due_is_told_as_a_time_to_come(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected 2h, 15:20, tomorrow"):
        coming_arg(text, "--due")


@pytest.mark.parametrize(
    ("text", "minutes"), [("02:05", 5), ("02:10", 0), ("02:45", 25), ("01:50", 80), ("03:10", 23 * 60 + 60)]
)
def test_a_time_of_day_that_came_twice_is_the_last_one(
    text: str, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        now = datetime(2026, 10, 25, 2, 10, fold=1)
        then = local_moment(text, now)
        assert then is not None
        assert now.timestamp() - then.timestamp() == minutes * 60
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("now", "last", "next_"),
    [("01:50", -(23 * 60 + 20), 40), ("03:10", -40, 23 * 60 + 20)],
    ids=["before the clock goes forward", "after it"],
)
def test_a_time_of_day_that_summer_time_leaves_out_comes_when_the_clock_passes_over_it(
    now: str, last: int, next_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        at = datetime.fromisoformat(f"2026-03-29T{now}")
        then, coming = local_moment("02:30", at), coming_moment("02:30", at)
        assert then is not None
        assert coming is not None
        assert [(one.timestamp() - at.timestamp()) / 60 for one in (then, coming)] == [last, next_]
        left_out = "2026-03-29T02:30"
        assert moment_arg(left_out, "--at") == datetime.fromisoformat(left_out).timestamp() * 1_000_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_differences_of_a_replay_are_told_on_the_local_clock_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "XYZ-1")
    time.tzset()
    try:
        wish = WishedEffect("my:key", 3, "2026-01-31T23:15:00.000000Z", "mine", "note", "it is late")
        new, old = Replay(Revision("new", "")), Replay(Revision("old", ""))
        found = ReplayComparison(new, old, [EffectDifference("new", wish)], ())
        console = Console(width=200)
        with console.capture() as captured:
            console.print(shown(found))
        assert "+ 2026-02-01 00:15:00 XYZ  my:key  mine" in captured.get()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_recurring_silence_begins_on_the_days_of_the_local_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    window = {"match": "*", "days": ["sat", "sun"], "at": "23:30", "for": "2h", "active": False,
              "next": "2026-01-31T23:30:00.000000Z", "why": ""}  # fmt: skip
    monkeypatch.setenv("TZ", "XYZ-1")
    time.tzset()
    try:
        console = Console(width=200)
        with console.capture() as captured:
            console.print(recurring([window, {**window, "days": []}]))
        head, weekend, daily = captured.get().splitlines()
        assert "begins (XYZ)" in head
        assert "sun,mon 00:30" in weekend
        assert "from 2026-02-01 00:30:00" in weekend
        assert "daily 00:30" in daily
    finally:
        monkeypatch.undo()
        time.tzset()


def test_words_of_time_are_taken_in_any_case() -> None:
    since = {text: since_arg(text).since_at for text in ("Yesterday", *WEEKDAYS)}
    assert all(found is not None and found < time.time_ns() // 1000 for found in since.values())


@pytest.mark.parametrize("text", ["", "soon", "10 parsecs", "10x", "-3", "²", "25:00", "9:60"])
def test_anything_else_is_a_usage_error_with_examples(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected 10m, 15:20, yesterday"):
        since_arg(text)


def test_a_duration_may_have_several_units() -> None:
    assert duration_arg("1h30m", "--for") == duration_arg("90m", "--for")
    assert duration_arg("1m30s500ms", "--for") == 90_500_000
    since = since_arg("1h30m ago").since_at
    assert since is not None
    assert abs(time.time_ns() // 1000 - 5_400_000_000 - since) < 60_000_000


def test_a_bad_duration_names_its_option() -> None:
    with pytest.raises(typer.BadParameter, match="'10' is no duration") as refused:
        duration_arg("10", "--for")
    assert refused.value.param_hint == "--for"


def test_a_time_of_another_day_is_told_with_its_date() -> None:
    assert local("2020-01-31T12:00:00.000000Z").startswith("2020-01-31 ")
    assert local(datetime.now(UTC).isoformat()).count(":") == 2
    assert "-" not in local(datetime.now(UTC).isoformat())


def test_of_two_times_both_have_their_date_if_one_is_of_another_day() -> None:
    """An outage of three days seemed to be one of three quarters of an hour."""
    before, now = "2020-01-31T12:00:00.000000Z", datetime.now(UTC).isoformat()
    assert local_span(before, now) == f"{local(before)} to {local(now, date=True)}"
    assert local_span(now, now, ", found at ") == f"{local(now)}, found at {local(now)}"
    assert local_span(before, before, named=True).endswith(local(before, named=True))


def test_what_never_was_is_a_dash() -> None:
    assert (ago(None), local(None)) == ("-", "-")


@pytest.fixture
def after_summer(monkeypatch: pytest.MonkeyPatch) -> Iterator[datetime]:
    """A zone whose summer time has ended three days ago; this moment."""
    now = datetime.now(UTC)
    first, last = (f"J{int(f'{now - timedelta(days=ago):%j}') % 365 + 1}" for ago in (120, 4))
    monkeypatch.setenv("TZ", f"WIN0SUM-1,{first},{last}")
    time.tzset()
    yield now
    monkeypatch.undo()
    time.tzset()


def test_a_time_of_before_a_change_of_summer_time_names_its_zone(after_summer: datetime) -> None:
    before, since = after_summer - timedelta(days=30), after_summer - timedelta(days=1)
    assert zone() == "WIN"
    assert local(since.isoformat()) == f"{since:%Y-%m-%d %H:%M:%S}"
    assert local(since.isoformat(), named=True) == f"{since:%Y-%m-%d %H:%M:%S} WIN"
    summer = f"{before + timedelta(hours=1):%Y-%m-%d %H:%M:%S} SUM"
    assert local(before.isoformat()) == local(before.isoformat(), named=True) == summer
