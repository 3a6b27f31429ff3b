"""What is promised to who appends to a home without a daemon."""

import os
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_core.app.context import HomeContext
from pulse_core.model.errors import Damaged, HomeBusy, PulseError
from pulse_core.model.event import Checkpoint, Head
from upulse_cli.wiring import offline
from upulse_cli.wiring.home import home_context
from upulse_cli.wiring.offline import append_offline, offline_gate


@pytest.fixture
def home(tmp_path: Path) -> HomeContext:
    layout = Home(tmp_path / "home")
    layout.create()
    return home_context(layout)


def draft(home: HomeContext, kind: str) -> dict[str, Any]:
    return {"kind": kind, "subject": "s", "data": {"why": "tests"}, "cause": None, "id": home.new_id()}


def test_what_one_caller_records_the_next_one_finds(home: HomeContext) -> None:
    recorded = list(append_offline(home, [draft(home, kind) for kind in ("paused", "resumed")]))
    recorded += append_offline(home, [draft(home, "paused")])
    with home.events() as log:
        assert [(row.spelled(), False) for row in log.events()] == recorded
        assert log.head().seq == 3


def test_the_same_id_is_the_same_event(home: HomeContext) -> None:
    paused = draft(home, "paused")
    first, again = append_offline(home, [paused, paused])
    assert first[0] == again[0] == append_offline(home, [paused])[0][0]


async def test_a_log_that_lost_rows_is_not_written(home: HomeContext) -> None:
    async with offline_gate(home):
        pass
    await SqliteCheckpoints(home.layout.state).save({"some": Checkpoint(1, Head(9, bytes(32)), "{}")})
    with pytest.raises(Damaged):
        async with offline_gate(home):
            pass


def test_a_home_that_another_has_is_waited_for_and_then_busy(
    home: HomeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "LOCK_WAIT", 0.05)
    with HomeLock(home.layout.lock, "1"), pytest.raises(HomeBusy, match=str(os.getpid())):
        append_offline(home, [draft(home, "paused")])
    append_offline(home, [draft(home, "paused")])
    with HomeLock(home.layout.lock, "1"):
        pass


async def test_effects_are_checked_as_a_daemon_would(home: HomeContext) -> None:
    async with offline_gate(home) as gate:
        executors = gate.executors
    assert {"restart-process", "stop-process", "notify", "clean-paths"} <= set(executors)
    restart = executors["restart-process"]
    assert restart.action == "restart-process"
    with pytest.raises(PulseError, match="nobody"):
        restart.check(restart.params.model_validate({"process": "nobody"}))
