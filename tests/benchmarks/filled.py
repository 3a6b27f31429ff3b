"""A log with a history: lives of effects and processes in a realistic mix, made once for a run."""

import asyncio
import atexit
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count, islice
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, EffectAcked, EffectExecuting, ErrorReported, ProcessDied, ProcessUp
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import Payload
from tests.benchmarks.harness import PLACE, made_home

MILLION = 1_000_000
BOOT = "00000000-0000-4000-8000-000000000000"
BATCH = 2_000
CYCLE = 10


def settled(effect: Effect, result: Payload) -> Iterator[Draft]:
    """The life of an effect: wished, begun, settled."""
    id_ = new_id()
    yield Draft(effect, subject=effect.key, id=id_)
    yield Draft(EffectExecuting(), subject=id_, cause=id_)
    yield Draft(result, subject=id_, cause=id_)


def restart(number: int, name: str) -> Effect:
    """What the watchdog wishes."""
    return Effect(
        action="restart-process",
        key=f"restart-process:{name}",
        params={
            "process": name,
            "instead_of": {"pid": number % 30_000, "started": number},
            "if_dead": True,
        },
        reason=f"{name} is dead: process {number % 30_000} died",
        survival=True,
        rule="process_watchdog",
        tick=number + 1,
        samples=(number,),
    )


def history() -> Iterator[Draft]:
    """Ten events a cycle, for ever: a death answered by a restart, somebody's command, two failures."""
    for number in count():
        name, pid = f"worker-{number % 10}", number % 30_000
        yield Draft(ProcessDied(pid=pid, evidence=f"process {pid} died", healthy=True), subject=name)
        acked = EffectAcked(took_us=900, result={"pid": pid + 1, "started": number})
        yield from settled(restart(number, name), acked)
        yield Draft(ProcessUp(pid=pid + 1, started=number, evidence="process is alive"), subject=name)
        command = {"argv": ["/usr/local/bin/rotate", f"--shard={number}"]}
        wish = Effect(action="run-command", key=f"command-{number}", params=command, reason="somebody asked")
        yield from settled(wish, EffectAcked(took_us=12_000, result={"exit": 0, "output": "done\n" * 10}))
        for turn in range(2):
            yield Draft(ErrorReported(message="did not answer within 5 s"), subject=f"watcher:gauge-{turn}")


def dated(drafts: Iterator[Draft], since: Moment) -> Iterator[Draft]:
    """The drafts, one a second from a moment on, as events come on a machine that is guarded well."""
    for seconds, draft in enumerate(drafts):
        yield replace(draft, moment=since.plus(seconds * US_PER_SECOND))


async def fill(home: Home, rows: int) -> None:
    """Bring the home's log to at least so many rows, the last of them of this minute."""
    past = rows * US_PER_SECOND
    drafts = dated(history(), Moment(time.time_ns() // 1000 - past, BOOT, US_PER_SECOND))
    opened = SqliteEventLog.open(home.events, clock=SystemClock(), objects=FileObjects(home.objects))
    async with opened as log:
        while log.head.seq < rows:
            await log.append(*islice(drafts, BATCH))


@cache
def filled_home(rows: int = MILLION) -> Home:
    """A home with so many events, the same one for everybody in this run, gone when it ends."""
    place = Path(tempfile.mkdtemp(prefix="pulse-bench-", dir=PLACE))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    home = made_home(place / "home", "")
    asyncio.run(fill(home, rows))
    return home
