"""What a notice says, and how it is said on one line."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pulse_core.model.event import Event


class NoticeParams(BaseModel):
    """What to say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(min_length=1, max_length=500, description="the notice in a few words")
    text: str = Field("", max_length=10_000, description="what is wrong, what was tried, what comes next")
    over: bool = Field(False, description="it is over: what the notices of this key told before")


class RecordedNotice(NamedTuple):
    """A recorded notice: its effect's id, its row, when it was wished (UTC microseconds), and what it says."""

    id: str
    seq: int
    at: int
    said: NoticeParams

    @classmethod
    def of(cls, event: Event, said: NoticeParams) -> "RecordedNotice":
        """The notice that this effect's event wishes."""
        return cls(event.id, event.seq, event.at, said)


def line(said: NoticeParams) -> str:
    """Title and text on one line: line breaks folded, so that it can't pass for two, and nothing steers a terminal."""
    words = ": ".join(part for part in (said.title, said.text) if part)
    return "".join(char if char.isprintable() else "?" for char in " ".join(words.split()))
