"""Giving the engine a user of its own: whether a home can have one, what is missing, and making it."""

import os
import pwd
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.engine_user.account import NAME, Account, found, make
from pulse_adapters.engine_user.reach import barrier
from pulse_core.model.errors import PulseError
from upulse_cli.engine.housing import READABLE, settings_of


class Prospect(NamedTuple):
    """How it stands. account: the user, there or to come; missing: what keeps the engine from it; remedy: what helps.

    can_be_made: whether making the user is all that is missing.
    """

    account: str
    missing: str = ""
    remedy: str = ""
    can_be_made: bool = False


def prospect(home: Home) -> Prospect:
    """Whether the daemon of this home can give the engine a user. Raises SettingsRefused."""
    name = settings_of(home).engine.user or NAME
    if owner := home.path.stat().st_uid:
        words = f"the daemon runs as {_called(owner)}, and only root can give the engine's code another user"
        return Prospect(name, words, "a home that is root's: sudo upulse init --home /var/lib/pulse, then: sudo upulse "
                        "daemon install --home /var/lib/pulse")  # fmt: skip
    account = found(name)
    if where := barrier(account or Account(name, -1, -1)):
        return Prospect(name, f"the user {name} can't read {where}", READABLE)
    if account is None:
        return Prospect(name, f"there is no user {name}", "upulse daemon install", can_be_made=True)
    return Prospect(name)


def give(home: Home) -> str:
    """Make the user if that is all that is missing, as root; how it stands then, in a sentence."""
    try:
        now = prospect(home)
        if now.can_be_made and os.geteuid() == 0:
            make(now.account)
            now = prospect(home)
    except PulseError as error:
        return f"Rules of your own have no user of their own: {error}"
    if now.missing:
        return f"Rules of your own have no user of their own: {now.missing}. What would help: {now.remedy}"
    return f"Rules of your own run as the user {now.account}."


def _called(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
