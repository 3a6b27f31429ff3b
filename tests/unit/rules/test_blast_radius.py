"""`blast_radius`: only so many actions in a minute over all targets, whatever wishes them."""

from typing import Any

import pytest

from pulse_core.composition import current_holds
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.blast_radius import blast_radius_with
from pulse_core.silences.events import SilenceAdded
from pulse_core.testing import Story, given

blast_radius = blast_radius_with(current_holds)

NOTICE, INSIDE = "notify:blast-radius", "notify:blast-radius:engine"
TITLE = "Pulse holds back actions"


class Wishes:
    """Something inside that wishes what it is told to, as survival would; `mine:…` as other rules do."""

    __name__ = "wishes"

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def __call__(self, prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(*map(wish, self.keys))


def wish(key: str) -> Effect:
    action = next((one for one in ("notify", "rollback-engine") if one in key), "note")
    params: dict[str, Any] = {"only_start": True} if "start:" in key else {}
    params |= {"for_condition": key} if key.startswith("condition") else {}
    return Effect(action=action, key=key, params=params, survival=not key.startswith("mine:"))


def limited(limit: int, **settings: Any) -> tuple[Story, Wishes]:
    wishes = Wishes()
    chosen = {"budget": {"actions_per_minute": limit}, "notify": {"remind": "0s"}, **settings}
    return given(blast_radius, wishes, settings=chosen), wishes


def keys(story: Story, wishes: Wishes, *wished: str) -> list[str]:
    wishes.keys = list(wished)
    story.tick()
    found = [effect.key for effect in story.emitted]
    for key in found:
        story.acked(key)
    return found


def test_up_to_the_limit_everything_passes_and_nothing_is_said() -> None:
    story, wishes = limited(3)
    assert keys(story, wishes, "a", "b", "c") == ["a", "b", "c"]
    assert story.layers[-1].notes == ()
    assert story.verdict.tick_ms == 86_400_000


def test_beyond_it_the_later_ones_are_held_back_and_that_is_told() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "a", "b", "c", "d") == ["a", "b", NOTICE]
    assert story.layers[-1].notes == (
        "2 actions held back: 2 a minute over all targets are spent; wishes: c, d",
    )
    assert story.emitted[-1].params == {
        "title": TITLE,
        "text": story.layers[-1].notes[0],
        "severity": "warning",
    }
    assert story.verdict.tick_ms == 60_001


def test_the_rules_and_their_first_keys_are_named() -> None:
    async def page_all(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(*(wish(f"mine:{number}") for number in range(30)))

    wishes = Wishes()
    wishes.keys = ["mine:x"]
    story = given(blast_radius, page_all, wishes, settings={"budget": {"actions_per_minute": 1}})
    story.tick()
    told = "30 effects of your rules held back: 1 a minute over all targets are spent; "
    assert story.layers[-1].notes == (f"{told}page_all: mine:0, mine:1, mine:2 and 27 more",)


def test_a_rollback_that_is_wished_last_has_the_first_claim() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "a", "b", "rollback-engine") == ["a", "rollback-engine", NOTICE]


def test_survivals_notices_are_free() -> None:
    story, wishes = limited(1)
    assert keys(story, wishes, "notify:x", "a", "notify:y") == ["notify:x", "a", "notify:y"]


def test_notices_of_other_rules_are_not() -> None:
    story, wishes = limited(1)
    assert keys(story, wishes, "mine:notify:x", "mine:a") == ["mine:notify:x", INSIDE]


def test_other_rules_cannot_spend_what_survival_has_nor_it_theirs() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "mine:a", "mine:b", "mine:c") == ["mine:a", "mine:b", INSIDE]
    assert keys(story.after("1s"), wishes, "mine:c", "a", "b", "c") == ["a", "b", NOTICE]
    assert story.layers[-1].notes == (
        "1 action held back: 2 a minute over all targets are spent; wishes: c",
        "1 effect of your rules held back: 2 a minute over all targets are spent; wishes: mine:c",
    )
    assert keys(story.after("58s"), wishes, "mine:c", "c") == []
    assert story.verdict.tick_ms == 1_001
    assert keys(story.after("1s"), wishes, "mine:c", "c") == ["mine:c"]
    assert keys(story.after("1s"), wishes, "c") == ["c"]


def test_starts_of_the_dead_are_held_back_by_no_other_action_and_the_first_in_a_minute_by_none() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "a", "b", "c", "start:x") == ["a", "b", "start:x", NOTICE]
    assert keys(story.after("1s"), wishes, "start:x", "start:y") == ["start:x", "start:y"]
    assert keys(story.after("1s"), wishes, "start:x") == ["start:x"]
    assert keys(story.after("1s"), wishes, "start:x", "start:z") == ["start:z", f"{NOTICE}:starts"]
    told = story.expect("notify", key=f"{NOTICE}:starts").params["text"]
    assert told == "1 start of dead processes held back: 2 a minute over all targets are spent: start:x"
    assert story.layers[-1].notes == (
        "1 start of dead processes held back: 2 a minute over all targets are spent; wishes: start:x",
    )
    assert keys(story.after("60s"), wishes, "start:x", "a", "b") == ["start:x", "a", "b"]


