"""`upulse task pull-request`: what an agent has done, for people to look at."""

from typing import Annotated

import typer

from upulse_cli.capabilities.tasks.commands import Task, tasks
from upulse_cli.capabilities.tasks.current import current_tasks
from upulse_cli.options import HomeDir, open_home
from upulse_cli.output import put


@tasks.command("pull-request")
def pull_request(
    task: Task,
    title: Annotated[str, typer.Option("--title", help="Else the task's.")] = "",
    body: Annotated[str, typer.Option("--body", help="Else what came of the task.")] = "",
    draft: Annotated[bool, typer.Option("--draft", help="It is not ready for review.")] = False,
    home: HomeDir = None,
) -> None:
    """Open a pull request for a task's branch.

    Prints where it is; one that is there is printed again. The daemon opens it, by the GitHub CLI (`gh`); the branch must
    be pushed.
    """
    from pulse_core.agents.actions import OPEN_PULL_REQUEST
    from pulse_core.app.effects import add_effect
    from pulse_core.app.follow import settled
    from pulse_core.model.errors import PulseError
    from pulse_core.tasks.listing import find_task

    where = open_home(home)
    params = {"task": find_task(current_tasks(where), task).id, "title": title, "body": body, "draft": draft}
    name = OPEN_PULL_REQUEST.name
    wish = {"action": name, "key": f"{name}:{params['task']}", "params": params}
    outcome = settled(where, str(add_effect(where, wish, to_wait=True).event["id"]))
    if outcome["kind"] != "effect-acked":
        raise PulseError(outcome["data"].get("error") or outcome["data"].get("why") or outcome["kind"])
    put(outcome["data"]["result"]["url"])
