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
    from pulse_core.agents.run_files import RunFolder
    from pulse_core.app.state import current_value
    from pulse_core.model.errors import PulseError
    from pulse_core.tasks.listing import find_task
    from pulse_core.tasks.projection import TASKS

    where = open_home(home)
    id_ = find_task(current_value(where, TASKS), task).id
    while (run := last_run(where, id_)) is None:
        if not follow:
            raise PulseError(f"no agent has been at {id_} yet")
        time.sleep(LOOK_S)
    output = RunFolder.of(where.layout.path, run).output
    if not output.is_file():
        return say("What it has printed is not kept any more.")
    at = show(output, 0)
    while follow and not has_ended(where, id_, run):
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


def last_run(home: "HomeContext", task: str) -> str | None:
    """The id of the newest run of a task."""
    from pulse_core.agents.events import AgentRunStarted
    from pulse_core.model.payload import decode_plain
    from pulse_core.ports.readers import EventQuery

    with home.events() as log:
        found = list(log.events(EventQuery(subject=task, kinds=(AgentRunStarted.kind,))))
    return str(decode_plain(found[-1].data)["run"]) if found else None


def has_ended(home: "HomeContext", task: str, run: str) -> bool:
    """Whether this run has ended."""
    from pulse_core.agents.events import AgentRunEnded
    from pulse_core.model.payload import decode_plain
    from pulse_core.ports.readers import EventQuery

    with home.events() as log:
        ended = log.events(EventQuery(subject=task, kinds=(AgentRunEnded.kind,)))
        return any(decode_plain(event.data).get("run") == run for event in ended)
