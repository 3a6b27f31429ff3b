"""How far the engine's code is kept from all else, as status, engine status and doctor say it."""

from io import StringIO
from typing import Any, cast

import pytest
from rich.console import Console

from pulse_core.app.context import HomeContext
from pulse_core.app.doctor import OK, WARN, DaemonChecks
from pulse_core.ports.engine import CONTROL_GROUP, GROUP_LIMITS
from upulse_cli.views.engine import shown
from upulse_cli.views.status import engine_line

WHY = "this process may not make control groups below /sys/fs/cgroup/user.slice"


def engine(user: bool, missing: str = "", part: str = CONTROL_GROUP) -> dict[str, Any]:
    """The daemon's word on its engine."""
    held = {"landlock": 6, "seccomp": True, "rlimits": True, "user": user, part: not missing}
    return {
        "runs": "f" * 40, "degraded": False, "rules": [], "quarantined": {}, "sandbox": held,
        "missing": {part: missing} if missing else {},
    }  # fmt: skip


def engine_status(running: dict[str, Any]) -> str:
    staging = {"commit": "", "ahead": 0, "advice": []}
    now: dict[str, Any] = {
        "commit": "f" * 40, "moved": "", "disabled": None, "running": running, "good": None, "errors": 0,
        "breakdowns": 0, "quarantined": {}, "requests": [], "staging": staging,
    }  # fmt: skip
    console = Console(file=StringIO(), width=150)
    console.print(shown(now))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_all_that_holds_is_full() -> None:
    assert "isolation: full" in engine_line(engine(user=True)).plain
    assert "isolation: full" in engine_status(engine(user=True))


@pytest.mark.parametrize("part", [CONTROL_GROUP, GROUP_LIMITS])
def test_without_a_control_group_or_its_limits_it_is_partial_with_the_reason(part: str) -> None:
    running = engine(user=True, missing=WHY, part=part)
    assert f"isolation: partial (no {part})" in engine_line(running).plain
    said = engine_status(running)
    assert f"isolation: partial (no {part})" in said
    assert f"no {part}: {WHY}" in said


@pytest.mark.parametrize("user", [True, False])
@pytest.mark.parametrize("part", [CONTROL_GROUP, GROUP_LIMITS])
def test_the_doctor_warns_where_more_was_promised_and_says_what_helps(part: str, user: bool) -> None:
    checks = DaemonChecks(cast("HomeContext", None))
    checks.__dict__["status"] = {"engine": engine(user, WHY, part)}
    (found,) = checks.rule_host()
    assert (found.name, found.level) == (part, WARN if user else OK)
    assert found.words == f"isolation: partial (no {part}): {WHY}"
    assert "upulse daemon " in found.remedy


def test_a_daemon_of_an_earlier_version_says_nothing_of_it() -> None:
    running = {name: value for name, value in engine(user=True).items() if name != "missing"}
    assert "isolation: full" in engine_status(running)


def test_the_doctor_names_the_rules_that_raise_and_those_that_are_passed_over() -> None:
    checks = DaemonChecks(cast("HomeContext", None))
    running = {**engine(user=True), "quarantined": {"slow": "it took too long"}}
    checks.__dict__["status"] = {"engine": running, "raising": {"mine": "ValueError: no"}}
    raises, slow = checks.rule_host()
    assert (raises.level, raises.words, slow.words) == (
        WARN,
        "mine raises: ValueError: no",
        "slow is quarantined: it took too long",
    )
