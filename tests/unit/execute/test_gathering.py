"""Which of the waiting notices leave now, and when to look again."""

from itertools import pairwise
from typing import Any

import pytest

from pulse_core.composition import FOLD
from pulse_core.execute.notice_batching import (
    MAX_NOTICES,
    NoticeBatch,
    hold_reason,
    next_batch,
    undelivered_reason,
)
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectExecuting,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.settings.settings import Settings
from tests.events import SECOND, event

MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND


class Post:
    """A log about notices, with the moment at which each thing happened, in seconds after boot."""

    def __init__(self, **notify: Any) -> None:
        network = {"dns": ["one.example"]}
        urls = {"urls": ["json://here"], "group": "2s", "per_hour": 3}
        self.settings = Settings.model_validate({"notify": {**urls, **notify}, "network": network})
        self.events: list[Event] = []

    def say(self, at: float, payload: Payload, subject: str) -> str:
        row = event(len(self.events) + 1, payload, subject, at=round(at * SECOND))
        self.events.append(row)
        return row.id

    def wish(self, at: float, name: str, severity: str = "warning", tick: int | None = None) -> str:
        """tick: of the rule of an author that wishes for it."""
        params: dict[str, Json] = {"title": name, "severity": severity}
        wish = Effect(action="notify", key=f"notify:{name}", params=params, tick=tick)
        return self.say(at, wish, f"notify:{name}")

    def fail(self, at: float, id_: str, retry: float) -> None:
        self.say(at, EffectExecuting(), id_)
        self.say(at, EffectAttemptFailed(attempt=1, error="no", retry_us=round(retry * SECOND)), id_)

    def deliver(self, at: float, *ids: str) -> None:
        for id_ in ids:
            self.say(at, EffectExecuting(), id_)
        for id_ in ids:
            self.say(at, EffectAcked(took_us=1, result={"sent_to": ["json://a"]}), id_)

    def network(self, at: float, state: str) -> None:
        told = ConditionRaised(evidence="x", state=state) if state else ConditionCleared(evidence="x")
        self.say(at, told, "network")

    def at(self, seconds: float) -> NoticeBatch:
        facts, mono = FOLD(FOLD.start, self.events), round(seconds * SECOND)
        now = Moment(10**15 + mono, "boot", mono)
        return next_batch(tuple(facts.effects.open.values()), facts, self.settings, now)

    def why(self, seconds: float) -> str:
        facts, mono = FOLD(FOLD.start, self.events), round(seconds * SECOND)
        return hold_reason(facts, self.settings, Moment(10**15 + mono, "boot", mono))

    def undelivered(self, seconds: float) -> str:
        facts, mono = FOLD(FOLD.start, self.events), round(seconds * SECOND)
        return undelivered_reason(facts, self.settings, Moment(10**15 + mono, "boot", mono))

    def leaving(self, seconds: float) -> list[str]:
        return [effect.event.subject.removeprefix("notify:") for effect in self.at(seconds).effects]


def test_a_notice_waits_for_others_and_they_leave_together() -> None:
    post = Post()
    post.wish(10, "a")
    post.wish(11, "b")
    assert post.at(11) == NoticeBatch(wait_us=SECOND)
    assert post.leaving(12) == ["a", "b"]


def test_without_a_group_each_leaves_at_once() -> None:
    post = Post(group="0s")
    post.wish(10, "a")
    assert post.leaving(10) == ["a"]


def test_nothing_waits_for_nothing() -> None:
    assert Post().at(1) == NoticeBatch()


@pytest.mark.parametrize(
    ("state", "leaves"), [("down", []), ("dns-only", ["a"]), ("slow", ["a"]), ("", ["a"])]
)
def test_while_the_network_is_down_nothing_is_tried(state: str, leaves: list[str]) -> None:
    post = Post()
    post.network(1, "down")
    post.network(2, state)
    post.wish(10, "a")
    assert post.leaving(1_000) == leaves


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("json://127.0.0.1:9/x", ["a"]),
        ("json://localhost", ["a"]),
        ("ntfy://u:secret@192.168.1.5/alarms", ["a"]),
        ("json://[::1]:9", ["a"]),
        ("json://far.example", []),
        ("env:PULSE_URL", []),
    ],
)
def test_while_the_network_is_down_only_what_may_lie_this_side_of_it_is_tried(
    url: str, leaves: list[str]
) -> None:
    post = Post(urls=["json://far.example", url])
    post.network(1, "down")
    post.wish(10, "a")
    assert post.leaving(1_000) == leaves


def test_why_a_notice_waits_is_said() -> None:
    post = Post(per_hour=1)
    assert post.why(10) == ""
    post.network(10, "down")
    assert post.why(310) == "waits for the network, which is down, first seen 5 min ago"
    post.network(320, "")
    post.deliver(400, post.wish(390, "a"))
    words = "the messages of this hour are used up ([notify] per_hour)"
    assert post.why(1_000) == f"waits for 50 min: {words}"


