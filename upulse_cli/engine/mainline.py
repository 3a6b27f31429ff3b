"""Whether main is what the log calls in force: moved by hand, or only a moment behind; and waiting until all is at rest."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.git.head_file import main_of
from pulse_adapters.git.repository import Repository
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.ports.readers import EventQuery
from pulse_core.projections import Engine
from pulse_core.projections.engine import ANSWERS
from upulse_cli.engine.asking import Spelled, engine_of

PATIENCE, LOOK = 30.0, 0.1
"""Seconds to wait for what is under way, and between two looks."""
WISHED = 20 * US_PER_SECOND
"""How long a rollback that survival wished for may be under way; later it has failed, or is held back."""
OWN_PACE = 2.0
"""Seconds that the daemon has to let main follow; then this command does it."""


def moved(home: Home, main: str, commit: str) -> str:
    """What is said of a main that somebody moved."""
    return (
        f"main was moved by hand to {main[:12]}; {commit[:12]} is in force, and stays so. Take what is new into staging: "
        f"git -C {home.path / 'staging'} merge main; then put main back: "
        f"git -C {home.path / 'engine'} reset --keep {commit[:12]}"
    )


def glanced(home: Home, commit: str) -> str:
    """The same, if main is elsewhere; git is asked only then, since main may be a moment behind."""
    main = main_of(home.path)
    if not main or not commit or main == commit or Repository(home.path).contains(commit, main):
        return ""
    return moved(home, main, commit)


def at_rest(home: Home, repository: Repository, note: Callable[[str], None]) -> Spelled | None:
    """Wait until what was asked for is answered and main has followed; the last answer, if there was one to wait for.

    Raises PulseError if no daemon runs that would answer, or if it takes too long.
    """
    began, told, waited = time.monotonic(), "", dict[str, int]()
    while True:
        engine, runs, waits = engine_of(home), holder(home.lock) is not None, time.monotonic() - began
        waited |= {id_: event.seq for id_, event in engine.requests.items()}
        if words := under_way(engine, runs, SystemClock().now()):
            if not runs:
                raise PulseError(f"{words}; it is answered when a daemon runs: upulse daemon start")
            if waits > PATIENCE:
                raise PulseError(f"{words}, and not done after {PATIENCE:g} s; try again later")
        elif _lags(engine, main := repository.head(), repository):
            words = "main does not yet follow what is in force"
            if not runs or waits > OWN_PACE:
                repository.point_main(engine.commit, main)
                continue
        else:
            return _answer(home, waited)
        if told != words:
            note(f"{words}; waiting for it")
            told = words
        time.sleep(LOOK)


def under_way(engine: Engine, runs: bool, now: Moment) -> str:
    """What the log waits for, in words; empty if nothing. runs: whether a daemon does, without which nothing rolls back."""
    if engine.requests:
        return "a promote or rollback is asked for already"
    is_wished = engine.asked is not None and now.since(engine.asked) < WISHED
    return "a rollback is under way" if is_wished and runs else ""


def _lags(engine: Engine, main: str, repository: Repository) -> bool:
    """Whether main is an ancestor of what is in force, and just does not follow yet."""
    return bool(engine.commit) and engine.commit != main and repository.contains(engine.commit, main)


def _answer(home: Home, waited: Mapping[str, int]) -> Mapping[str, Any] | None:
    """The last answer to these requests."""
    if not waited:
        return None
    with SqliteEventReader(home.path) as log:
        answers = _spelled(log, min(waited.values()), waited)
    return answers[-1] if answers else None


def _spelled(log: SqliteEventReader, seq: int, causes: Collection[str]) -> list[Spelled]:
    events = map(Event.spelled, log.events(EventQuery(since_seq=seq, kinds=tuple(ANSWERS))))
    return [event for event in events if event["cause"] in causes]
