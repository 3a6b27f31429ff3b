"""Loops that survival does without: whatever one raises is an error in the log, and it is begun again."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pulse_core.daemon import Daemon
from pulse_core.daemon.delays import Delays
from pulse_core.daemon.housekeeping import GarbageCollection, Housekeeping
from pulse_core.daemon.incident_checkpoints import IncidentCheckpoints
from pulse_core.model.errors import HomeBusy, LogUnavailable
from pulse_core.model.kinds import ReloadRequested
from pulse_core.settings.settings import Settings
from tests.simulation.world import World, simulate

SETTINGS: dict[str, Any] = {
    "process": [{"name": "gateway", "start": ["gateway"], "restart": {"healthy_after": "1ms"}}]
}
PATIENCE = 60.0


class Bug(Exception):
    """What nobody has foreseen."""


async def survives(world: World) -> None:
    """Whoever dies is restarted at once."""
    starts = len(world.host.starts)
    world.host.kill("gateway")
    async with asyncio.timeout(PATIENCE):
        while len(world.host.starts) == starts:
            await asyncio.sleep(0.1)


def errors(world: World) -> list[str]:
    return [json.loads(one.data)["message"] for one in world.events("error", subject="daemon")]


@pytest.mark.parametrize(
    ("owner", "loop", "name"),
    [
        (Daemon, "_reload", "reload"),
        (Daemon, "_heartbeat", "heartbeat"),
        (Daemon, "_prove_health", "health"),
        (Housekeeping, "run", "housekeeping"),
        (IncidentCheckpoints, "run", "incidents"),
        (GarbageCollection, "run", "tidying"),
    ],
)
def test_a_loop_that_fails_is_told_and_begun_again(
    monkeypatch: pytest.MonkeyPatch, owner: type, loop: str, name: str
) -> None:
    work: Callable[[Any], Any] = getattr(owner, loop)
    begun = list[int]()

    async def fails_at_first(self: Any) -> None:
        begun.append(1)
        if len(begun) == 1:
            raise Bug("no such number")
        await work(self)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(20)
        await survives(world)
        assert errors(world) == [f"the loop {name!r} ended: Bug: no such number"]
        assert len(begun) == 2

    monkeypatch.setattr(owner, loop, fails_at_first)
    simulate(story, SETTINGS)


def test_a_service_that_fails_again_and_again_ends_nothing() -> None:
    tries = list[int]()

    async def serve(_: Any, begun: Callable[[], None]) -> None:
        begun()
        tries.append(1)
        raise Bug("it never works")

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        await survives(world)
        assert len(tries) > 5
        assert set(errors(world)) == {"the loop 'own' ended: Bug: it never works"}

    simulate(story, SETTINGS, services={"own": serve})


def test_a_daemon_ends_once_another_one_has_its_home() -> None:
    async def serve(_: Any, begun: Callable[[], None]) -> None:
        begun()
        await asyncio.sleep(5)
        raise HomeBusy("/home", 7)

    async def story(world: World) -> None:
        await world.start()
        assert world._life is not None
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(world._life, PATIENCE)
        assert raised.value.subgroup(HomeBusy)

    simulate(story, SETTINGS, services={"lock": serve})


def test_a_loop_of_survivals_own_that_cancels_itself_ends_the_daemon_and_is_named() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.journal.look = cancelled  # type: ignore[method-assign] # as if the log had cancelled what it waits for
        assert world._life is not None
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(world._life, PATIENCE)
        assert [str(one) for one in raised.value.exceptions] == [
            "the loop 'journal' was cancelled by its own work"
        ]

    simulate(story, SETTINGS)


def test_a_tick_of_which_the_delays_cannot_be_told_ends_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found by what rules call, too: a rule that raises is skipped, and here it would be the same fault."""

    def fails(*_: Any) -> None:
        raise Bug("no such number")

    async def story(world: World) -> None:
        await world.start()
        await survives(world)
        words = {json.loads(one.data)["message"] for one in world.events("error", subject="tick")}
        assert words == {"what holds its answers back is not told: Bug: no such number"}

    monkeypatch.setattr(Delays, "after", fails)
    simulate(story, SETTINGS)


def test_a_daemon_stops_well_though_its_log_cannot_be_read_any_more() -> None:
    async def fails(seq: int) -> bytes | None:
        raise LogUnavailable("its disk fails")

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        world.log.chain_at = fails  # type: ignore[method-assign]
        await world.end()
        assert [event.kind for event in world.log.events][-1] == "daemon-stopped"

    simulate(story, SETTINGS)


def test_a_daemon_is_stopped_though_a_service_never_serves() -> None:
    async def serve(_: Any, begun: Callable[[], None]) -> None:
        raise Bug("it never works")

    async def story(world: World) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(world.start(), PATIENCE)  # it is never ready
        await asyncio.wait_for(world.end(), PATIENCE)
        assert world.log.events[-1].kind == "daemon-stopped"

    simulate(story, SETTINGS, services={"own": serve})


def test_a_reload_while_a_service_does_not_serve_yet_says_no_readiness() -> None:
    async def serve(_: Any, begun: Callable[[], None]) -> None:
        await asyncio.sleep(30)
        begun()
        await asyncio.Event().wait()

    async def story(world: World) -> None:
        starting = asyncio.create_task(world.start(), name="start")
        await asyncio.sleep(5)
        assert world.daemon is not None
        world.daemon.request_reload()
        await asyncio.sleep(5)
        assert len(world.events("settings-loaded", "settings-refused")) == 2
        assert {"ready", "reloading"}.isdisjoint(world.service_manager.told)
        await asyncio.wait_for(starting, PATIENCE)

    simulate(story, SETTINGS, services={"own": serve})


def test_a_reload_is_answered_whatever_its_reader_raises() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()

        async def load() -> Settings:
            raise Bug("no thread can be had")

        daemon.parts.current_settings._load = load
        asked = await world.ask(ReloadRequested())
        await asyncio.sleep(5)
        (answer,) = (event for event in world.events() if event.cause == asked.id)
        assert (answer.kind, "no thread can be had" in answer.data) == ("settings-refused", True)
        assert world.service_manager.told[-1] != "reloading"

    simulate(story, SETTINGS)
