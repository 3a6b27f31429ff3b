"""What each command prints with `--json` is what the documentation says: `CliHome.upulse` holds one against the other.

Here are the commands that look, in a home that has something of each kind and no daemon; the others are elsewhere.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from docs.json_answers import ANSWERS
from tests.integration.cli.cli_home import ALLOW, CliHome, sleeper
from tests.integration.engine.engine_home import new_home

SETTINGS = f'{sleeper("demo", 86_397)}\n{ALLOW}\n[[agent]]\nname = "ada"\ncommand = ["/bin/cat"]\n'
LOOKS = (
    "agents doctor", "agents list", "agents stats", "board app", "config check", "config show",
    "daemon status", "doctor", "effect list --all", "effect show KEY", "engine status", "events", "gc --dry-run",
    "guidance list", "guidance status PROJECT", "instances", "process list", "process show demo",
    "project list", "project show app", "silence list", "status", "task deps TASK", "task list", "task show TASK", "verify",
    "why KEY",
)  # fmt: skip
CHANGES = ("engine disable --why it-rests", "engine enable", "pause --why it-rests", "resume")
ELSEWHERE: Mapping[str, str] = {
    "agents pause": "tasks/test_changes_as_json", "agents ps": "agents/test_agents_at_work",
    "agents resume": "tasks/test_changes_as_json", "agents worktrees": "agents/test_agents_at_work",
    "backup": "cli/test_cli_backup", "deploy": "engine/test_promote_flow", "dev": "engine/test_dev_life",
    "engine log": "engine/test_promote_flow", "engine show": "engine/test_changed_behaviour",
    "explain": "cli/test_cli_stories", "incidents": "cli/test_cli_stories", "plugins": "engine/test_plugins",
    "profile": "cli/test_cli_profile",
    "project add": "tasks/test_changes_as_json", "project remove": "tasks/test_changes_as_json",
    "promote": "engine/test_changed_behaviour", "redact": "cli/test_cli_redact", "replay": "engine/test_changed_behaviour",
    "restore": "cli/test_cli_backup", "rollback": "engine/test_promote_flow", "run logs": "agents/test_agents_at_work",
    "shadow report": "engine/test_shadow", "task pull-request": "agents/test_agents_at_work",
    "vitals": "cli/test_cli_stories",
    **{
        f"task {name}": "tasks/test_changes_as_json"
        for name in (
            "ack", "add", "assign", "block", "claim", "close", "give-up", "heartbeat", "move", "release", "retry", "start",
        )
    },
}  # fmt: skip
"""By the words of a command: the tests that call it with `--json`."""


def command_of(line: str) -> str:
    """The words of a command without its arguments."""
    return next(" ".join(words) for n in (2, 1) if " ".join(words := line.split()[:n]) in ANSWERS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> CliHome:
    made = new_home(tmp_path_factory.mktemp("json") / "home", config=SETTINGS)
    (project := made.path.parent / "project").mkdir()
    made.upulse("effect", "add", "run-command", "--key", "KEY", "--param", 'argv=["/bin/true"]')
    made.upulse("silence", "add", "notify:*", "--for", "1h", "--why", "a visit")
    made.upulse("guidance", "add", str(project))
    (project / ".pulse" / "guidance.md").write_text("smaller")
    made.upulse("project", "add", "app")
    made.upulse("task", "add", "app", "Look")
    return made


@pytest.mark.parametrize("line", [*LOOKS, *CHANGES])
def test_it_is_as_documented(home: CliHome, line: str) -> None:
    named = {"PROJECT": str(home.path.parent / "project")}
    if "TASK" in line:
        named["TASK"] = home.upulse("task", "add", "app", "Mend it").out.strip()
        other = home.upulse("task", "add", "app", "before it").out.strip()
        home.upulse("task", "deps", named["TASK"], other)
    said = home.upulse(*(named.get(word, word) for word in line.split()), "--json", code=None).out
    assert said.strip() not in ("", "[]", "{}")  # of which nothing could be told


def test_every_command_is_called_here_or_elsewhere() -> None:
    here = {command_of(line) for line in (*LOOKS, *CHANGES)}
    assert here | ELSEWHERE.keys() == ANSWERS.keys()
    assert not here & ELSEWHERE.keys()
    for command, name in ELSEWHERE.items():
        text = (Path(__file__).parents[1] / f"{name}.py").read_text()
        words = re.escape(command).replace(r"\ ", r'(?: |",\s*")')
        assert re.search(rf'"{words}[" ]', text), f"no test of {name} calls {command}"
        assert "--json" in text
