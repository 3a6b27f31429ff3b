"""What `why` tells of an effect, as values and as a tree."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from pulse_core.app.why import why
from pulse_core.model.kinds import Effect, EffectAcked, EffectExecuting, ProcessDied, ProcessStopRequested
from tests.unit.app.home_scene import Scene
from upulse_cli.views.why import tree

KEY = "restart-process:web"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def shown(scene: Scene, name: str | None = None) -> Sequence[str]:
    """The lines of `why`, without the branches of the tree."""
    console = Console(width=300)
    with console.capture() as captured:
        console.print(tree(why(scene.home, name).spelled()))
    return [line.strip("│├└─ ") for line in captured.get().splitlines()]


def restart(scene: Scene, *samples: int) -> Effect:
    return Effect(
        action="restart-process", key=KEY, params={"process": "web"}, reason="web is dead", samples=samples
    )


def test_all_steps_are_told_in_the_order_of_time(scene: Scene) -> None:
    scene.at(1, ProcessDied(pid=1, evidence="gone", healthy=True), "web")
    sample = asyncio.run(scene.sample(30, "process-alive", {"web": {"pid": None}}))
    id_ = str(scene.at(31, restart(scene, sample), KEY)["id"])
    scene.at(32, EffectExecuting(attempt=1), id_)
    scene.at(33, EffectAcked(took_us=5), id_)
    lines = shown(scene, "web")
    found = [next(place for place, line in enumerate(lines) if word in line) for word in STEPS]
    assert found == sorted(found)


STEPS = ("process-died", "process-alive #", "restart-process, requested", "attempt 1")


def test_a_long_kind_is_apart_from_its_subject(scene: Scene) -> None:
    scene.at(1, ProcessStopRequested(expires_us=1), "web")
    scene.at(2, restart(scene), KEY)
    assert any("process-stop-requested web" in line for line in shown(scene, "web"))
