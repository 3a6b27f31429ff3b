"""What runs have left behind is ended, or told once, if it is old enough and its run is over."""

from typing import Any

from pulse_core.agents.listing import runs_json
from pulse_core.agents.rules import ORPHANS, end_orphans
from pulse_core.testing import Story, given

MINUTE = 60_000_000


def a_story(age_minutes: int = 11, **agents: Any) -> Story:
    seen = {"effect": "run-1", "agent": "ada", "started": 5, "age_us": age_minutes * MINUTE, "memory": 4_096}
    return given(end_orphans, settings={"agents": agents}).sample(ORPHANS, **{"77": seen})


def test_by_default_it_is_recorded_once_what_would_be_ended() -> None:
    story = a_story()
    story.tick()
    wished = story.expect(
        "end-agent-orphan", key="end-agent-orphan:77:5:dry", run="run-1", pid=77, dry_run=True
    )
    assert wished.reason == "ada has left process 77 behind: its run is over, and its parent is gone"
    story.acked(wished.key)
    story.after("1h").tick()
    story.expect_nothing()


def test_where_that_is_wanted_it_is_ended_and_tried_again_after_a_pause() -> None:
    story = a_story(orphans="end")
    story.tick()
    wished = story.expect("end-agent-orphan", key="end-agent-orphan:77:5", dry_run=False)
    story.failed(wished.key)
    story.after("59s").tick()
    story.expect_nothing()
    story.after("1s").tick()
    story.expect("end-agent-orphan")


def test_what_is_young_is_left_alone() -> None:
    story = a_story(age_minutes=9, orphans="end")
    story.tick()
    story.expect_nothing()


def test_how_old_it_must_be_the_settings_say() -> None:
    story = a_story(age_minutes=9, orphans="end", orphan_age="9m")
    story.tick()
    story.expect("end-agent-orphan")


def test_it_is_listed_among_the_runs() -> None:
    (left,) = runs_json(a_story().snapshot)
    assert (left["run"], left["agent"], left["pid"], left["memory"], left["stop"]) == (
        "run-1", "ada", 77, 4_096, "is left behind"
    )  # fmt: skip
    assert left["took_s"] == 660
