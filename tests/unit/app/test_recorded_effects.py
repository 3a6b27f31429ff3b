"""What the log tells of the effects that the engine's rules requested."""

from pathlib import Path

from pulse_core.app.engine.effect_diff import recorded_effects
from pulse_core.app.redact import redact, redactable
from pulse_core.model.kinds import Effect, EffectCancelled
from tests.unit.app.home_scene import Scene


def test_an_effect_that_was_redacted_is_passed_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for tick, key in enumerate(("a", "b"), 1):
        wish = scene.at(tick, Effect(action="note", key=key, rule="mine", tick=tick), key)
        scene.at(tick, EffectCancelled(why="enough"), str(wish["id"]))
    first = scene.rows()[0]
    assert [one.key for one in recorded_effects(scene.home, 0, 1, 2)] == ["a", "b"]
    redact(scene.home, redactable(scene.home, [first.id]), "it held a secret")
    assert [one.key for one in recorded_effects(scene.home, 0, 1, 2)] == ["b"]
