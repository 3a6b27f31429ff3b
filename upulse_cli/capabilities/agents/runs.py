"""`upulse run`: what agents print."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.capabilities.tasks.commands import Task
from upulse_cli.capabilities.tasks.current import current_tasks
from upulse_cli.options import HomeDir, group, open_home
from upulse_cli.output import put, say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

runs = group("Runs of agents: what they print.")

LOOK_S = 0.2


@runs.command()
def logs(
    task: Task,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for a run, and go on until it ends.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Print what the last run of a task has printed."""
    from pulse_core.agents.events import AgentRunEnded, AgentRunPrinted, AgentRunStarted
    from pulse_core.agents.run_files import RunFolder
    from pulse_core.model.errors import PulseError
    from pulse_core.tasks.listing import find_task

    where = open_home(home)
    id_ = find_task(current_tasks(where), task).id
    while not (found := said_of(where, id_, AgentRunStarted.kind)):
        if not follow:
            raise PulseError(f"no agent has been at {id_} yet")
        time.sleep(LOOK_S)
    output = RunFolder.of(where.layout.path, found[-1]).output
    if not output.is_file():
        kept = said_of(where, found[-1], AgentRunPrinted.kind, "text")
        return put(kept[-1]) if kept else say("What it has printed is not kept any more.")
    at = show(output, 0)
    while follow and found[-1] not in said_of(where, id_, AgentRunEnded.kind):
        time.sleep(LOOK_S)
        at = show(output, at)
    show(output, at)
    return None


def show(output: Path, at: int) -> int:
    """Print what was printed from there on; returns where it ends by now."""
    with output.open("rb") as file:
        file.seek(at)
        shutil.copyfileobj(file, sys.stdout.buffer)
        at = file.tell()
    sys.stdout.flush()
    return at


def said_of(home: "HomeContext", subject: str, kind: str, name: str = "run") -> list[str]:
    """What the events of this kind about a task, or a run, say under this name, the newest last."""
    from pulse_core.model.payload import decode_plain
    from pulse_core.ports.readers import EventQuery

    with home.events() as log:
        found = log.events(EventQuery(subject=subject, kinds=(kind,)))
        return [str(decode_plain(event.data).get(name, "")) for event in found]
