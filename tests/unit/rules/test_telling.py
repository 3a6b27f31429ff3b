"""Telling people: once, again after a while, and when it is over; all of it read from the log."""

from itertools import groupby

import pytest

from pulse_core.composition import current_holds
from pulse_core.model.kinds import Effect, SettingsLoaded
from pulse_core.model.payload import encode
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.blast_radius import blast_radius_with
from pulse_core.rules.survival.notices import notify_over, notify_unless_told, topic_text
from pulse_core.testing import Story, given

blast_radius = blast_radius_with(current_holds)

KEY = "notify:disk"


async def worried(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tells of a condition while it stands, and calls it off when it does not."""
    verdict = await inner(prev, curr)
    if curr.conditions["disk"]:
        return verdict.plus(
            *notify_unless_told("disk", "the disk is full", "95 % in use", curr, "system-resource")
        )
    return verdict.plus(*notify_over("disk", "the disk is full", "50 % in use", curr))


def titles(story: Story) -> list[str]:
    return [effect.params["title"] for effect in story.emitted if effect.action == "notify"]


def full(**notify: object) -> Story:
    story = given(worried, settings={"notify": notify})
    story.sample("system-resource", memory=0.5)
    story.sample("network", state="")
    story.raised("disk")
    return story


def test_a_notice_is_told_once_with_what_it_stands_on() -> None:
    story = full()
    story.tick()
    notice = story.expect("notify", key=KEY, title="the disk is full", text="95 % in use")
    assert notice.survival
    assert notice.samples == (1,)
    assert notice.reason == "95 % in use"
    story.acked(KEY)
    assert story.ticks(every="10m", times=20) == []


def test_a_reminder_comes_while_it_lasts() -> None:
    story = full(remind="1h")
    story.tick()
    story.acked(KEY)
    for _ in range(3):
        story.after("59m").tick()
        story.expect_nothing()
        story.after("1m").tick()
        story.expect("notify", title="still: the disk is full")
        story.acked(KEY)


def test_the_reason_says_whether_it_began_or_is_over() -> None:
    story = full()
    story.tick()
    began = story.expect("notify", key=KEY)
    story.acked(KEY)
    story.after("1h").cleared("disk")
    story.tick()
    ended = story.expect("notify", key=KEY, text="50 % in use")
    assert (began.reason, ended.reason) == ("95 % in use", "resolved: 50 % in use")


def test_without_reminders_it_is_told_once() -> None:
    story = full(remind="0s")
    story.tick()
    story.acked(KEY)
    assert story.ticks(every="10h", times=50) == []


def test_people_hear_when_it_is_over_and_of_the_next_time() -> None:
    story = full()
    story.tick()
    story.acked(KEY)
    story.after("1h").cleared("disk")
    story.tick()
    story.expect("notify", key=KEY, title="resolved: the disk is full", over=True)
    story.acked(KEY)
    assert story.ticks(every="1h", times=5) == []
    story.raised("disk")
    story.tick()
    story.expect("notify", title="the disk is full")


def test_what_nobody_was_told_of_is_not_called_off() -> None:
    story = given(worried)
    story.tick()
    story.expect_nothing()


def test_the_end_is_told_as_soon_as_its_beginning_was() -> None:
    story = full()
    story.tick()
    story.begun(KEY)
    story.cleared("disk")
    story.tick()
    story.expect_nothing()  # its key is open: the first notice is being sent
    story.acked(KEY)
    story.tick()
    story.expect("notify", over=True)


def test_the_end_takes_the_place_of_a_beginning_that_still_waits() -> None:
    story = full()
    story.tick()
    story.cleared("disk")
    story.tick()
    story.expect("notify", over=True)
    assert [event.kind for event in story.events[-3:]] == ["condition-cleared", "effect-cancelled", "effect"]
    story.tick()
    story.expect_nothing()


@pytest.mark.parametrize("moment", ["told", "reminded", "over"])
def test_a_restart_in_between_neither_forgets_nor_repeats(moment: str) -> None:
    story = full(remind="1h")
    story.tick()
    story.acked(KEY)
    if moment == "reminded":
        story.after("1h").tick()
        story.acked(KEY)
    if moment == "over":
        story.cleared("disk")
        story.tick()
        story.acked(KEY)
    story.restart()
    story.after("30m").tick()
    story.expect_nothing()
    story.after("30m").tick()
    assert titles(story) == ([] if moment == "over" else ["still: the disk is full"])


def test_a_jump_of_the_clock_brings_no_reminder() -> None:
    story = full(remind="1h")
    story.tick()
    story.acked(KEY)
    story.now = story.now._replace(at=story.now.at + 10**13)
    story.tick()
    story.expect_nothing()


def test_no_topic_or_text_is_too_odd_to_be_told() -> None:
    odd = "log:/var/log/a\n\x1b[2J" + "x" * 2_000 + "\ud800"
    story = given()
    (notice,) = notify_unless_told(odd, "t\ud800" * 400, "\udcff" * 20_000, story.snapshot)
    assert encode(notice)
    assert len(notice.params["title"]) <= 500
    assert len(notice.params["text"]) <= 10_000
    story.event(notice, notice.key)
    assert notify_unless_told(odd, "t", "x", story.snapshot) == ()
    assert topic_text("disk:/") == "disk:/"


def test_what_is_too_long_is_cut_and_not_more_than_that() -> None:
    (notice,) = notify_unless_told("t" * 401, "x" * 451, "y" * 10_001, given().snapshot)
    assert notice.key == "notify:" + "t" * 400
    assert notice.params == {"title": "x" * 450, "text": "y" * 10_000, "severity": "warning"}


def test_a_notice_by_hand_under_a_key_of_its_own_is_no_rules_topic() -> None:
    story = full()
    story.event(Effect(action="notify", key="disk", params={"title": "x"}), "disk")
    story.tick()
    story.expect("notify", key=KEY)


# The blast radius tells in the same way


async def eager(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Wishes three actions while a condition stands."""
    verdict = await inner(prev, curr)
    many = [Effect(action="note", key=f"note:{number}", reason="x", survival=True) for number in range(3)]
    return verdict.plus(*many) if curr.conditions["storm"] else verdict


def stormy() -> Story:
    story = given(blast_radius, eager, settings={"budget": {"actions_per_minute": 1}})
    story.raised("storm")
    return story


def settle(story: Story) -> None:
    for effect in story.emitted:
        story.acked(effect.key)


def test_a_spell_of_held_back_actions_is_told_once_reminded_of_and_called_off() -> None:
    story, told = stormy(), []
    for _ in range(5 * 60):
        story.after("1m").tick()
        told += titles(story)
        settle(story)
    story.cleared("storm")
    for _ in range(60):
        story.after("1m").tick()
        told += titles(story)
        settle(story)
    title = "Pulse holds back actions"
    assert [name for name, _ in groupby(told)] == [title, f"still: {title}", f"resolved: {title}"]
    assert len(told) == 3


def test_a_spell_in_bursts_is_one_spell() -> None:
    story, told = stormy(), []
    for number in range(30):
        story.after("20s").tick()
        told += titles(story)
        settle(story)
        story.cleared("storm") if number % 2 else story.raised("storm")
    assert told == ["Pulse holds back actions"]


def test_without_a_limit_nothing_is_held_back_and_an_old_spell_is_called_off() -> None:
    story = stormy()
    story.tick()
    settle(story)
    story.settings = type(story.settings).model_validate({"budget": {"actions_per_minute": 0}})
    story.event(SettingsLoaded(digest="d"))
    story.after("20m").tick()
    assert len([effect for effect in story.emitted if effect.action == "note"]) == 3
    assert titles(story) == ["resolved: Pulse holds back actions"]


@pytest.mark.parametrize(
    ("topic", "severity"),
    [
        ("flapping:a", "critical"),
        ("resource:unwritten", "critical"),
        ("resource:disk:/", "warning"),
        ("engine:rollback", "critical"),
        ("network", "error"),
        ("network:quality", "warning"),
        ("networks", "warning"),
        ("usage:a:memory", "warning"),
    ],
)
def test_a_topic_says_how_severe_its_notices_are_and_its_end_is_told_to_the_same(
    topic: str, severity: str
) -> None:
    story = given()
    (notice,) = notify_unless_told(topic, "t", "x", story.snapshot)
    assert notice.params["severity"] == severity
    (own,) = notify_unless_told(topic, "t", "x", story.snapshot, severity="info")
    story.event(own, own.key)
    (over,) = notify_over(topic, "t", "x", story.snapshot)
    assert over.params["severity"] == "info"
