"""The executors `clean-paths` and `archive-sessions`: each has a program of this package do it in a child."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pulse_adapters.workers import conversation
from pulse_adapters.workers.environment import EFFECT_MARK, python_environment
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.users import expand_home
from pulse_adapters.workers.worker import module_program
from pulse_core.actions import ARCHIVE_SESSIONS, CLEAN_PATHS, ArchiveParams, CleanParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Policy, Result, Safety
from pulse_core.settings.resources import SessionsSettings
from pulse_core.settings.settings import Settings

CLEAN_TIMEOUT = 600.0
ARCHIVE_TIMEOUT = 3_600.0
FINISH_TIMEOUT = 600.0


async def ask(program: str, order: Mapping[str, Json], *, seconds: float, effect: str) -> dict[str, Json]:
    """Run `pulse_adapters.files.PROGRAM` and return its answer; raises PulseError with its message if it fails.

    Its own deadline is 80 % of `seconds`, so that it ends before it is killed.
    """
    worker = module_program(
        f"pulse_adapters.files.{program}", env={**python_environment(), EFFECT_MARK: effect}
    )
    order = {**order, "seconds": seconds * 0.8, "effect": effect}
    try:
        return await conversation.ask(worker, order, dict, seconds=seconds)
    except WorkerFault as fault:
        raise PulseError(f"{program} {fault}") from None


class CleanPaths:
    """Deletes files that were not modified for long, in a child; see `clean` for what is kept.

    ledger: the file that records each deletion; home: Pulse's own, which is never cleaned.
    """

    action, params = CLEAN_PATHS.name, CleanParams

    def __init__(self, settings: Callable[[], Settings], ledger: Path, home: Path) -> None:
        self._settings, self._ledger, self._home = settings, ledger, home
        self._known: dict[str, str] = {}

    def policy(self, params: CleanParams) -> Policy:
        """Idempotent: a file is deleted once."""
        return Policy(Safety.IDEMPOTENT, timeout=CLEAN_TIMEOUT)

    def check(self, params: CleanParams) -> None:
        """Refuse a root that the settings do not allow; the message names the setting that allows it."""
        self._allowed(params)

    def _allowed(self, params: CleanParams) -> list[str]:
        """The roots, each as the setting that allows it spells it."""
        allow = self._settings().resources.clean
        if not allow:
            raise Refused(
                "nothing may be cleaned; name directories in `clean` under [resources] in config.toml"
            )
        by_path = {_normal_path(text): text for text in allow}
        return [_allowed_root(root, by_path) for root in params.roots or allow]

    async def execute(self, effect: Effect, params: CleanParams, event: Event) -> Result:
        """Clean; the result has what was deleted and why the rest was kept. A missing root has nothing to clean."""
        older = params.older_than_us
        order: Mapping[str, Json] = {
            "roots": self._allowed(params),
            "older_than_us": self._settings().resources.clean_age if older is None else older,
            "dry_run": params.dry_run,
            "limit_bytes": params.limit_bytes,
            "near": params.near,
            "known": self._known,
            "ledger": str(self._ledger),
            **_forbidden(self._home),
        }
        answer = await ask("clean", order, seconds=CLEAN_TIMEOUT - 30, effect=event.id)
        self._known |= answer.pop("real")
        if answer["faults"] and not answer["files"]:
            raise PulseError("; ".join(answer["faults"]))
        return Result(
            {name: value for name, value in answer.items() if value not in ([], {}) or name == "files"}
        )

    async def verify(self, effect: Effect, params: CleanParams, event: Event) -> Result | None:
        """Never called: it is done again."""
        return None


def _forbidden(home: Path) -> Mapping[str, str]:
    """The home directories that are nobody's rubbish: of the user, and Pulse's own."""
    return {"home": expand_home("~"), "own": os.path.realpath(home)}


def _normal_path(text: str) -> str:
    return os.path.normpath(expand_home(text))


def _allowed_root(root: str, by_path: Mapping[str, str]) -> str:
    """The root in the words of the setting that allows it.

    Both are compared as texts: to follow the links of a path that a rule made up could take long, and this is done in
    the loop.
    """
    if (path := _normal_path(root)) not in by_path:
        raise Refused(
            f'{root!r} may not be cleaned; to allow it, add "{path}" to `clean` under [resources] in config.toml'
        )
    return by_path[path]


class ArchiveSessions:
    """Archives sessions that were not modified for long, in a child of low priority; see `archive`.

    archive: the directory for archives if the settings name none; home: Pulse's own.
    """

    action, params = ARCHIVE_SESSIONS.name, ArchiveParams

    def __init__(self, settings: Callable[[], Settings], archive: Path, home: Path) -> None:
        self._settings, self._archive, self._home = settings, archive, home

    def policy(self, params: ArchiveParams) -> Policy:
        """After a crash, an interrupted run is finished or undone before a new one begins."""
        return Policy(Safety.VERIFY_FIRST, timeout=ARCHIVE_TIMEOUT)

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
        answer = await self._ask(params, event, ARCHIVE_TIMEOUT - 60, finish_only=False)
        return Result({name: value for name, value in answer.items() if value not in ([], {})})

    async def verify(self, effect: Effect, params: ArchiveParams, event: Event) -> Result | None:
        """Remove partial archives of a crash, finish what was archived already; None if that was nothing."""
        answer = await self._ask(params, event, FINISH_TIMEOUT, finish_only=True)
        return Result({**answer, "interrupted": True}) if answer.get("archives") else None

    async def _ask(
        self, params: ArchiveParams, event: Event, seconds: float, finish_only: bool
    ) -> dict[str, Json]:
        sessions = self._sessions()
        order = {
            "root": sessions.root,
            "archive": sessions.archive or str(self._archive),
            "keep_us": sessions.keep,
            "retain_us": sessions.retain,
            "near": params.near,
            **_forbidden(self._home),
            "finish_only": finish_only,
        }
        return await ask("archive", order, seconds=seconds, effect=event.id)