def test_only_those_that_the_limit_holds_back_are_said_to_wait_for_it() -> None:
    post = Post()
    full = "the messages of this hour are used up ([notify] per_hour)"
    for number in range(3):
        post.deliver(400 + number, post.wish(350 + number, f"n{number}"))
    assert post.undelivered(1_000) == ""
    post.fail(1_000, post.wish(990, "alarm", "critical"), 30)
    failed = "1 could not be sent so far, and will be tried again; see upulse effect list"
    assert post.undelivered(1_001) == failed
    post.wish(1_001, "more")
    assert post.undelivered(1_002) == f"1 of them waits for 50 min: {full}; {failed}"
    post.wish(1_001, "most")
    assert post.undelivered(1_002) == f"2 of them wait for 50 min: {full}; {failed}"


def test_critical_notices_that_wait_for_a_limit_of_their_own_are_told_apart() -> None:
    post = Post(per_hour=1)
    full = "the messages of this hour are used up ([notify] per_hour)"
    for at in (400, 1_000):
        post.deliver(at, post.wish(at - 10, f"n{at}", "critical"))
    post.wish(1_010, "a")
    post.wish(1_010, "b")
    assert post.undelivered(1_600) == f"wait for 50 min: {full}"
    post.wish(1_020, "alarm", "critical")
    assert post.undelivered(1_600) == f"2 others wait for 50 min, 1 critical one waits for 40 min: {full}"


def test_a_condition_that_nobody_watches_any_more_holds_nothing_back() -> None:
    post = Post()
    post.network(1, "down")
    post.wish(10, "a")
    post.settings = Settings.model_validate({"notify": {"urls": ["json://here"]}})
    assert post.leaving(20) == ["a"]


def test_only_so_many_messages_leave_in_an_hour_and_the_rest_waits_for_the_next() -> None:
    post = Post()
    for number in range(3):
        post.deliver(100 + number, post.wish(90 + number, f"m{number}"))
    post.wish(200, "a")
    post.wish(300, "b")
    assert post.at(310) == NoticeBatch(wait_us=HOUR - 210 * SECOND)
    assert post.leaving(3_699) == []
    assert post.leaving(3_700) == ["a", "b"]


def test_a_critical_notice_waits_behind_no_others_and_as_many_again_may_leave() -> None:
    post = Post(per_hour=2)
    for number in range(2):
        post.deliver(100 + number, post.wish(90 + number, f"m{number}"))
    post.wish(200, "a")
    for number in range(2):
        id_ = post.wish(300 + number * 10, f"c{number}", "critical")
        assert post.leaving(305 + number * 10) == [f"c{number}"]
        post.deliver(305 + number * 10, id_)
    post.wish(400, "c2", "critical")
    assert post.at(410) == NoticeBatch(wait_us=HOUR - 310 * SECOND)
    assert post.leaving(3_700) == ["c2"]


@pytest.mark.parametrize("severity", ["warning", "critical"])
def test_messages_of_rules_hold_back_no_notice_of_survival(severity: str) -> None:
    post = Post(per_hour=2)
    for number in range(4):
        post.deliver(100 + number, post.wish(90 + number, f"r{number}", "critical", tick=number))
    post.wish(150, "r", severity, tick=9)
    assert post.leaving(200) == []
    post.wish(200, "down", severity)
    assert post.leaving(210) == ["down"]


def test_a_message_with_notices_of_survival_and_of_rules_counts_for_both() -> None:
    post = Post(per_hour=1)
    post.deliver(100, post.wish(90, "r", tick=1), post.wish(90, "down"))
    post.wish(150, "next")
    assert post.at(200) == NoticeBatch(wait_us=HOUR - 100 * SECOND)


def test_what_survival_has_sent_counts_for_rules_too() -> None:
    post = Post(per_hour=1)
    post.deliver(100, post.wish(90, "down"))
    post.wish(150, "r", tick=1)
    assert post.at(200) == NoticeBatch(wait_us=HOUR - 100 * SECOND)
    assert post.undelivered(200).startswith("waits for ")


def test_notices_of_survival_have_room_in_the_next_message_however_many_rules_have_sent() -> None:
    post = Post(per_hour=0)
    for number in range(MAX_NOTICES):
        post.wish(100, f"r{number}", tick=1)
    post.wish(101, "down")
    assert post.leaving(200)[0] == "down"


def test_what_left_together_is_one_message() -> None:
    post = Post()
    post.deliver(100, *[post.wish(90, f"n{number}") for number in range(9)])
    post.wish(200, "a")
    assert post.leaving(210) == ["a"]


def test_messages_that_reached_nobody_do_not_hold_back_a_later_alarm() -> None:
    post = Post(per_hour=1)
    post.fail(100, post.wish(90, "a"), 60)
    post.wish(200, "b")
    assert post.leaving(210) == ["a", "b"]
    assert post.why(210) == ""
    post.deliver(210, "id-1", "id-4")
    post.wish(220, "c")
    assert post.at(230) == NoticeBatch(wait_us=HOUR - 20 * SECOND)


