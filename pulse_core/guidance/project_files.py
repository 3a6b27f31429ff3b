"""The files of projects, as the core wants them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from pulse_core.guidance.change_detection import FileObservation
from pulse_core.guidance.projection import GuidedProject

Lines = Callable[[], Iterator[str]]
"""The lines of `events.jsonl`, from the first one on, as often as they are asked for."""


class ProjectFiles(Protocol):
    """What lies in `.pulse`. A file that is a link out of the project counts as none; so does what can't be read."""

    def prepare(self, root: str) -> None:
        """Make the folder, and of the four files those that are missing; raises PulseError if that can't be."""

    def is_empty(self, root: str) -> bool:
        """Whether there is none of the four files."""

    def observe(self, root: str, known: Mapping[str, str | None]) -> Mapping[str, FileObservation]:
        """What the four files hold. known: hashes; what differs from them is read again until nobody writes it any more."""

    def texts(self, root: str) -> Mapping[str, str]:
        """The texts of the four files; what is long is cut, with a word about it."""

    def earlier(self, root: str) -> tuple[bytes | None, Iterator[bytes]]:
        """`state.json` and the lines of `events.jsonl` as they are; None and none if they are missing."""

    def publish(self, root: str, project: Callable[[], GuidedProject], lines: Lines | None) -> None:
        """Write `state.json` and `events.jsonl` where they are not what they should be; the folder is never made.

        project: returns the newest state, asked once nobody else writes. Without lines only that is written for which the
        state is enough.
        """
