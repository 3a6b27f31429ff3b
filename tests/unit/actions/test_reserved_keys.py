"""Which keys are survival's own, so that nothing else can hold them open."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from pulse_core.capabilities import CAPABILITIES
from pulse_core.composition import is_of_package, is_reserved

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "key",
    [
        "restart-process:gateway",
        "stop-process:worst:1",
        "clean-paths:/",
        "archive-sessions",
        "collect",
        "rollback-engine",
        "notify:blast-radius",
        "notify:blast-radius:engine",
        "notify:engine:rollback",
        "notify:flapping:gateway",
        "notify:stop:gateway",
        "notify:llm:http://127.0.0.1:4000/",
        "notify:log:/var/log/app.log",
        "notify:network",
        "notify:network:quality",
        "notify:resource:disk:/",
    ],
)
def test_what_survival_wishes_has_keys_that_are_reserved(key: str) -> None:
    assert is_reserved(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "notify",
        "notify:",
        "notify:mine",
        "run-command:network",
        "mine:restart-process",
        "network",
        "log:x",
    ],
)
def test_other_keys_are_everybodys(key: str) -> None:
    assert not is_reserved(key)


@pytest.mark.parametrize("topic", ["agent:claude", "agent-run:7", "task:7", "guidance:7", "guided-run:7"])
def test_notices_of_capabilities_are_told_by_their_rules_alone_and_may_be_silenced(topic: str) -> None:
    assert is_of_package(f"notify:{topic}")
    assert not is_of_package(f"run-command:{topic}")
    assert not is_reserved(f"notify:{topic}")


def test_every_topic_that_a_rule_of_a_capability_tells_is_its_own() -> None:
    found = set[str]()
    for capability in CAPABILITIES:
        for path in (ROOT / "pulse_core" / capability).glob("*.py"):
            tree = ast.parse(path.read_text())
            module = import_module(f"pulse_core.{capability}.{path.stem}")
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "told_while":
                    found.add(str(eval(ast.unparse(call.args[2]), vars(module))))
    assert found >= {"agent:", "agent-run:", "task:"}
    assert all(is_of_package(f"notify:{beginning}x") for beginning in found)
