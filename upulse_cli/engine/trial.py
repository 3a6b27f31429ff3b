"""`upulse dev` from its beginning to its end: where the snapshots come from, who hears of saves, and how it stops."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import holder
from pulse_adapters.rule_host.standby import StandbyHosts
from upulse_cli.engine.dev import Dev, Execute, saves
from upulse_cli.engine.dev_news import News, Refused, Seen, Sensed, Tell
from upulse_cli.engine.executing import here_first
from upulse_cli.engine.own_hands import OwnHands
from upulse_cli.engine.present import Alone, Beside, Present
from upulse_cli.wiring.engine import rule_hosts


class Trial(NamedTuple):
    """What is tried: the home, the tree, who hears of it, and who does what it wishes."""

    home: Home
    path: str
    tell: Tell
    execute: Execute | None = None


def staging_of(home: Home) -> str:
    """The worktree for experiments, mended if that is possible without loss."""
    repository = Repository(home.path)
    repository.mend()
    return str(repository.staging().path)


async def once(trial: Trial) -> bool:
    """Load staging and fold one snapshot; whether nothing was wrong."""
    wrong: list[News] = []

    def tell(news: News) -> None:
        if isinstance(news, Refused) or (isinstance(news, Seen) and news.faults):
            wrong.append(news)
        trial.tell(news)

    async with present(trial.home) as source, developing(trial._replace(tell=tell), senses=False) as dev:
        await dev.begin(source)
    return not wrong


async def go_on(trial: Trial) -> None:
    """Follow saves and ticks, for ever."""
    async with developing(trial) as dev:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_follow_saves(dev, trial.path), name="saves")
                await _follow_ticks(dev, trial.home)
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed


async def _follow_saves(dev: Dev, path: str) -> None:
    async for files in saves(path):
        await dev.load(files)


async def _follow_ticks(dev: Dev, home: Home) -> None:
    """One source after the other: a daemon may come and go."""
    while True:
        async with present(home) as source:
            await dev.follow(source)


@asynccontextmanager
async def developing(trial: Trial, senses: bool = True) -> AsyncIterator[Dev]:
    """Runs the tree, with a child that stands by as soon as there is nothing more urgent. senses: its watchers, too."""
    hosts = StandbyHosts(rule_hosts(trial.home, dev=True))
    woken = asyncio.Event()

    def tell(news: News) -> None:
        trial.tell(news)
        if isinstance(news, Refused) or (isinstance(news, Seen) and news.is_again):
            hosts.warm_soon()
        if isinstance(news, Sensed) and news.wakes:
            woken.set()

    hands = OwnHands(trial.home, SystemClock(), tell) if senses else None
    execute = here_first(trial.execute, hands) if trial.execute and hands else trial.execute
    dev = Dev(hosts, trial.path, tell, execute, hands)
    waking = asyncio.create_task(_wake(dev, woken), name="folding what staging senses")
    try:
        yield dev
    finally:
        waking.cancel()
        await dev.close()
        await hosts.close()


async def _wake(dev: Dev, woken: asyncio.Event) -> None:
    """Fold once more whenever a watcher brought what is worth a tick, for ever."""
    while await woken.wait():
        woken.clear()
        await dev.sensed()


@asynccontextmanager
async def present(home: Home) -> AsyncIterator[Present]:
    """Beside the daemon if one runs, else alone."""
    if holder(home.lock):
        beside = Beside(home)
        try:
            yield beside
        finally:
            beside.close()
        return
    with sense_of(home) as sense:
        yield await Alone.begun(home, sense)


@contextmanager
def sense_of(home: Home) -> Iterator[Any]:
    """The sense of this machine's vital signs, as a daemon has it."""
    from pulse_adapters.host.system import Before, SystemResource
    from pulse_core.app.state import current_state, settings_for
    from pulse_core.daemon import CurrentSettings
    from pulse_core.model.vitals import Window
    from pulse_core.record.view import View
    from upulse_cli.wiring.acting import hands  # it knows all adapters, and is slow to import
    from upulse_cli.wiring.home import home_context

    facts = current_state(home_context(home))
    current_settings, view = CurrentSettings(lambda: settings_for(home_context(home), facts)[0]), View(facts)
    acting = hands(home, current_settings, view)
    try:
        yield SystemResource(
            current_settings, lambda: 0.0, acting.spawner, acting.consumers, Before(view, lambda: Window())
        )
    finally:
        acting.close()


def run(work: Coroutine[Any, Any, Any], quits: bool = False) -> None:
    """Run it until it is told to end: by SIGTERM, or by q if `quits`. Ctrl-C leaves as a KeyboardInterrupt."""

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        if quits:
            loop.add_reader(sys.stdin, lambda: _pressed() and task.cancel())
        await work

    with suppress(asyncio.CancelledError):
        asyncio.run(main())


def _pressed() -> bool:
    """Whether the key was q, or the terminal is gone."""
    return os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b"")
