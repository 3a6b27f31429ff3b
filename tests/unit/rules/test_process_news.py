"""What people are told of a guarded process: once, again after a while, and when it is over."""

import pytest

from pulse_core.model.kinds import (
    ProcessDied,
    ProcessStartRequested,
    ProcessStopRequested,
    ProcessUp,
)
from pulse_core.model.moment import iso
from pulse_core.projections.processes import STAYED_US
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.testing import Story, given

RESTART = "restart-process:gateway"
DOWN, UP = "notify:flapping:gateway", "notify:stop:gateway"
MINUTE_US, DAY_US = 60_000_000, 86_400_000_000


def guarded(**restart: object) -> Story:
    """A gateway that is up, with a budget of one restart."""
    how = {"max": 1, "backoff": "1m", "backoff_max": "1m", "healthy_after": "2m", "within": "2m", **restart}
    process = {"name": "gateway", "start": ["g"], "restart": how}
    story = given(process_watchdog, settings={"process": [process], "notify": {"remind": "1h"}})
    come_up(story)
    return story


def come_up(story: Story) -> None:
    story.event(ProcessUp(pid=1, started=1, evidence="it is alive"), "gateway")


def die(story: Story, healthy: bool = False) -> None:
    story.event(ProcessDied(pid=1, evidence="gone", healthy=healthy), "gateway")


def flapping() -> Story:
    """A gateway whose one restart did not help, of which people are told."""
    story = guarded()
    die(story, healthy=True)
    story.tick()
    story.expect("restart-process")
    story.acked(RESTART, pid=2, started=2)
    come_up(story)
    die(story)
    story.tick()
    assert told(story) == ["gateway stays down"]
    story.acked(DOWN)
    return story


def told(story: Story) -> list[str]:
    return [str(effect.params["title"]) for effect in story.emitted if effect.action == "notify"]


def test_a_notice_which_is_read_later_says_at_what_time_it_is_tried_next() -> None:
    story = guarded()
    die(story, healthy=True)
    story.tick()
    story.acked(RESTART, pid=2, started=2)
    come_up(story)
    die(story)
    story.tick()
    (notice,) = (effect for effect in story.emitted if effect.action == "notify")
    again = iso(story.now.plus(MINUTE_US).at)[:19].replace("T", " ")
    assert notice.params["text"] == f"dead after 1 restart: gone; next try at {again} UTC"


def test_who_was_told_that_it_stays_down_is_reminded() -> None:
    story = flapping()
    story.after("59m").tick()
    assert told(story) == []
    story.failed(RESTART)
    story.after("1m").tick()
    assert told(story) == ["still: gateway stays down"]


@pytest.mark.parametrize(
    ("lived", "title"), [("5m", "again: gateway stays down"), ("1s", "still: gateway stays down")]
)
def test_a_reminder_of_one_that_was_up_for_a_while_does_not_say_that_it_is_still_down(
    lived: str, title: str
) -> None:
    story, said = guarded(within="5h"), list[str]()
    for number in range(12):
        die(story, healthy=number > 0 and lived == "5m")
        for _ in range(200):
            story.after("1m").tick()
            if told(story):
                said += told(story)
                story.acked(DOWN)
            if any(effect.action == "restart-process" for effect in story.emitted):
                break
        story.acked(RESTART, pid=number + 2, started=number + 2)
        come_up(story)
        story.after(lived)
    assert (said[0], {*said[1:]}) == ("gateway stays down", {title})


@pytest.mark.parametrize("was", ["", "; it was up by then, for 1 s"])
def test_of_what_is_taken_out_of_the_settings_it_is_told_that_nobody_looks(was: str) -> None:
    story = flapping()
    if was:
        story.after("5m")
        come_up(story)
    story.settings = story.settings.model_copy(update={"process": ()})
    story.after("1s").tick()
    gone = f"gateway is not guarded any more{was}"
    title = "no longer watched: gateway stays down"
    story.expect("notify", key=DOWN, over=True, unwatched=True, title=title, text=gone)
    story.acked(DOWN)
    assert story.ticks(every="1h", times=5) == []


def test_it_is_over_when_it_has_been_up_long_enough_and_that_is_not_missed() -> None:
    story = flapping()
    story.after("5m")
    come_up(story)
    story.tick()
    assert told(story) == []
    assert story.verdict.tick_ms == 120_001
    story.after("2m").tick()
    notice = story.expect("notify", key=DOWN, over=True)
    assert notice.params["title"] == "resolved: gateway stays down"
    up = iso(story.snapshot.process("gateway").up.at)[:19].replace("T", " ")  # type: ignore[union-attr]
    assert notice.params["text"] == f"gateway is up for 2 min, since {up} UTC"
    story.acked(DOWN)
    assert story.ticks(every="1h", times=5) == []


def test_coming_up_for_a_moment_is_no_end() -> None:
    story, words = flapping(), []
    for _ in range(20):
        story.after("1m")
        come_up(story)
        story.tick()
        words += told(story)
        die(story)
        story.after("1s").tick()
        words += told(story)
    assert words == []


