"""A watcher on demand is made once there is something to watch for it, and is that one from then on."""

import asyncio
from typing import Any

from pulse_core.capability import WatcherContext
from pulse_core.home import HomeLayout
from pulse_core.model.event import Event
from pulse_core.model.kinds import Paused, ProcessUp
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.log import Listener
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.watch.on_demand import IDLE_S, WatcherOnDemand
from tests.events import event


class Gauge:
    """A watcher that has something to tell."""

    name = key = "gauge"
    interval, timeout = 5.0, 1.0

    def __init__(self) -> None:
        self.nudge = asyncio.Event()

    async def collect(self) -> Reading:
        return Reading({"level": 3})

    def should_wake(self, window: Window) -> bool:
        return True


async def test_a_watcher_is_made_when_there_is_something_to_watch(tmp_path: Any) -> None:
    listeners: list[Listener] = []
    nothing: Any = None
    context = WatcherContext(
        prober=nothing,
        commands=nothing,
        clock=nothing,
        settings=Settings,
        state=State,
        window=nothing,
        programs=nothing,
        home=HomeLayout(tmp_path),
        append=nothing,
        listen=listeners.append,
    )
    things: list[str] = []
    made: list[Gauge] = []

    def make() -> Gauge:
        made.append(Gauge())
        return made[-1]

    def tell(*events: Event) -> None:
        for listener in listeners:
            listener(events)

    watcher = WatcherOnDemand("gauge", context, {"process-up"}, lambda: bool(things), make)
    assert (await watcher.collect()).data == {}
    assert (watcher.interval, watcher.should_wake(Window()), made) == (IDLE_S, False, [])
    tell(event(1, Paused()))
    assert not watcher.nudge.is_set()
    things.append("one")
    tell(event(2, ProcessUp(pid=1, started=1, evidence="seen"), "one"))
    assert watcher.nudge.is_set()
    assert [(await watcher.collect()).data for _ in range(2)] == [{"level": 3}, {"level": 3}]
    assert (watcher.interval, watcher.should_wake(Window()), len(made)) == (5.0, True, 1)
    assert watcher.nudge is made[0].nudge
