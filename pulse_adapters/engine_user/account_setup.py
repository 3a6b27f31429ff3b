"""Whether a home can have a user for its engine, what is missing, and making that user."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.engine_user.account import (
    READABLE,
    Account,
    create_account,
    find_account,
    first_unreadable,
)
from pulse_adapters.engine_user.account_record import SHARED, free_name, record_name, recorded_name
from pulse_adapters.workers.file_systems import answer_in_time
from pulse_adapters.workers.users import user_name
from pulse_core.app.doctor import OK, WARN, Finding
from pulse_core.model.errors import PulseError

_IDLE = "don't run"


class AccountState(NamedTuple):
    """account: the user, there or to come, empty if none can; missing: what keeps the engine from it; remedy: what helps.

    can_be_made: whether making the user is all that is missing; meanwhile: what becomes of the engine without it.
    """

    account: str
    missing: str = ""
    remedy: str = ""
    can_be_made: bool = False
    meanwhile: str = "run as root"


def account_state(home: Path, user: str | None) -> AccountState:
    """Whether the daemon of this home can give the engine a user. user: as the settings name it."""
    if owner := home.stat().st_uid:
        words = (
            f"the daemon runs as {user_name(owner)}, and only root can give the engine's code another user"
        )
        return AccountState("", words, "a home that is root's: sudo upulse init --home /var/lib/pulse, then: sudo "
                            "upulse daemon install --home /var/lib/pulse")  # fmt: skip
    name = user or recorded_name(home) or free_name(home)
    account = find_account(name)
    if where := first_unreadable(account or Account(name, -1, -1)):
        words = f"the user {name} can't read {where}"
        return AccountState(name, words, READABLE, meanwhile=_IDLE if user else "run as root")
    if account:
        return AccountState(name)
    if user or recorded_name(home):
        return AccountState(name, f"there is no user {name}", "upulse daemon install", True, _IDLE)
    shared = f"run as {SHARED}" if find_account(SHARED) else "run as root"
    return AccountState(name, "the home has no user of its own", "upulse daemon install", True, shared)


def make_account(home: Path, user: str | None) -> Account:
    """The engine's user, made now if it is not there, and recorded as this home's unless the settings name it."""
    return create_account(user or record_name(home))


def set_up_account(home: Path, user: str | None) -> str:
    """Make the user if that is all that is missing, as root; how it stands then, in a sentence."""
    try:
        now = account_state(home, user)
        if now.can_be_made and os.geteuid() == 0:
            make_account(home, user)
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
        engine = self.home / "engine"
        if not answer_in_time(str(engine), engine.exists):
            return
        try:
            user = self.user()
            now = account_state(self.home, user)
        except PulseError:
            return  # the settings are another check's
        if self.home.stat().st_uid:
            yield Finding("engine user", OK, f"isolation: partial (no user): {now.missing}", now.remedy)
        elif now.missing:
            words = f"rules of your own {now.meanwhile}: {now.missing}"

            def made() -> str:
                return f"made the user {make_account(self.home, user).name}; restart the daemon"

            may = now.can_be_made and os.geteuid() == 0
            yield Finding("engine user", WARN, words, now.remedy, made if may else None)
        elif self.runs_without():
            words = f"there is the user {now.account}, but the engine was loaded without it"
            yield Finding("engine user", WARN, words, "upulse daemon restart")
        else:
            yield Finding("engine user", OK, f"rules of your own run as {now.account}")
