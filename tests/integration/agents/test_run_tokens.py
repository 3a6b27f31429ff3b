"""Who of the callers of the socket is a run, and to what its token binds it."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulse_adapters.agents import run_tokens
from pulse_adapters.agents.disk_run_files import DiskRunFiles
from pulse_adapters.agents.run_tokens import run_scopes
from pulse_adapters.host import marked_processes
from pulse_adapters.host.programs import LifePrograms
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.mcp import clients, scopes
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.proc import environment, has_marker
from pulse_core.agents.projection import RUNS, AgentRuns, Run
from pulse_core.agents.run_files import Workspace
from pulse_core.agents.settings import AGENTS
from pulse_core.capability import WatcherContext
from pulse_core.composition import Settings
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Refused
from pulse_core.model.moment import Moment
from pulse_core.tasks.task import TaskState
from tests.engine_user import ROOT_ALONE
from tests.integration.cli.cli_home import eventually
from tests.processes import child_of_test

OTHER = "0190a0a0-0000-7000-8000-000000000002"
NOW = Moment(1_800_000_000_000_000, "boot", 1)
RUN, TASK = "0190a0a0-0000-7000-8000-000000000001", TaskState("task_000001", "app", "Mend it", NOW, "eve")


@pytest.fixture
def context(tmp_path: Path) -> WatcherContext:
    """A home in which two runs of ada go on."""
    settings = Settings.model_validate(
        {
            "agent": [
                {"name": "ada", "command": ["ada"]},
                {"name": "bob", "command": ["bob"], "user": "nobody"},
            ]
        }
    )
    ids = (RUN, TASK.id, 7), (OTHER, "task_000002", 8)
    runs = AgentRuns({id_: Run(id_, task, "ada", claim, 1, 1, NOW) for id_, task, claim in ids})
    state = SimpleNamespace(of=lambda one: runs if one is RUNS else None)
    return cast(
        WatcherContext,
        SimpleNamespace(
            home=HomeLayout(tmp_path),
            settings=lambda: settings,
            state=lambda: state,
            programs=LifePrograms(Spawner()),
            clock=SimpleNamespace(now=lambda: NOW),
        ),
    )


async def token_of(context: WatcherContext) -> str:
    (agent, _) = AGENTS.of(context.settings())
    files = DiskRunFiles(context.home.path, context.settings)
    program = await files.program(RUN, 7, TASK, agent, Workspace("/w"))
    token = program.env["PULSE_TOKEN"]
    assert not any(token in word for word in program.argv)
    assert (context.home.path / "runs" / RUN / "token").stat().st_mode & 0o777 == 0o600
    return token


async def test_a_token_binds_to_the_task_and_claim_that_it_was_made_for(context: WatcherContext) -> None:
    token = await token_of(context)
    scope = await run_scopes(context)(os.getpid(), os.getuid(), token)
    assert scope is not None
    assert (scope.actor, scope.task, scope.token) == ("ada", TASK.id, 7)


WRONG: dict[str, Any] = {
    "another secret": lambda token: token[:-1] + ("a" if token[-1] != "a" else "b"),
    "a beginning of it": lambda token: token[:-1],
    "another claim": lambda token: token.replace(":7:", ":8:"),
    "of no run": lambda token: token.replace("0190", "0191"),
    "a path": lambda token: f"../runs/{token}",
    "no text": lambda token: "\udcff\0ü",
    "none of its parts": lambda token: ":",
}


@pytest.mark.parametrize("how", WRONG)
async def test_a_wrong_token_is_refused(context: WatcherContext, how: str) -> None:
    token = await token_of(context)
    with pytest.raises(Refused, match="has said a token that is no run's"):
        await run_scopes(context)(os.getpid(), os.getuid(), WRONG[how](token))


async def test_the_loop_waits_for_no_token_on_a_dead_disk(
    context: WatcherContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, is_over = await token_of(context), threading.Event()

    def never(*_: object) -> bytes:
        is_over.wait(60)
        return b""

    monkeypatch.setattr(run_tokens, "read_plain", never)
    monkeypatch.setattr(clients, "read_plain", never)
    monkeypatch.setattr(
        FileThreads, "__init__", partialmethod(FileThreads.__init__, 0.05, is_needed=lambda: True)
    )
    try:
        for find, said in ((run_scopes, token), (scopes, f"client:ada:{32 * 'x'}")):
            with pytest.raises(TimeoutError, match="does not answer"):
                await find(context)(os.getpid(), os.getuid(), said)
        before, scope = threading.active_count(), run_scopes(context)
        others = (f"{number:08x}{token[8:]}" for number in range(150))
        answers = (scope(os.getpid(), os.getuid(), said) for said in others)
        assert {type(one) for one in await asyncio.gather(*answers, return_exceptions=True)} == {TimeoutError}
        assert threading.active_count() <= before + 100, "whoever says more and more takes no more threads"
    finally:
        is_over.set()


@pytest.fixture
def caller(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process with this mark."""
    env = {**os.environ, EFFECT_MARK: request.param}
    with child_of_test(subprocess.Popen(["sleep", "1000"], env=env)) as child:
        eventually(lambda: has_marker(child.pid, request.param), "its mark: it is executed before")
        yield child.pid
        child.kill()


@pytest.mark.parametrize("caller", [RUN], indirect=True)
async def test_who_came_out_of_a_run_needs_its_token(context: WatcherContext, caller: int) -> None:
    with pytest.raises(Refused, match="if it says its token"):
        await run_scopes(context)(caller, os.getuid(), "")


@pytest.mark.parametrize("caller", [OTHER], indirect=True)
async def test_a_run_is_refused_that_has_read_the_token_of_another_one(
    context: WatcherContext, caller: int
) -> None:
    token, scope = await token_of(context), run_scopes(context)
    assert await scope(
        os.getpid(), os.getuid(), token
    )  # of a run that is known, by whoever is none: an MCP server
    with pytest.raises(Refused, match="has said the token of another run than its own"):
        await scope(caller, os.getuid(), token)


@pytest.mark.parametrize("caller", ["another-effect"], indirect=True)
async def test_who_did_not_needs_none(context: WatcherContext, caller: int) -> None:
    assert await run_scopes(context)(caller, os.getuid(), "") is None


async def test_a_caller_is_read_once_however_many_runs_go_on(
    context: WatcherContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[int]()

    def noted(pid: int) -> bytes:
        read.append(pid)
        return environment(pid)

    monkeypatch.setattr(marked_processes, "environment", noted)
    assert await run_scopes(context)(os.getpid(), os.getuid(), "") is None
    assert read == [os.getpid()]


@ROOT_ALONE
async def test_the_user_of_an_agent_needs_a_token_whatever_its_process_shows(context: WatcherContext) -> None:
    with pytest.raises(Refused, match="if it says its token"):
        await run_scopes(context)(os.getpid(), 65534, "")
