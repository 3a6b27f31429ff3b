"""Somebody is told of a process that dies again and again."""

from pulse_core.testing import Story, given

from engine import PROJECTIONS
from projections.deaths import TOO_MANY
from rules.too_many_deaths import too_many_deaths


def died(times: int, guarded: tuple[str, ...] = ("gateway", "worker")) -> Story:
    """A day on which the gateway died so often."""
    processes = [{"name": name, "start": [name]} for name in guarded]
    story = given(too_many_deaths, settings={"process": processes}, projections=PROJECTIONS)
    die(story, times)
    return story


def die(story: Story, times: int) -> None:
    """The gateway dies so often."""
    for _ in range(times):
        story.after("1m").happened("process-died", "gateway", pid=7, evidence="gone", healthy=True)


def test_a_few_deaths_are_nothing_to_tell() -> None:
    story = died(TOO_MANY - 1)
    story.tick()
    story.expect_nothing()


def test_too_many_deaths_are_told_once() -> None:
    story = died(TOO_MANY)
    story.tick()
    notice = story.expect("notify", key="notify:deaths:gateway")
    assert notice.params["title"] == "gateway went down 5 times on 2026-09-21 (UTC)"
    assert notice.params["title"] not in notice.params["text"]
    story.acked(notice.key)
    assert not story.ticks(every="1h", times=8), "nothing reminds of what was told"


def test_more_deaths_are_told_once_there_are_twice_as_many() -> None:
    story = died(TOO_MANY)
    story.tick()
    story.acked("notify:deaths:gateway")
    die(story, TOO_MANY - 1)
    story.tick()
    story.expect_nothing()
    die(story, 1)
    story.tick()
    notice = story.expect("notify", key="notify:deaths:gateway")
    assert notice.params["title"] == "gateway went down 10 times on 2026-09-21 (UTC)"


def test_who_is_not_guarded_any_more_is_not_told_of() -> None:
    story = died(TOO_MANY, guarded=("worker",))
    story.tick()
    story.expect_nothing()


def test_each_day_counts_for_itself() -> None:
    story = died(TOO_MANY - 1).after("1d")
    story.happened("process-died", "gateway", pid=7, evidence="gone", healthy=True)
    story.tick()
    story.expect_nothing()


def test_each_process_counts_for_itself() -> None:
    story = died(TOO_MANY - 1)
    story.happened("process-died", "worker", pid=8, evidence="gone", healthy=True)
    story.tick()
    story.expect_nothing()


def test_who_was_not_there_at_the_first_look_did_not_die() -> None:
    story = died(TOO_MANY - 1)
    story.happened("process-died", "gateway", pid=None, evidence="not there at the first look", healthy=True)
    story.tick()
    story.expect_nothing()
