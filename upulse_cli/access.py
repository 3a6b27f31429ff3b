"""How a command changes something: by an event, through the daemon if one runs, or else under the home's lock."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import holder
from pulse_adapters.ipc.protocol import NotAnswering
from pulse_core.model.errors import HomeBusy, NoHome, PulseError
from upulse_cli.speech import say

PATIENCE = 10.0
"""Seconds to wait for a daemon that is just starting or stopping."""

_STEP = 0.05


class Wish(NamedTuple):
    """An event that a command would like to be recorded."""

    kind: str
    subject: str = ""
    data: Mapping[str, Any] = {}
    cause: str | None = None


class Answer(NamedTuple):
    """The recorded event, spelled; whether it was there before; whether a daemon took it."""

    event: Mapping[str, Any]
    existing: bool
    by_daemon: bool


def found_home(option: str | None) -> Home:
    """The home that is meant; raises NoHome if there is none."""
    home = Home.resolve(option)
    if not home.exists():
        raise NoHome(str(home.path))
    return home


def append(home: Home, wish: Wish) -> Answer:
    """Have it recorded; it is on disk when this returns.

    The id is made here, so that asking again after a lost connection cannot record it twice.
    """
    draft = {**wish._asdict(), "id": _new_id()}
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return _asked(home, draft)
        except NotAnswering as error:
            failed: PulseError = error
        if holder(home.lock) is None:
            try:
                return _alone(home, draft)
            except HomeBusy as error:  # a daemon has just started, or another command is appending
                failed = error
        if time.monotonic() >= until:
            raise failed
        time.sleep(_STEP)


def say_when(answer: Answer) -> None:
    """Say that it will take effect later, if no daemon runs."""
    if not answer.by_daemon:
        say("no daemon runs; this takes effect when one starts (upulse daemon start)")


def _asked(home: Home, draft: Mapping[str, Any]) -> Answer:
    with Client(home.socket, PATIENCE) as client:
        event = client.ask("append", drafts=[draft])["events"][0]
    existing = event.pop("existing")
    return Answer(event, existing, True)


def _alone(home: Home, draft: Mapping[str, Any]) -> Answer:
    import asyncio  # all of this is slow to import, and only needed while no daemon runs

    from pulse_core.daemon.request_handler import draft_in
    from upulse_cli.quiet import append_quietly

    recorded = asyncio.run(append_quietly(home, draft_in(draft)))
    return Answer(recorded.event.spelled(), recorded.existing, False)


def _new_id() -> str:
    from uuid_utils import uuid7

    return str(uuid7())
