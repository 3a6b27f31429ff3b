"""Changing something in a home: by an event, through its daemon if one runs, or else under the home's lock."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import HomeBusy, NotAnswering, PulseError

PATIENCE = 10.0
"""Seconds to wait for a daemon that is just starting or stopping."""

ALPHABET, LENGTH = "0123456789abcdefghjkmnpqrstvwxyz", 10
"""Of new short ids: without letters that look like a digit, or like each other."""

_STEP = 0.05


class Appended(NamedTuple):
    """The recorded event as JSON values; whether it was there before; whether a daemon took it."""

    event: Mapping[str, Any]
    existing: bool
    by_daemon: bool


def append(
    home: HomeContext,
    kind: str,
    subject: str = "",
    data: Mapping[str, Any] = {},
    cause: str | None = None,
    id: str = "",
) -> Appended:
    """Have an event recorded; it is on disk when this returns.

    The id is made here, if the caller has none, so that asking again after a lost connection cannot record it twice.
    """
    draft = {"kind": kind, "subject": subject, "data": data, "cause": cause, "id": id or home.new_id()}
    return append_all(home, (draft,))[0]


def new_short_id(prefix: str) -> str:
    """An id for a subject that nothing else has, short enough to be typed: 50 random bits after a prefix."""
    import secrets  # which few commands need

    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def append_all(home: HomeContext, drafts: Sequence[Mapping[str, Any]]) -> Sequence[Appended]:
    """Have events recorded, each with its id, one after the other: where one is refused, those before it are on disk."""
    done: list[Appended] = []
    until = time.monotonic() + PATIENCE
    while True:
        try:
            while len(done) < len(drafts):
                done.append(Appended(*home.daemon.append(drafts[len(done)]), by_daemon=True))
            return done
        except NotAnswering as error:
            failed: PulseError = error
        if home.daemon.lock_holder() is None:
            try:
                recorded = home.append_offline(home, drafts[len(done) :])
                return [*done, *(Appended(*one, by_daemon=False) for one in recorded)]
            except HomeBusy as error:  # a daemon has just started, or another command is appending
                failed = error
        if time.monotonic() >= until:
            raise failed
        time.sleep(_STEP)
