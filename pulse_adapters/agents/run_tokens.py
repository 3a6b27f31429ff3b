"""Tokens of runs: who presents one over the socket speaks for that run, and for nobody else.

A token is random and lies in the run's folder alone, and in the environment of the program; so none is known of a run whose
folder is gone.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import read_plain
from pulse_adapters.workers.spawn import ProcessUser, may_reach
from pulse_adapters.workers.users import process_user, user_name
from pulse_core.agents.projection import RUNS
from pulse_core.agents.run_files import RunFolder
from pulse_core.agents.run_scope import RunScope
from pulse_core.agents.settings import AGENTS
from pulse_core.capability import WatcherContext
from pulse_core.model.errors import PulseError, Refused
from pulse_core.tasks.settings import SETTINGS

_RUN, _LONGEST = re.compile(r"[0-9a-f-]{1,100}"), 1_000


def new_run_token(run: str, task: str, claim: int, agent: str) -> str:
    """A token of this run."""
    return f"{run}:{task}:{claim}:{agent}:{secrets.token_urlsafe(24)}"


def run_socket(home: Path, user: ProcessUser) -> Path:
    """Where runs of a user other than the daemon's are answered, who may enter no home: where all may go, and root makes."""
    return Path(f"/run/pulse-{hashlib.sha256(os.fsencode(home)).hexdigest()[:12]}-{user.name}/pulse.sock")


def run_sockets(context: WatcherContext) -> Mapping[Path, int]:
    """Those sockets of the agents, each with the group of its user."""
    found = dict[Path, int]()
    for agent in AGENTS.of(context.settings()):
        with suppress(PulseError):  # it can't be started then, which is said
            if user := process_user(agent.user):
                found[run_socket(context.home.path, user)] = user.gid
    return found


def user_fault(name: str, above: Path) -> str:
    """Why no agent can be started as this user; empty if it can. above: the folder of all workspaces."""
    try:
        user = process_user(name)
    except PulseError as fault:
        return str(fault)
    there = next(one for one in (above, *above.parents) if not user or one.exists())
    can_work = user is None or may_reach(user, str(there))
    return "" if can_work else f"{name} may not enter {there}; name another folder in [agents] workspaces"


def run_scopes(context: WatcherContext) -> Callable[[int, int, str], Awaitable[RunScope | None]]:
    """Tells by pid, uid and token of a caller to what it is bound; raises Refused for a run that presents no token of its.

    A run is known by the user that an agent has for itself, by its control group, or by the mark in its environment: one of
    the daemon's own user could take off that mark.
    """
    files = FileThreads(in_child=False, most=100)

    def known(run: str) -> bytes:
        with suppress(OSError):
            return read_plain(RunFolder.of(context.home.path, run).token, _LONGEST)
        return b""

    async def scope(pid: int, uid: int, token: str) -> RunScope | None:
        runs = context.state().of(RUNS).runs
        own = runs and context.programs.effects_of(pid) & runs.keys()
        if not token:
            users = {agent.user for agent in AGENTS.of(context.settings())}
            if own or (uid != os.getuid() and user_name(uid) in users):
                raise Refused("a run of an agent is answered if it says its token, that of PULSE_TOKEN")
            return None
        run = token.partition(":")[0]
        asked = partial(known, run)
        its = await files.ask(str(context.home.path), asked, run) if _RUN.fullmatch(run) else b""
        if not its or not hmac.compare_digest(its, token.encode(errors="replace")):
            raise Refused(f"process {pid} of uid {uid} has said a token that is no run's, or was long ago")
        if own and run not in own:
            raise Refused(f"process {pid} of uid {uid} has said the token of another run than its own")
        _, task, claim, agent, _ = token.split(":")
        return RunScope(agent, task, int(claim), context.clock.now, SETTINGS.of(context.settings()).attempts)

    return scope
