"""What the doctor asks of the user that runs the engine's code."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.engine_user.account import create_account
from pulse_adapters.engine_user.account_setup import account_state
from pulse_core.app.doctor import OK, WARN, Finding
from pulse_core.model.errors import PulseError


@dataclass(frozen=True)
class AccountChecks:
    """Checks of the engine's user. user: as the settings name it; runs_without: whether a loaded engine has none."""

    home: Path
    user: Callable[[], str | None]
    runs_without: Callable[[], bool]

    def engine_user(self) -> Iterator[Finding]:
        """Whether the engine's code runs as a user that may do nothing else."""
        if not (self.home / "engine").exists():
            return
        try:
            now = account_state(self.home, self.user())
        except PulseError:
            return  # the settings are another check's
        if self.home.stat().st_uid:
            yield Finding("engine user", OK, f"isolation: partial (no user): {now.missing}", now.remedy)
        elif now.missing:
            words = f"rules of your own run as root: {now.missing}"
            may = now.can_be_made and os.geteuid() == 0
            repair = (
                (lambda: f"made the user {create_account(now.account).name}; restart the daemon")
                if may
                else None
            )
            yield Finding("engine user", WARN, words, now.remedy, repair)
        elif self.runs_without():
            words = f"there is the user {now.account}, but the engine was loaded without it"
            yield Finding("engine user", WARN, words, "upulse daemon restart")
        else:
            yield Finding("engine user", OK, f"rules of your own run as {now.account}")
