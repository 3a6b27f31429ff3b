"""The executor `archive-sessions`: archives old sessions, and deletes them once the archive was read back."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pulse_adapters.files.worker_client import ask
from pulse_core.actions import ARCHIVE_SESSIONS, ArchiveParams
from pulse_core.model.errors import Refused
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports import Policy, Result, Safety
from pulse_core.settings import SessionsSettings, Settings

_TIMEOUT = 3_600.0
_FINISH = 600.0


class ArchiveSessions:
    """Archives sessions that were not modified for long, in a child of low priority; see `archive`.

    archive: the directory for archives if the settings name none; home: Pulse's own.
    """

    action, params = ARCHIVE_SESSIONS.name, ArchiveParams

    def __init__(self, settings: Callable[[], Settings], archive: Path, home: Path) -> None:
        self._settings, self._archive, self._home = settings, archive, home

    def policy(self, params: ArchiveParams) -> Policy:
        """After a crash, an interrupted run is finished or undone before a new one begins."""
        return Policy(Safety.VERIFY_FIRST, timeout=_TIMEOUT)

    def check(self, params: ArchiveParams) -> None:
        """Refuse while the settings name no sessions."""
        self._sessions()

    def _sessions(self) -> SessionsSettings:
        if (sessions := self._settings().resources.sessions) is None:
            raise Refused(
                'there are no sessions to archive; name them as sessions = { root = "…" } under [resources]'
            )
        return sessions

    async def execute(self, effect: Effect, params: ArchiveParams, event: Event) -> Result:
        """Archive; the result has the number of archived sessions, the archives' names, and why others were left."""
        order = {**self._order(params), "finish_only": False}
        answer = await ask("archive", order, seconds=_TIMEOUT - 60, effect=event.id)
        return Result({name: value for name, value in answer.items() if value not in ([], {})})

    async def verify(self, effect: Effect, params: ArchiveParams, event: Event) -> Result | None:
        """Remove partial archives of a crash, finish what was archived already; None if that was nothing."""
        order = {**self._order(params), "finish_only": True}
        answer = await ask("archive", order, seconds=_FINISH, effect=event.id)
        return Result({**answer, "interrupted": True}) if answer.get("archives") else None

    def _order(self, params: ArchiveParams) -> Mapping[str, Json]:
        sessions = self._sessions()
        return {
            "root": sessions.root,
            "archive": sessions.archive or str(self._archive),
            "keep_us": sessions.keep,
            "retain_us": sessions.retain,
            "near": params.near,
            "home": os.path.expanduser("~"),
            "own": os.path.realpath(self._home),
        }
