"""Who a client is, what it may change, and what is written into its configuration."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.mcp import scopes
from pulse_adapters.mcp.client_config import PLACES, client_config, write_config
from pulse_adapters.mcp.client_tokens import name_of, token_of
from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.composition import Settings
from pulse_core.mcp.client_scope import ClientScope
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused
from pulse_core.model.payload import Payload, Role
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.tasks.events import ProjectSet, TaskAcked, TaskCreated, TaskExecuting, TaskGivenUp, TaskMoved
from pulse_core.tasks.projection import TASKS

TASK, OTHERS = "task_000001", "task_000002"
LEASE = 900_000_000
ENV = {"UPULSE_HOME": "/home/ada/.upulse", "PULSE_TOKEN": "client:ada:x"}


def test_a_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    assert token_of(tmp_path, "ada", make=False) == ""
    assert not list(tmp_path.iterdir())
    token = token_of(tmp_path, "ada", make=True)
    assert token_of(tmp_path, "ada", make=True) == token_of(tmp_path, "ada", make=False) == token
    assert (tmp_path / "clients/ada").stat().st_mode & 0o777 == 0o600
    assert name_of(tmp_path, token) == "ada"
    (tmp_path / "clients/ada").unlink()
    assert name_of(tmp_path, token) is None


@pytest.mark.parametrize("name", ["", "../ada", "a b", ".", "a" * 65, "ä"])
def test_a_name_of_no_use_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PulseError, match="is no name of a client"):
        token_of(tmp_path, name, make=True)
    assert not list(tmp_path.iterdir())


WRONG: dict[str, Callable[[str], str]] = {
    "another secret": lambda token: token[:-1] + ("a" if token[-1] != "a" else "b"),
    "a beginning of it": lambda token: token[:-1],
    "another name": lambda token: token.replace("ada", "bob"),
    "a path": lambda token: token.replace("ada", "../clients/ada"),
    "no text": lambda token: "\udcff\0ü",
    "nothing": lambda token: "",
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_token_is_nobodys(how: str, tmp_path: Path) -> None:
    token = token_of(tmp_path, "ada", make=True)
    token_of(tmp_path, "bob", make=True)
    assert name_of(tmp_path, WRONG[how](token)) is None


def test_the_daemon_knows_a_client_by_its_token(tmp_path: Path) -> None:
    class Context:
        class home:
            path = tmp_path

    context: Any = Context
    find = scopes(context)
    assert find(1, 2, token_of(tmp_path, "ada", make=True)) == ClientScope("ada")
    assert find(1, 2, "") is None
    assert find(1, 2, "0190:task_000001:7:ada:secret") is None


class Scene:
    """A gate, before which ada and bob are clients."""

    def __init__(self) -> None:
        self.view = View()
        self.log = MemoryLog(VirtualClock(lambda: 0.0))
        self.log.listen(self.view.on_events)
        self.gate = Gate(self.log, self.view, Settings, {})

    async def person(self, payload: Payload, subject: str) -> None:
        await self.gate.append(Role.PERSON, "eve", [Draft(payload, subject)])

    async def says(self, who: str, payload: Payload, subject: str = TASK) -> int:
        drafts = [Draft(payload, subject)]
        (recorded,) = await self.gate.append(Role.AGENT, who, drafts, ClientScope(who))
        assert recorded.event.actor == who
        return recorded.event.seq


async def test_a_client_claims_for_itself_and_ends_what_it_holds_alone() -> None:
    scene = Scene()
    await scene.person(ProjectSet(), "app")
    for task in (TASK, OTHERS):
        await scene.person(TaskCreated(project="app", title="Mend it"), task)
    token = await scene.says("ada", TaskExecuting(agent="bob", lease_us=LEASE))
    assert scene.view().of(TASKS).tasks[TASK].agent == "ada"
    refused: list[tuple[str, Payload, str, str]] = [
        ("bob", TaskAcked(token=token), TASK, "is not held by bob"),
        ("bob", TaskGivenUp(), TASK, "is not held by bob"),
        ("ada", TaskMoved(column="Done"), OTHERS, "is not held by ada"),
        ("ada", TaskGivenUp(), OTHERS, "is not held by ada"),
        ("ada", TaskCreated(project="app", title="More"), "task_000003", "nothing else"),
        ("ada", ProjectSet(), "mine", "nothing else"),
        ("ada", Paused(), "", "nothing else"),
        ("ada", TaskAcked(token=token + 1), TASK, "is over"),
    ]
    for who, payload, subject, why in refused:
        with pytest.raises(Refused, match=why):
            await scene.says(who, payload, subject)
    await scene.says("ada", TaskAcked(token=token, result="mended"))


@pytest.mark.parametrize("client", PLACES)
def test_the_configuration_keeps_what_was_there(client: str, tmp_path: Path) -> None:
    path, is_codex = tmp_path / PLACES[client], client == "codex"
    key, read = ("mcp_servers", tomllib.loads) if is_codex else ("mcpServers", json.loads)
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        '[mcp_servers.a]\nurl = "x"\n' if is_codex else '{"mcpServers": {"a": {"url": "x"}}, "b": "ü"}'
    )
    before = read(path.read_text())
    command = ["/usr/bin/python", "-m", "upulse_cli", "mcp", "--stdio"]
    config = client_config(client, tmp_path, command, ENV)
    assert read(path.read_text()) == before
    entry = {"command": command[0], "args": command[1:], "env": ENV}
    assert read(config.added) == {key: {"pulse": entry}}
    write_config(config)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path.read_text()) == {**before, key: {**before[key], "pulse": entry}}
    assert not client_config(client, tmp_path, command, ENV).added
    assert [one.name for one in path.parent.iterdir() if one.name.endswith(".new")] == []


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 3}', "\x00"])
@pytest.mark.parametrize("client", ["cursor", "codex"])
def test_a_configuration_of_no_use_is_left_as_it_is(client: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / PLACES[client]
    path.parent.mkdir()
    path.write_text("mcp_servers = 3" if (client, text) == ("codex", "[]") else text)
    with pytest.raises(PulseError, match=r"can't be read|is no configuration"):
        client_config(client, tmp_path, ["upulse"], ENV)
