"""The gate `loads` loads watchers and executors in an action host, so that nothing of it fails after the promote only."""

from pathlib import Path

import pytest

from pulse_core.model.errors import PulseError
from pulse_core.ports.code_checks import GateFailed
from tests.integration.engine.gate_scene import candidate, loads

ENGINE = "from rules.x import x\nfrom watchers.queue import Queue\nRULES = [x]\nWATCHERS = [Queue()]\n"
RULE = "LIMIT = 3\n\n\nasync def x(prev, curr, inner):\n    return await inner(prev, curr)\n"
WATCHER = """
import asyncio

from pulse_core import Reading


class Queue:
    name = key = "queue"
    interval, timeout = 1.0, 5.0

    def __init__(self):
        self.nudge = asyncio.Event()

    async def collect(self):
        return Reading({"jobs": 0})

    def should_wake(self, window):
        return False
"""


def looked_at(path: Path, watcher: str) -> str:
    """What the gate says of an engine with this watcher."""
    tried = candidate(path, {"engine.py": ENGINE, "rules/x.py": RULE, "watchers/queue.py": watcher})
    return loads(tried)


def test_a_watcher_that_loads_passes(tmp_path: Path) -> None:
    assert looked_at(tmp_path, WATCHER) == "1 rule"


def test_one_that_wants_a_rules_constant_does_not_and_the_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(PulseError, match=r"rules is not run here: .* \(watchers/queue\.py:1\)"):
        looked_at(tmp_path, f"from rules.x import LIMIT\n{WATCHER}")


def test_one_that_would_be_left_out_does_not_either(tmp_path: Path) -> None:
    with pytest.raises(
        GateFailed,
        match=r"watcher:queue: left out: its interval: .* \(watchers/queue\.py:",
    ):
        looked_at(tmp_path, WATCHER.replace("1.0, 5.0", "'soon', 5.0"))
