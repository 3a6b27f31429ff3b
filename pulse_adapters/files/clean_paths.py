"""The executor `clean-paths`: deletes old files below the directories that the settings name, and nowhere else."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pulse_adapters.files.worker_client import ask
from pulse_core.actions import CLEAN_PATHS, CleanParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.ports import Policy, Result, Safety
from pulse_core.settings import Settings

_TIMEOUT = 600.0


class CleanPaths:
    """Deletes files that were not modified for long, in a child; see `cleaner` for what is kept.

    ledger: the file that records each deletion; home: Pulse's own, which is never cleaned.
    """

    action, params = CLEAN_PATHS.name, CleanParams

    def __init__(self, settings: Callable[[], Settings], ledger: Path, home: Path) -> None:
        self._settings, self._ledger, self._home = settings, ledger, home
        self._known: dict[str, str] = {}

    def policy(self, params: CleanParams) -> Policy:
        """Idempotent: a file is deleted once."""
        return Policy(Safety.IDEMPOTENT, timeout=_TIMEOUT)

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
        # A root in the setting's own words needs no look at the disk, which may not answer.
        real = {} if set(params.roots) <= set(allow) else {_real_path(text): text for text in allow}
        return [root if root in allow else _same_root(root, real) for root in params.roots or allow]

    async def execute(self, effect: Effect, params: CleanParams, event: Event) -> Result:
        """Clean; the result has what was deleted and why the rest was kept. A missing root has nothing to clean."""
        answer = await ask("clean_program", self._order(params), seconds=_TIMEOUT - 30, effect=event.id)
        self._known |= answer.pop("real")
        if answer["faults"] and not answer["files"]:
            raise PulseError("; ".join(answer["faults"]))
        return Result(
            {name: value for name, value in answer.items() if value not in ([], {}) or name == "files"}
        )

    def _order(self, params: CleanParams) -> Mapping[str, Json]:
        older = params.older_than_us
        return {
            "roots": self._allowed(params),
            "older_than_us": self._settings().resources.clean_age if older is None else older,
            "dry_run": params.dry_run,
            "limit_bytes": params.limit_bytes,
            "near": params.near,
            "known": self._known,
            "ledger": str(self._ledger),
            "home": os.path.expanduser("~"),
            "own": os.path.realpath(self._home),
        }

    async def verify(self, effect: Effect, params: CleanParams, event: Event) -> Result | None:
        """Never called: it is done again."""
        return None


def _real_path(text: str) -> str:
    return os.path.realpath(os.path.expanduser(text))


def _same_root(root: str, real: Mapping[str, str]) -> str:
    """The setting that allows this root under another name."""
    if (found := _real_path(root)) not in real:
        raise Refused(
            f'{root!r} may not be cleaned; to allow it, add "{found}" to `clean` under [resources] in config.toml'
        )
    return real[found]
