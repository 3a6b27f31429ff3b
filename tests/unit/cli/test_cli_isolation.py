"""How far the engine's code is kept from all else, as status, engine status and doctor say it."""

from io import StringIO
from typing import Any, cast

import pytest
from rich.console import Console

from pulse_core.app.context import HomeContext
from pulse_core.app.doctor import OK, WARN, DaemonChecks
from pulse_core.ports.engine import CONTROL_GROUP
from upulse_cli.views.engine import shown
from upulse_cli.views.status import engine_line

WHY = "this process may not make control groups below /sys/fs/cgroup/user.slice"


def engine(user: bool, missing: str = "") -> dict[str, Any]:
    """The daemon's word on its engine."""
    held = {"landlock": 6, "seccomp": True, "rlimits": True, "user": user, CONTROL_GROUP: not missing}
    return {
        "runs": "f" * 40, "degraded": False, "rules": [], "quarantined": {}, "sandbox": held,
        "missing": {CONTROL_GROUP: missing} if missing else {},
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


def test_without_a_control_group_it_is_partial_with_the_reason() -> None:
    running = engine(user=True, missing=WHY)
    assert "isolation: partial (no control group)" in engine_line(running).plain
    said = engine_status(running)
    assert "isolation: partial (no control group)" in said
    assert f"no control group: {WHY}" in said


@pytest.mark.parametrize("user", [True, False])
def test_the_doctor_warns_where_more_was_promised_and_says_what_helps(user: bool) -> None:
    checks = DaemonChecks(cast("HomeContext", None))
    checks.__dict__["status"] = {"engine": engine(user, WHY)}
    (found,) = checks.rule_host()
    assert (found.name, found.level) == ("control group", WARN if user else OK)
    assert found.words == f"isolation: partial (no control group): {WHY}"
    assert "upulse daemon install" in found.remedy


def test_a_daemon_of_an_earlier_version_says_nothing_of_it() -> None:
    running = {name: value for name, value in engine(user=True).items() if name != "missing"}
    assert "isolation: full" in engine_status(running)
