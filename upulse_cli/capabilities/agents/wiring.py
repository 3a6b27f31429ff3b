"""Whether an agent's program is here and logged in: asked as it is documented, in the environment that it will have."""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.agents.run_tokens import user_fault
from pulse_adapters.workers.environment import selected_variables
from pulse_adapters.workers.program_runner import ask_program
from pulse_adapters.workers.spawn import may_reach
from pulse_adapters.workers.users import process_user
from pulse_core.agents.settings import AgentSettings
from pulse_core.agents.tools import TOOLS

SECONDS = 60.0
"""Hermes takes half a minute the first time."""


class Presence(NamedTuple):
    """What was found of one agent."""

    agent: str
    is_well: bool
    words: str


def presence_of(agent: AgentSettings, workspaces: Path = Path("/")) -> Presence:
    """Look for its program, and ask it, as its user, for its version and whether it is logged in."""
    if fault := user_fault(agent.user, workspaces):
        return Presence(agent.name, False, fault)
    tool, user = TOOLS[agent.kind], process_user(agent.user)
    env = {**selected_variables(*agent.pass_env), **(user.environment if user else {}), **agent.env}
    program = agent.command[0] if agent.command else tool.program
    where = env.get("PATH", os.defpath)
    if (path := shutil.which(program, path=where)) is None:
        return Presence(agent.name, False, f"there is no program {program!r} in {where}")
    if user and not may_reach(user, os.path.realpath(path)):
        return Presence(agent.name, False, f"{user.name} may not execute {path}, or enter its folder")
    said = path
    for words, missing in ((tool.version, "it does not start"), (tool.login, "it is not logged in")):
        if words:
            code, told = ask_program((path, *agent.command[1:], *words), env, user, SECONDS)
            lines = told.splitlines() or [f"exit {code}"]
            if code != 0:
                why = f"{missing}: {lines[-1][:200]}" if code is not None else told
                return Presence(agent.name, False, f"{path}: {why}")
            if words is tool.login and not re.search(tool.logged_in, told):
                return Presence(agent.name, False, f"{path}: {missing}: it names no provider that it may use")
            said += ", logged in" if words is tool.login else f", {lines[0][:200]}"
    return Presence(agent.name, True, said)
