"""Recorded notices as text: on one line, as a message by itself, or several as a list with their times. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from pulse_core.actions import NoticeParams
from pulse_core.model.moment import US_PER_SECOND, iso
from pulse_core.ports.transport import OutgoingMessage

LATE_US = 300 * US_PER_SECOND
"""From this age on a notice is said to be late."""

TITLE, ENTRY, ALONE = 250, 400, 4_000
"""Characters of a title, of a notice in a list, and of one by itself; `upulse effect show` has the rest."""


class RecordedNotice(NamedTuple):
    """A recorded notice: its effect's id, its row, when it was requested (UTC microseconds), and its content."""

    id: str
    seq: int
    at: int
    said: NoticeParams


def compose_message(url: str, notices: Sequence[RecordedNotice], host: str, now: int) -> OutgoingMessage:
    """The notices as one message (at least one; oldest first); host: the machine's name; now: UTC microseconds."""
    good = all(notice.said.over for notice in notices)
    late = sum(now - notice.at > LATE_US for notice in notices)
    if len(notices) > 1:
        waited = "1 of them" if late == 1 else f"{late} of them"
        entries = [f"{utc_text(notice.at)}  {_entry(notice.said)}" for notice in notices]
        body = "\n\n".join([f"{waited} could not be sent before.", *entries] if late else entries)
        return OutgoingMessage(url, f"{len(notices)} notices from {host}", body, good)
    (notice,) = notices
    words = truncate(notice.said.text or notice.said.title, ALONE)
    body = f"{words}\n\nIt is of {utc_text(notice.at)} and could not be sent before." if late else words
    return OutgoingMessage(url, f"{truncate(notice.said.title, TITLE)} ({host})", body, good)


def _entry(said: NoticeParams) -> str:
    """A notice's title and text for a list."""
    return truncate(f"{truncate(said.title, TITLE)}: {said.text}" if said.text else said.title, ENTRY)


def utc_text(at: int) -> str:
    """UTC microseconds, to the second: `2027-01-15 08:00:02 UTC`."""
    return f"{iso(at)[:19].replace('T', ' ')} UTC"


def truncate(text: str, most: int) -> str:
    """The text, cut if it is longer than this."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(said: NoticeParams) -> str:
    """Title and text on one line: no line breaks, so that it can't pass for two, and no control characters."""
    words = ": ".join(part for part in (said.title, said.text) if part)
    return "".join(char if char.isprintable() else "?" for char in " ".join(words.split()))