def test_what_has_reached_one_address_is_sent_to_another_one_beyond_the_limit() -> None:
    post = Post(per_hour=1)
    id_ = post.wish(90, "a")
    post.say(100, EffectExecuting(), id_)
    partly = EffectAttemptFailed(attempt=1, error="b: no", retry_us=60 * SECOND, result={"sent_to": ["a"]})
    post.say(101, partly, id_)
    post.fail(105, post.wish(102, "b"), 10)
    assert post.leaving(200) == ["a"]
    assert post.leaving(3_699) == ["a"]
    assert post.leaving(3_700) == ["a", "b"]


def test_new_notices_try_dead_addresses_at_growing_intervals() -> None:
    post, tries = Post(per_hour=0, group="0s"), list[int]()
    for second in range(0, 1_800, 10):
        id_ = post.wish(second, f"n{second}")
        if post.leaving(second):
            post.fail(second, id_, 10_000)
            tries.append(second)
    assert tries[:5] == [0, 10, 20, 30, 40]
    assert {then - before for before, then in pairwise(tries[-10:])} == {120}
    assert post.at(tries[-1] + 1).wait_us == 119 * SECOND


def test_a_dead_address_does_not_hold_back_what_goes_to_another_one() -> None:
    post = Post()
    post.settings = Settings.model_validate(
        {
            "notify_route": [{"urls": ["json://dead"]}, {"urls": ["json://pager"], "match": "alarm"}],
            "notify": {"group": 0},
        }
    )
    post.fail(500, post.wish(1, "a"), 60)
    post.wish(510, "b")
    assert post.leaving(520) == []
    post.wish(520, "alarm")
    assert post.leaving(520) == ["alarm", "b"]


def test_what_a_crash_interrupts_again_and_again_is_a_message_each_time() -> None:
    post = Post()
    id_ = post.wish(90, "a")
    for second in range(3):
        post.say(100 + second, EffectExecuting(attempt=second + 1), id_)
    assert post.at(110) == NoticeBatch(wait_us=HOUR - 10 * SECOND)


def test_no_limit_is_no_limit() -> None:
    post = Post(per_hour=0)
    for number in range(50):
        post.deliver(100 + number, post.wish(90 + number, f"m{number}"))
    post.wish(200, "a")
    assert post.leaving(210) == ["a"]


def test_a_message_holds_so_many_and_the_oldest_leave_first() -> None:
    post = Post()
    for number in range(MAX_NOTICES + 5):
        post.wish(10, f"n{number}")
    assert post.leaving(20) == [f"n{number}" for number in range(MAX_NOTICES)]


def test_those_that_are_due_are_not_passed_over_for_those_that_may_go_along() -> None:
    post = Post(per_hour=0)
    for number in range(MAX_NOTICES):
        post.fail(500, post.wish(90, f"old{number}"), 1_000)
    post.fail(900, post.wish(890, "due"), 120)
    assert post.leaving(1_020) == ["due", *[f"old{number}" for number in range(MAX_NOTICES - 1)]]


def test_what_failed_a_moment_ago_does_not_go_along_at_once() -> None:
    post = Post(per_hour=0)
    post.fail(1_000, post.wish(90, "a"), 14_400)
    post.deliver(1_001, post.wish(990, "b"))  # so that it waits for no more than a quarter of an hour
    post.fail(800, post.wish(90, "c"), 300)
    assert post.leaving(1_100) == ["c"]


def test_a_failed_notice_has_its_backoff_and_takes_new_ones_along() -> None:
    post = Post()
    post.fail(100, post.wish(90, "a"), 120)
    assert post.at(200) == NoticeBatch(wait_us=20 * SECOND)
    post.wish(219, "b")
    assert post.leaving(220) == ["a", "b"]


def test_failed_notices_go_along_once_half_of_their_backoff_is_over() -> None:
    post = Post(per_hour=0)
    post.fail(100, post.wish(90, "a"), 1_000)
    post.fail(500, post.wish(490, "b"), 1_000)
    post.fail(800, post.wish(790, "c"), 1_000)
    assert post.at(1_099) == NoticeBatch(wait_us=SECOND)
    assert post.leaving(1_100) == ["a", "b"]


def test_a_new_notice_is_tried_while_failed_ones_wait() -> None:
    post = Post()
    post.fail(100, post.wish(90, "a"), 7_200)
    post.wish(200, "b")
    assert post.leaving(203) == ["b"]


def test_once_something_got_through_failed_ones_wait_no_longer_than_a_quarter_of_an_hour() -> None:
    post = Post(per_hour=0)
    post.fail(100, post.wish(90, "a"), 14_400)
    post.deliver(200, post.wish(190, "b"))
    assert post.at(210) == NoticeBatch(wait_us=15 * MINUTE - 110 * SECOND)
    assert post.leaving(1_000) == ["a"]


def test_what_got_through_before_the_failure_hurries_nothing() -> None:
    post = Post(per_hour=0)
    post.deliver(50, post.wish(40, "b"))
    post.fail(100, post.wish(90, "a"), 14_400)
    assert post.at(5_000) == NoticeBatch(wait_us=(14_400 - 4_900) * SECOND)


def test_what_a_crash_interrupted_leaves_with_the_next_message() -> None:
    post = Post()
    post.say(100, EffectExecuting(), post.wish(90, "a"))
    post.wish(100, "b")
    assert post.leaving(101) == ["a", "b"]
