"""`upulse run`: what agents print."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import HomeDir, group, open_home
from upulse_cli.output import say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

runs = group("Runs of agents: what they print.")

LOOK_S, PIECE = 0.2, 1 << 16


@runs.callback()
def of_runs() -> None:
    """Runs of agents: what they print."""


@runs.command()
def logs(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Its id, or enough of its beginning or end.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for a run, and go on until it ends.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Print what the last run of a task has printed."""
    from pulse_core.agents.events import AgentRunEnded, AgentRunStarted
    from pulse_core.agents.run_files import RunFolder
    from pulse_core.app.state import current_value
    from pulse_core.model.errors import PulseError
    from pulse_core.tasks.listing import find_task
    from pulse_core.tasks.projection import TASKS

    where = open_home(home)
    id_ = find_task(current_value(where, TASKS), task).id
    while not (found := runs_with(where, id_, AgentRunStarted.kind)):
        if not follow:
            raise PulseError(f"no agent has been at {id_} yet")
        time.sleep(LOOK_S)
    output = RunFolder.of(where.layout.path, found[-1]).output
    if not output.is_file():
        return say("What it has printed is not kept any more.")
    at = show(output, 0)
    while follow and found[-1] not in runs_with(where, id_, AgentRunEnded.kind):
        time.sleep(LOOK_S)
        at = show(output, at)
    show(output, at)
    return None


def show(output: Path, at: int) -> int:
    """Print what was printed from there on; returns where it ends by now."""
    with output.open("rb") as file:
        file.seek(at)
        while piece := file.read(PIECE):
            sys.stdout.buffer.write(piece)
            at += len(piece)
    sys.stdout.flush()
    return at


def runs_with(home: "HomeContext", task: str, kind: str) -> list[str]:
    """The ids of the task's runs to which this has happened, the newest last."""
    from pulse_core.model.payload import decode_plain
    from pulse_core.ports.readers import EventQuery

    with home.events() as log:
        found = log.events(EventQuery(subject=task, kinds=(kind,)))
        return [str(decode_plain(event.data).get("run")) for event in found]
