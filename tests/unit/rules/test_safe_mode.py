"""`safe_mode`: each time that more is left out is told."""

import pytest

from pulse_core.model.kinds import EnginePromoted, SafeModeEntered, SafeModeLeft
from pulse_core.rules.survival.safe_mode import safe_mode
from pulse_core.testing import given


def test_a_start_that_leaves_out_more_is_told_and_one_that_leaves_out_the_same_is_not() -> None:
    story, key = given(safe_mode), "notify:safe-mode"
    left_out = ["plugins"]
    for crashes, more in enumerate(("engine", "optional watchers"), 3):
        story.event(SafeModeEntered(crashes=crashes, left_out=tuple(left_out)))
        story.tick()
        story.expect("notify", key=key, title=f"Pulse runs in safe mode, without {', '.join(left_out)}")
        story.acked(key)
        story.after("1m").event(SafeModeEntered(crashes=crashes, left_out=tuple(left_out)))
        assert story.ticks(every="1s", times=2) == []
        left_out.append(more)
    story.event(SafeModeLeft())
    story.tick()
    story.expect("notify", key=key, title="resolved: safe mode")


@pytest.mark.parametrize(
    ("commits", "offered", "not_offered"),
    [
        ("", "run everything again", "upulse rollback"),
        ("a", "upulse engine disable", "upulse rollback"),
        ("ab", "upulse rollback", "disable"),
    ],
    ids=["no engine", "its first commit", "one before it"],
)
def test_only_what_is_possible_is_offered(commits: str, offered: str, not_offered: str) -> None:
    story = given(safe_mode)
    for number, commit in enumerate(commits):
        previous = commits[number - 1] * 40 if number else ""
        story.event(EnginePromoted(previous=previous, watch_us=1), commit * 40)
    story.event(SafeModeEntered(crashes=3, left_out=("plugins",)))
    story.tick()
    text = str(story.expect("notify", key="notify:safe-mode").params["text"])
    assert offered in text
    assert not_offered not in text
