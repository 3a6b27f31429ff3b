"""What the client of a daemon promises: over a socket, behind which a daemon answers from a log in memory."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc import daemon_client
from pulse_adapters.ipc.daemon_client import SocketDaemonClient
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.server import bind_socket, serve
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.log import MemoryLog
from pulse_core.daemon import Caller, RequestHandler
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Conflict, NotAnswering, Refused, UnknownName
from pulse_core.model.home_status import HomeStatus
from pulse_core.ports.daemon_client import DaemonClient
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from tests.contract.conftest import SteppingClock

STATUS = cast(HomeStatus, {"daemon": {"state": "running", "pid": 5, "since": None, "version": "1"}})
IDS = [f"0190a000-0000-7000-8000-00000000000{number}" for number in range(4)]


@pytest.fixture
def layout(tmp_path: Path) -> HomeLayout:
    home = Home(tmp_path / "home")
    home.create()
    return home


@pytest.fixture
def client(layout: HomeLayout) -> DaemonClient:
    return SocketDaemonClient(layout)


@asynccontextmanager
async def answering(layout: HomeLayout) -> AsyncIterator[None]:
    """The home's daemon, as far as it answers."""
    log, view, errors = MemoryLog(SteppingClock()), View(), list[Exception]()
    log.listen(view.on_events)
    handler = RequestHandler(
        Gate(log, view, Settings, {"note": MemoryExecutor()}, log.clock), log, lambda: STATUS, view
    )
    async with serve(
        layout.socket,
        lambda peer, request: handler.answer(Caller(peer.role, "ada"), request),
        owner=os.getuid(),
        on_error=errors.append,
    ):
        yield
    assert not errors


@contextmanager
def silent(layout: HomeLayout) -> Iterator[None]:
    """A daemon that takes connections and says nothing."""
    with bind_socket(layout.socket, os.getuid(), None) as listening:
        listening.listen()
        yield


def draft(number: int, kind: str = "paused", **data: Any) -> Mapping[str, Any]:
    return {"kind": kind, "subject": "s", "data": data, "cause": None, "id": IDS[number]}


async def test_the_status_is_the_daemons_own(layout: HomeLayout, client: DaemonClient) -> None:
    async with answering(layout):
        assert await asyncio.to_thread(client.status) == STATUS


async def test_what_is_appended_is_recorded_once(layout: HomeLayout, client: DaemonClient) -> None:
    async with answering(layout):
        event, existing = await asyncio.to_thread(client.append, draft(0, why="now"))
        told = [event[name] for name in ("seq", "id", "kind", "subject", "actor", "data")]
        assert (told, existing) == ([1, IDS[0], "paused", "s", "ada", {"why": "now"}], False)
        assert await asyncio.to_thread(client.append, draft(0, why="now")) == (event, False)
        assert (await asyncio.to_thread(client.append, draft(1, "resumed")))[0]["seq"] == 2


async def test_of_a_key_only_one_effect_is_open_and_who_asks_again_is_given_it(
    layout: HomeLayout, client: DaemonClient
) -> None:
    note = {"action": "note", "key": "k"}
    async with answering(layout):
        first, existing = await asyncio.to_thread(client.append, draft(0, "effect", **note))
        assert not existing
        assert await asyncio.to_thread(client.append, draft(1, "effect", **note)) == (first, True)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (draft(1, "pausd"), UnknownName),
        (draft(1, odd=1), Refused),
        ({**draft(1), "id": "1"}, Refused),
        ({**draft(1), "id": "00000000-0000-0000-0000-000000000000"}, Refused),
        (draft(0, why="another"), Conflict),
    ],
)
async def test_what_the_daemon_refuses_is_raised_here_and_not_recorded(
    layout: HomeLayout, client: DaemonClient, refused: Mapping[str, Any], error: type[Exception]
) -> None:
    async with answering(layout):
        await asyncio.to_thread(client.append, draft(0, why="now"))
        with pytest.raises(error):
            await asyncio.to_thread(client.append, refused)
        assert (await asyncio.to_thread(client.append, draft(2)))[0]["seq"] == 2


@pytest.mark.parametrize("brief", [False, True])
async def test_events_are_followed_from_a_row_on_as_they_come(
    layout: HomeLayout, client: DaemonClient, brief: bool
) -> None:
    async with answering(layout):
        events = [(await asyncio.to_thread(client.append, draft(number)))[0] for number in (0, 1)]
        following = client.follow(1, brief=brief)
        assert await asyncio.to_thread(next, following) == events[1]
        events.append((await asyncio.to_thread(client.append, draft(2, "resumed")))[0])
        assert await asyncio.to_thread(next, following) == events[2]
        of_kind = islice(client.follow(0, ("resumed", "effect"), brief=brief), 1)
        assert await asyncio.to_thread(list, of_kind) == events[2:]


ASKS: dict[str, Callable[[DaemonClient], object]] = {
    "status": lambda client: client.status(),
    "append": lambda client: client.append(draft(0)),
    "shown": lambda client: client.shown(),
    "follow": lambda client: next(client.follow(0)),
}


@pytest.mark.parametrize("ask", ASKS)
def test_without_a_daemon_nobody_answers(client: DaemonClient, ask: str) -> None:
    with pytest.raises(NotAnswering):
        ASKS[ask](client)


def test_a_silent_daemon_is_given_its_time_for_its_status_and_followers_patience(
    layout: HomeLayout, client: DaemonClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_client, "STATUS_WAIT", 0.5)
    with silent(layout):
        began = time.monotonic()
        with pytest.raises(NotAnswering):
            next(client.follow(0, patience=0.2))
        patience = time.monotonic() - began
        with pytest.raises(NotAnswering):
            client.status()
        assert patience >= 0.2
        assert 0.5 <= time.monotonic() - began - patience < 30.0


async def test_a_follower_hears_of_the_daemons_end(layout: HomeLayout, client: DaemonClient) -> None:
    async with answering(layout):
        await asyncio.to_thread(client.append, draft(0))
        following = client.follow(0)
        await asyncio.to_thread(next, following)
    with pytest.raises(NotAnswering):
        await asyncio.to_thread(next, following)


def test_who_holds_the_lock_is_known_whether_or_not_it_answers(
    layout: HomeLayout, client: DaemonClient
) -> None:
    assert client.lock_holder() is None
    with HomeLock(layout.lock, "1.2"):
        holder = client.lock_holder()
        assert holder is not None
        assert (holder.pid, holder.version) == (os.getpid(), "1.2")
    assert client.lock_holder() is None
