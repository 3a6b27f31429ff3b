"""The user that a child takes on, and where that one finds the code that the child loads."""

import asyncio
import os
from collections.abc import Callable
from typing import NamedTuple

from pulse_core.ports.engine import Revision


class RunAs(NamedTuple):
    """user: the uid and gid that the child takes on, if not ours; shown: where that user finds what lies at a path.

    `shown` raises CannotLoad; None: the user reads it where it lies.
    """

    user: tuple[int, int] | None = None
    shown: Callable[[str], str] | None = None

    async def path_of(self, revision: Revision) -> str:
        """Where the user finds a revision. Raises CannotLoad."""
        return await asyncio.to_thread(self._path_of, revision.path)

    def _path_of(self, path: str) -> str:
        return os.path.realpath(self.shown(path) if self.shown else path)
