"""The user that a child takes on, and where that user finds the code that the child loads."""

from collections.abc import Callable
from typing import NamedTuple


class RunAs(NamedTuple):
    """user: the uid and gid that the child takes on, if not ours; shown: where that user finds what lies at a path.

    `shown` raises CannotLoad; None: the user reads it where it lies.
    """

    user: tuple[int, int] | None = None
    shown: Callable[[str], str] | None = None
