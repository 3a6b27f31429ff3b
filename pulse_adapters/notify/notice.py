"""A recorded notice, and its text on one line."""

from typing import NamedTuple

from pulse_core.actions import NoticeParams
from pulse_core.model.event import Event


class RecordedNotice(NamedTuple):
    """A recorded notice: its effect's id, its row, when it was requested (UTC microseconds), and its content."""

    id: str
    seq: int
    at: int
    said: NoticeParams

    @classmethod
    def of(cls, event: Event, said: NoticeParams) -> "RecordedNotice":
        """The notice that this effect's event requests."""
        return cls(event.id, event.seq, event.at, said)


def one_line(said: NoticeParams) -> str:
    """Title and text on one line: no line breaks, so that it can't pass for two, and no control characters."""
    words = ": ".join(part for part in (said.title, said.text) if part)
    return "".join(char if char.isprintable() else "?" for char in " ".join(words.split()))
