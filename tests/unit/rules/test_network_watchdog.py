"""`network_watchdog`: told once, told again when it gets worse, called off, across restarts."""

import pytest

from pulse_core.rules.survival.network_watchdog import network_watchdog
from pulse_core.testing import Story, given

NETWORK = {"network": {"dns": ["one.example"]}}


def a_story() -> Story:
    return given(network_watchdog, settings=NETWORK)


def told(story: Story) -> list[str]:
    """The titles of what the last tick told."""
    return [str(effect.params["title"]) for effect in story.emitted]


def settle(story: Story) -> None:
    for effect in story.emitted:
        story.acked(effect.key)


@pytest.mark.parametrize(
    ("state", "key", "title"),
    [
        ("down", "notify:network", "the network is down"),
        ("dns-only", "notify:network", "names do not resolve, though the network works"),
        ("http-only", "notify:network", "names resolve, but no page can be fetched"),
        ("slow", "notify:network:quality", "the network is slow"),
        ("degraded", "notify:network:quality", "a target on the network is in trouble"),
        ("of-tomorrow", "notify:network:quality", "the network is not as it should be"),
    ],
)
def test_each_way_of_being_wrong_is_told_once(state: str, key: str, title: str) -> None:
    story = a_story()
    story.raised("network", state, "one.example: nobody answered")
    story.tick()
    effect = story.expect("notify", key=key, title=title, text="one.example: nobody answered")
    assert effect.survival
    story.acked(key)
    story.expect_note(f"network: {state}")
    assert story.ticks(every="1m", times=60) == []


def test_nothing_is_told_of_a_network_that_is_well() -> None:
    story = a_story()
    story.tick()
    story.expect_nothing()


def test_what_was_told_is_called_off() -> None:
    story = a_story()
    story.raised("network", "down")
    story.tick()
    settle(story)
    story.after("1h").cleared("network")
    story.tick()
    assert told(story) == ["resolved: the network"]


def test_in_safe_mode_nobody_knows_whether_it_is_over() -> None:
    story = a_story()
    story.raised("network", "down")
    story.tick()
    settle(story)
    story.after("1h").cleared("network", gone := "safe mode leaves it out", unwatched=True)
    story.tick()
    story.expect("notify", over=True, title="no longer watched: the network", text=gone)
    settle(story)
    assert story.ticks(every="1m", times=10) == []


def test_what_is_wrong_is_told_by_the_newest_round() -> None:
    """Other targets may be in trouble by then than when it was raised."""

    def round_of(story: Story, **wrong: str) -> None:
        answers = {name: {"ok": name not in wrong, "latency_ms": 3.0} for name in ("a", "b")}
        targets = {name: {**one, "detail": wrong.get(name, "")} for name, one in answers.items()}
        story.sample("network", state="degraded" if wrong else "", streak=3, targets=targets)

    story = a_story()
    round_of(story, a="it answered 503")
    story.raised("network", "degraded", "the network works, but a: it answered 503")
    story.tick()
    story.expect("notify", text="the network works, but a: it answered 503")
    settle(story)
    round_of(story.after("20s"), b="the connection is refused")
    story.tick()
    head = "the network works, but not every target answers as it should"
    story.expect_note(f"{head}: b: the connection is refused")
    round_of(story.after("20s"))
    story.tick()
    story.expect_note(
        "every target answered when it was asked last: a: answered in 3 ms; b: answered in 3 ms"
    )


def test_worse_is_told_again_and_better_is_told_too() -> None:
    story = a_story()
    for state, titles in (
        ("degraded", ["a target on the network is in trouble"]),
        ("down", ["the network is down"]),
        ("dns-only", []),
        ("slow", ["resolved: the network"]),
        ("down", ["the network is down"]),
    ):
        story.after("10m").raised("network", state)
        story.tick()
        assert told(story) == titles
        settle(story)
    story.cleared("network")
    story.tick()
    assert told(story) == ["resolved: the network", "resolved: the quality of the network"]


def test_people_are_reminded_of_what_lasts() -> None:
    story = a_story()
    story.raised("network", "down")
    story.tick()
    settle(story)
    assert [effect.params["title"] for effect in story.ticks(every="4h", times=1)] == [
        "still: the network is down"
    ]


def test_a_restart_of_pulse_neither_forgets_nor_repeats() -> None:
    story = a_story()
    story.raised("network", "down")
    story.tick()
    settle(story)
    story.restart().tick()
    story.expect_nothing()
    story.cleared("network")
    story.restart().tick()
    assert told(story) == ["resolved: the network"]