def test_the_first_starts_of_a_crowd_cost_nothing_so_that_who_dies_once_more_does_not_wait_for_it() -> None:
    story, wishes = limited(2)
    crowd = [f"start:{number}" for number in range(10)]
    assert keys(story, wishes, *crowd) == crowd
    assert keys(story.after("1s"), wishes, *crowd[:3]) == [*crowd[:2], f"{NOTICE}:starts"]


def test_a_rule_that_calls_its_wish_a_start_is_held_back_all_the_same() -> None:
    story, wishes = limited(1)
    assert keys(story, wishes, "mine:a", "mine:start:x") == ["mine:a", INSIDE]


def test_what_is_held_back_of_other_rules_is_told_once_and_called_off_when_it_is_over() -> None:
    story, wishes = limited(1)
    assert keys(story, wishes, "mine:a", "mine:b") == ["mine:a", INSIDE]
    assert story.emitted[-1].params == {
        "title": "Pulse holds back what your rules wish for",
        "text": "1 effect of your rules held back: 1 a minute over all targets are spent; wishes: mine:b",
        "severity": "warning",
    }
    for _ in range(9):
        assert keys(story.after("1s"), wishes, "mine:b", "mine:c") == []
    assert keys(story.after("11m"), wishes) == [INSIDE]
    assert story.emitted[-1].params["over"]
    assert keys(story.after("1s"), wishes) == []


def test_what_is_open_already_costs_nothing_anew() -> None:
    story, wishes = limited(2)
    wishes.keys = ["a", "b"]
    story.tick()
    story.after("1s").tick()
    story.expect_nothing()
    assert story.layers[-1].notes == ()


def test_a_minute_after_an_action_there_is_room_for_one_and_that_is_not_overslept() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "a") == ["a"]
    assert keys(story.after("20s"), wishes, "b") == ["b"]
    assert keys(story.after("10s"), wishes, "c") == [NOTICE]
    assert story.verdict.tick_ms == 30_001
    assert keys(story.after("29999ms"), wishes, "c") == []
    assert story.verdict.tick_ms == 2
    assert keys(story.after("1ms"), wishes, "c", "d") == ["c"]


def test_a_limit_of_nothing_is_no_limit() -> None:
    story, wishes = limited(0)
    many = [f"n{number}" for number in range(200)]
    assert keys(story, wishes, *many) == many


def test_rules_are_bounded_even_then_with_their_notices_and_the_rest_is_counted() -> None:
    story, wishes = limited(0)
    for _ in range(8):
        keys(story, wishes, *(f"mine:notify:{len(story.events)}:{number}" for number in range(100)))
        story.after("1s")
    assert story.layers[-1].notes[0].startswith("100 effects of your rules held back: 600 a minute")
    assert len(story.snapshot.effects.wished) == 600
    assert keys(story, wishes, "a") == ["a"]


def spell() -> tuple[Story, Wishes]:
    """One was held back, of which people were told."""
    story, wishes = limited(1)
    assert keys(story, wishes, "a", "b") == ["a", NOTICE]
    return story, wishes


def test_a_spell_is_over_when_nothing_was_held_back_for_ten_minutes() -> None:
    story, wishes = spell()
    assert keys(story.after("4m"), wishes) == []
    assert story.verdict.tick_ms == 360_001
    story.now = story.now.plus(360_000_000 - 1)
    assert keys(story, wishes) == []
    assert story.verdict.tick_ms == 1
    story.now = story.now.plus(1)
    assert keys(story, wishes) == [NOTICE]
    assert story.emitted[0].params == {
        "title": f"resolved: {TITLE}",
        "text": "no action is held back; 0 were taken within the last minute",
        "over": True,
        "severity": "warning",
    }
    assert keys(story.after("1h"), wishes) == []
    assert story.verdict.tick_ms == 86_400_000


def test_it_is_not_over_while_there_is_no_room() -> None:
    story, wishes = spell()
    assert keys(story.after("10m"), wishes, "c") == ["c", NOTICE]  # there was room for it in this tick
    story, wishes = spell()
    assert keys(story.after("599s"), wishes, "c") == ["c"]
    assert keys(story.after("2s"), wishes) == []
    assert story.verdict.tick_ms == 60_000
    assert keys(story.after("58s"), wishes) == [NOTICE]


@pytest.mark.parametrize("match", ["notify:*", NOTICE])
def test_its_own_notices_keep_silent_when_they_are_to(match: str) -> None:
    story, wishes = limited(1)
    story.event(SilenceAdded(expires_us=3_600_000_000), match, actor="ada")
    assert keys(story, wishes, "a", "b") == ["a"]
    assert "1 action held back" in story.layers[-1].notes[0]


def test_its_word_that_it_is_over_keeps_silent_too() -> None:
    story, wishes = spell()
    story.event(SilenceAdded(expires_us=3_600_000_000), NOTICE, actor="ada")
    assert keys(story.after("11m"), wishes) == []
    assert keys(story.after("1h"), wishes) == [NOTICE]


def test_what_the_budget_had_held_back_says_so() -> None:
    story, wishes = limited(2)
    assert keys(story, wishes, "a", "b") == ["a", "b"]
    story.raised("condition")
    story.after("10s")
    assert keys(story, wishes, "condition") == [NOTICE]
    story.after("51s")
    assert keys(story, wishes, "condition") == ["condition"]
    assert (
        story.expect("note", key="condition").reason == "; held back until now: 2 actions a minute were spent"
    )
