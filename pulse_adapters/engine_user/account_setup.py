"""Whether a home can have a user for its engine, what is missing, and making that user."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.engine_user.account import (
    NAME,
    READABLE,
    Account,
    create_account,
    find_account,
    first_unreadable,
)
from pulse_adapters.workers.run_as import user_name
from pulse_core.app.doctor import OK, WARN, Finding
from pulse_core.model.errors import PulseError


class AccountState(NamedTuple):
    """account: the user, there or to come; missing: what keeps the engine from it; remedy: what helps.

    can_be_made: whether making the user is all that is missing.
    """

    account: str
    missing: str = ""
    remedy: str = ""
    can_be_made: bool = False


def account_state(home: Path, user: str | None) -> AccountState:
    """Whether the daemon of this home can give the engine a user. user: as the settings name it."""
    name = user or NAME
    if owner := home.stat().st_uid:
        words = (
            f"the daemon runs as {user_name(owner)}, and only root can give the engine's code another user"
        )
        return AccountState(name, words, "a home that is root's: sudo upulse init --home /var/lib/pulse, then: sudo "
                            "upulse daemon install --home /var/lib/pulse")  # fmt: skip
    account = find_account(name)
    if where := first_unreadable(account or Account(name, -1, -1)):
        return AccountState(name, f"the user {name} can't read {where}", READABLE)
    if account is None:
        return AccountState(name, f"there is no user {name}", "upulse daemon install", can_be_made=True)
    return AccountState(name)


def set_up_account(home: Path, user: str | None) -> str:
    """Make the user if that is all that is missing, as root; how it stands then, in a sentence."""
    try:
        now = account_state(home, user)
        if now.can_be_made and os.geteuid() == 0:
            create_account(now.account)
            now = account_state(home, user)
    except PulseError as error:
        return f"Rules of your own have no user of their own: {error}"
    if now.missing:
        return f"Rules of your own have no user of their own: {now.missing}. What would help: {now.remedy}"
    return f"Rules of your own run as the user {now.account}."


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

            def made() -> str:
                return f"made the user {create_account(now.account).name}; restart the daemon"

            may = now.can_be_made and os.geteuid() == 0
            yield Finding("engine user", WARN, words, now.remedy, made if may else None)
        elif self.runs_without():
            words = f"there is the user {now.account}, but the engine was loaded without it"
            yield Finding("engine user", WARN, words, "upulse daemon restart")
        else:
            yield Finding("engine user", OK, f"rules of your own run as {now.account}")
