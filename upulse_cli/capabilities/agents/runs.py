"""`upulse run`: what agents print."""

import time
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.capabilities.tasks.commands import Task
from upulse_cli.capabilities.tasks.current import current_tasks, events_about
from upulse_cli.options import AsJson, HomeDir, group, open_home
from upulse_cli.output import put, put_line, say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

runs = group("Runs of agents: what they print.")

LOOK_S, PIECE = 0.2, 1 << 20


@runs.command()
def logs(
    task: Task,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for a run, until it ends.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Print what the last run of a task has printed.

    With --json a line for each piece, which has the run and the text of that.
    """
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
    run, decoder = found[-1], getincrementaldecoder("utf-8")("replace")

    def show(raw: bytes, is_last: bool = False) -> None:
        text = decoder.decode(raw, is_last)
        if as_json and text:
            put_line({"task": id_, "run": run, "text": text})
        elif text:
            put(text, end="")

    try:
        file = RunFolder.of(where.layout.path, run).output.open("rb")
    except FileNotFoundError:
        if not (kept := said_of(where, run, AgentRunPrinted.kind, "text")):
            return say("What it has printed is not kept any more.")
        return show(kept[-1].encode(), is_last=True)
    with file:
        is_over = False
        while not is_over:
            is_over = not follow or run in said_of(where, id_, AgentRunEnded.kind)
            while piece := file.read(PIECE):
                show(piece)
            time.sleep(0 if is_over else LOOK_S)
    return show(b"", is_last=True)


def said_of(home: "HomeContext", subject: str, kind: str, name: str = "run") -> list[str]:
    """What the events of this kind about a task, or a run, say under this name, the newest last."""
    return [str((event["data"] or {}).get(name, "")) for event in events_about(home, subject, kind)]
