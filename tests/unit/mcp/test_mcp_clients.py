"""Who a client is, what it may change, and what is written into its configuration."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.mcp import scopes
from pulse_adapters.mcp.clients import PLACES, client_config, name_of, token_of, write_config
from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.composition import Settings, is_reserved
from pulse_core.mcp.client_scope import MOST_SILENCES, ClientScope
from pulse_core.mcp.events import READS, ClientReads, RuleProposed
from pulse_core.model.errors import PulseError, Refused, UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, Paused, PromoteRequested, RollbackRequested
from pulse_core.model.payload import Payload, Role
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.silences.events import SilenceAdded
from pulse_core.silences.projection import SILENCES
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


async def test_the_daemon_knows_a_client_by_its_token(tmp_path: Path) -> None:
    class Context:
        clock = VirtualClock(lambda: 0.0)

        @staticmethod
        def settings() -> Settings:
            return Settings.model_validate({"mcp": {"promote": True}})

        class home:
            path = tmp_path

    context: Any = Context
    find = scopes(context)
    token, owner = token_of(tmp_path, "ada", make=True), tmp_path.stat().st_uid
    found = [await find(1, uid, token) for uid in (owner, 0, owner + 1)]
    assert [one and one.actor for one in found] == ["ada"] * 3
    assert [one and one.granted & {PromoteRequested.kind} for one in found] == [
        {PromoteRequested.kind}, {PromoteRequested.kind}, frozenset()
    ]  # fmt: skip
    assert await find(1, 2, "") is None
    assert await find(1, 2, "0190:task_000001:7:ada:secret") is None


class Scene:
    """A gate, before which ada and bob are clients."""

    def __init__(self) -> None:
        self.view, self.settings = View(), Settings()
        self.log = MemoryLog(VirtualClock(lambda: 0.0))
        self.log.listen(self.view.on_events)
        self.gate = Gate(self.log, self.view, Settings, {}, self.log.clock)

    async def person(self, payload: Payload, subject: str) -> None:
        await self.gate.append(Role.PERSON, "eve", [Draft(payload, subject)])

    async def says(self, who: str, payload: Payload, subject: str = TASK, is_owners: bool = True) -> int:
        drafts = [Draft(payload, subject)]
        scope = ClientScope(who, lambda: self.settings, self.log.clock.now, is_reserved, is_owners)
        (recorded,) = await self.gate.append(Role.AGENT, who, drafts, scope)
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
        ("ada", TaskMoved(column="Review", token=token + 1), TASK, "is over"),
        ("ada", TaskMoved(column="Nowhere", token=token), TASK, "it has Backlog, Ready, In progress, Review"),
    ]
    for who, payload, subject, why in refused:
        with pytest.raises(Refused, match=why):
            await scene.says(who, payload, subject)
    await scene.says("ada", TaskMoved(column="Review", token=token))
    await scene.says("ada", TaskAcked(token=token, result="mended"))


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("match", "expires_us", "why"),
    [
        ("notify:guidance:*", DAY, ""),
        ("my-rule:*", DAY, ""),
        ("my-rule:*", DAY + 1, "at most 1d"),
        ("*", DAY, "what survival does"),
        ("notify:*", DAY, "what survival does"),
        ("n?tify:flapping:web", DAY, "what survival does"),
        ("[nr]*", DAY, "what survival does"),
        ("notify:fl*:web", DAY, "what survival does"),
        ("notify:flapping:web", DAY, "what survival does"),
        ("restart-process:web", DAY, "what survival does"),
        ("restart-process:*", DAY, "what survival does"),
        ("rollback-engine*", DAY, "what survival does"),
    ],
)
async def test_a_client_holds_nothing_back_that_survival_does(match: str, expires_us: int, why: str) -> None:
    scene, silence = Scene(), SilenceAdded(expires_us=expires_us, why="tests")
    if not why:
        await scene.says("ada", silence, match)
        assert [one.by for one in scene.view().of(SILENCES).of.values()] == ["ada"]
        return
    with pytest.raises(Refused, match=why):
        await scene.says("ada", silence, match)


async def test_a_client_has_few_silences_at_a_time() -> None:
    scene, silence = Scene(), SilenceAdded(expires_us=DAY)
    for number in range(MOST_SILENCES):
        await scene.says("ada", silence, f"my-rule:{number}")
    with pytest.raises(Refused, match="hold already"):
        await scene.says("ada", silence, "my-rule:more")
    await scene.says("bob", silence, "my-rule:more")


async def test_a_client_wishes_for_a_pull_request_of_its_task_and_for_no_other_effect() -> None:
    scene = Scene()
    await scene.person(ProjectSet(), "app")
    await scene.person(TaskCreated(project="app", title="Mend it"), TASK)
    asked = Effect(action="open-pull-request", key="forged", params={"task": TASK})
    with pytest.raises(Refused, match="is not held by ada"):
        await scene.says("ada", asked, "")
    await scene.says("ada", TaskExecuting(agent="ada", lease_us=LEASE))
    with pytest.raises(UnknownName, match="open-pull-request"):  # only its executor is missing here
        await scene.says("ada", asked, "")
    for action in ("run-command", "stop-agent-run", "notify"):
        with pytest.raises(Refused, match="nothing else"):
            await scene.says("ada", Effect(action=action, key="k", params={"task": TASK}), "")


async def test_what_a_client_may_not_do_is_refused_with_the_names_of_tools_and_not_of_events() -> None:
    with pytest.raises(Refused, match="claim_task, transition_task") as refused:
        await Scene().says("ada", Paused(), "")
    assert "task-" not in str(refused.value)


async def test_a_client_promotes_only_where_the_settings_say_so() -> None:
    scene = Scene()
    with pytest.raises(Refused, match="nothing else"):
        await scene.says("ada", PromoteRequested(previous="", why="a rule"), "abc")
    scene.settings = Settings.model_validate({"mcp": {"promote": True}})
    with pytest.raises(Refused, match="nothing else"):  # by nobody whom no gate has seen
        await scene.says("ada", PromoteRequested(previous="", why="a rule"), "abc", is_owners=False)
    await scene.says("ada", PromoteRequested(previous="", why="a rule"), "abc")
    with pytest.raises(Refused, match="nothing else"):
        await scene.says("ada", RollbackRequested(), "abc")


async def test_reads_and_proposals_are_recorded_under_the_clients_own_name() -> None:
    scene = Scene()
    for reads in (3, 4):
        await scene.says("ada", ClientReads(reads=reads), "bob")
    await scene.says("ada", RuleProposed(rule="quiet"), "bob")
    assert scene.view().of(READS) == {"ada": 7}
    assert {event.subject for event in scene.log.events} == {"ada"}


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


def test_no_configuration_is_written_that_codex_can_not_read(tmp_path: Path) -> None:
    path = tmp_path / PLACES["codex"]
    path.parent.mkdir()
    path.write_text('mcp_servers = { a = { url = "x" } }')
    with pytest.raises(PulseError, match=r"takes no \[mcp_servers\.pulse\]; write tables"):
        client_config("codex", tmp_path, ["upulse"], ENV)


def test_a_path_of_rare_characters_is_one_that_codex_reads(tmp_path: Path) -> None:
    command = ["/home/\U0001f600/upulse", "\U0001f600"]
    config = client_config("codex", tmp_path, command, {"HOME": "/home/\U0001f600"})
    entry = {"command": command[0], "args": command[1:], "env": {"HOME": "/home/\U0001f600"}}
    assert tomllib.loads(config.text) == {"mcp_servers": {"pulse": entry}}