@pytest.mark.parametrize("restart", [False, True])
def test_another_episode_is_told_at_once_even_if_nobody_heard_the_end_of_the_first(restart: bool) -> None:
    story = flapping()
    come_up(story)
    if restart:
        story.restart()
    story.after("5m")  # while Pulse is down
    die(story, healthy=True)
    story.tick()
    assert told(story) == []
    story.acked(RESTART, pid=3, started=3)
    come_up(story)
    die(story)
    story.tick()
    assert told(story) == ["gateway stays down"]


def test_a_fresh_budget_by_hand_that_does_not_help_is_told() -> None:
    story = flapping()
    story.after("1m").event(ProcessStartRequested(), "gateway")
    story.tick()
    story.expect("restart-process")
    story.acked(RESTART, pid=3, started=3)
    come_up(story)
    die(story)
    story.after("1s").tick()
    assert told(story) == ["gateway stays down"]


def unwanted() -> Story:
    """A gateway that a person wanted down, that went down, and that somebody has started again."""
    story = guarded()
    story.event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    story.tick()
    story.acked("stop-process:gateway")
    die(story)
    story.after("61s").tick()
    come_up(story)
    story.tick()
    story.expect("notify", key=UP, title="gateway does not stay down")
    story.acked(UP)
    return story


def test_who_was_told_that_it_does_not_stay_down_is_reminded() -> None:
    story = unwanted()
    story.after("1h").tick()
    assert told(story) == ["still: gateway does not stay down"]


def test_that_it_does_not_stay_down_is_over_when_it_has_stayed_down() -> None:
    story = unwanted()
    die(story)
    story.tick()
    assert told(story) == []
    assert story.verdict.tick_ms == STAYED_US // 1000 + 1
    story.after("1m").tick()
    assert told(story) == ["resolved: gateway does not stay down"]


def test_that_it_does_not_stay_down_is_over_when_nobody_wants_that_any_more() -> None:
    story = unwanted()
    story.event(ProcessStartRequested(), "gateway")
    story.tick()
    assert story.expect("notify", key=UP, over=True).params["text"] == "nobody wants gateway down any more"


def test_a_new_stop_that_does_not_last_is_told_of_again() -> None:
    story = unwanted()
    story.after("1m").event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    story.tick()
    story.acked("stop-process:gateway")
    die(story)
    story.after("61s").tick()
    assert told(story) == ["resolved: gateway does not stay down"]
    story.acked(UP)
    come_up(story)
    story.after("1s").tick()
    assert told(story) == ["gateway does not stay down"]


def stubborn(story: Story) -> list[str]:
    """What people are told while it stays up, however often it is stopped."""
    story.event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    words = []
    for _ in range(20):
        story.tick()
        words += told(story)
        for effect in story.emitted:
            story.acked(effect.key)
        story.after("30s")
    return words


def test_what_no_stop_brings_down_is_told_as_what_does_not_stay_down() -> None:
    assert stubborn(guarded()) == ["gateway does not stay down"]


def test_of_another_stop_that_does_not_help_people_are_told_anew() -> None:
    story = guarded()
    stubborn(story)
    assert stubborn(story) == ["gateway does not stay down"]


def test_it_is_over_to_the_microsecond() -> None:
    story = flapping()
    come_up(story)
    story.now = story.now.plus(120_000_000 - 1)
    story.tick()
    assert (told(story), story.verdict.tick_ms) == ([], 1)
    story.now = story.now.plus(1)
    story.tick()
    assert told(story) == ["resolved: gateway stays down"]


def test_it_has_stayed_down_to_the_microsecond() -> None:
    story = unwanted()
    die(story)
    story.now = story.now.plus(STAYED_US - 1)
    story.tick()
    assert (told(story), story.verdict.tick_ms) == ([], 1)
    story.now = story.now.plus(1)
    story.tick()
    assert story.expect("notify", key=UP, over=True).params["text"] == "gateway is down"


def test_of_what_nobody_was_told_no_end_is_waited_for() -> None:
    story = guarded()
    story.event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    story.tick()
    story.acked("stop-process:gateway")
    die(story)
    story.tick()
    assert story.verdict.tick_ms == DAY_US // 1000


def test_what_its_manager_is_bringing_back_has_not_stayed_down() -> None:
    story = unwanted()
    story.event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    story.event(ProcessDied(pid=1, evidence="gone", healthy=False, recovering=True), "gateway")
    story.after("61s").tick()
    assert told(story) == []


def test_that_it_does_not_stay_down_is_over_when_that_wish_expires() -> None:
    story = unwanted()
    story.after("24h").tick()
    assert story.expect("notify", key=UP, over=True).params["text"] == "nobody wants gateway down any more"


def test_what_is_up_and_is_to_go_down_is_not_called_well() -> None:
    story = flapping()
    come_up(story)
    story.event(ProcessStopRequested(expires_us=DAY_US), "gateway")
    story.after("3m").tick()
    assert told(story) == []
