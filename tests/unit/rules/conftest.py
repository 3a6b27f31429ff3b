"""A rule that raises is passed over, as on a real machine; in a test of that rule nobody may overlook it."""

import pytest

from pulse_core.model.verdict import Verdict
from pulse_core.testing import Story

TICK = Story.tick


def tick(story: Story) -> Verdict:
    verdict = TICK(story)
    raised = [f"{layer.rule}: {layer.notes}" for layer in story.layers if layer.outcome == "error"]
    assert not raised, f"rules raised: {raised}"
    return verdict


@pytest.fixture(autouse=True)
def _no_rule_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Story, "tick", tick)
