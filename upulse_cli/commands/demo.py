"""`upulse demo`: break something harmless, and see the answer."""

from typing import Annotated

import typer

from pulse_core.model.text import one_line
from upulse_cli.options import completed_by
from upulse_cli.output import draw, put, say


def demo(
    scene: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENE", help="Which one; else they are listed.", autocompletion=completed_by("scenes")
        ),
    ] = None,
) -> None:
    """Break something harmless and see the answer.

    Plays in a home of its own with a daemon of its own, and leaves nothing behind.
    """
    from pulse_core.app.demo import SCENES, play, scene_called
    from upulse_cli.views.events import line
    from upulse_cli.views.incidents import tree
    from upulse_cli.wiring.demo import demo_stage

    if scene is None:
        for name, one in SCENES.items():
            put(f"{name:<8}{one.about}")
        return
    chosen = scene_called(scene)
    say(f"{scene}: {chosen.about}")
    with demo_stage(chosen) as stage:
        answer = play(chosen, stage)
    say(f"what goes wrong: {answer.broken}")
    for event in answer.events:
        put(one_line(line(event)))
    draw(tree(answer.incidents, "since the scene began"))
