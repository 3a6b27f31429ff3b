"""What the stores of a home without a daemon promise to who appends for itself."""

import os
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.peer import user_name
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, HomeBusy, PulseError
from pulse_core.model.event import Checkpoint, Draft, Event, Head
from pulse_core.model.kinds import Paused, Resumed
from pulse_core.ports.offline_stores import OfflineStores
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from upulse_cli.wiring import offline_stores


@pytest.fixture
def layout(tmp_path: Path) -> HomeLayout:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def stores(layout: HomeLayout) -> OfflineStores:
    return offline_stores.offline_stores(layout)


def test_whoever_appends_is_named_after_the_user(stores: OfflineStores) -> None:
    assert stores.actor == user_name(os.getuid())


async def test_what_one_caller_records_the_next_one_finds(stores: OfflineStores) -> None:
    recorded: list[Event] = []
    for kind in (Paused, Resumed):
        with stores.lock():
            async with stores.log() as log:
                recorded += await log.append(Draft(kind(why="tests"), "s"))
    with stores.lock():
        async with stores.log() as log:
            assert [event async for events in log.since(0) for event in events] == recorded
            assert log.head.seq == 2


async def test_a_log_that_lost_rows_is_not_written(stores: OfflineStores) -> None:
    with stores.lock():
        async with stores.log() as log:
            await log.append(Draft(Paused(why="tests"), "s"))
        await stores.checkpoints.save({"some": Checkpoint(1, Head(9, bytes(32)), "{}")})
        with pytest.raises(Damaged):
            async with stores.log():
                pass


def test_a_home_that_another_has_is_waited_for_and_then_busy(
    stores: OfflineStores, layout: HomeLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline_stores, "LOCK_WAIT", 0.05)
    with HomeLock(layout.lock, "1"), pytest.raises(HomeBusy, match=str(os.getpid())), stores.lock():
        pass
    with stores.lock(), pytest.raises(HomeBusy), HomeLock(layout.lock, "1"):
        pass
    with HomeLock(layout.lock, "1"):
        pass


def test_effects_are_checked_as_a_daemon_would(stores: OfflineStores) -> None:
    executors = stores.executors(Settings, State)
    assert {"restart-process", "stop-process", "notify", "clean-paths"} <= set(executors)
    restart = executors["restart-process"]
    assert restart.action == "restart-process"
    with pytest.raises(PulseError, match="nobody"):
        restart.check(restart.params.model_validate({"process": "nobody"}))
