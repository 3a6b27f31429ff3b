"""Which keys are survival's own, so that nothing else can hold them open."""

import pytest

from pulse_core.composition import is_reserved


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
