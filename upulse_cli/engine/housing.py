"""As whom the engine's code runs, and where that user finds it: hosts are started by this everywhere."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pulse_adapters.config.file import load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.engine_user.account import chosen
from pulse_adapters.engine_user.quarters import Quarters
from pulse_adapters.engine_user.reach import barrier
from pulse_adapters.hands_host.hands import Hands
from pulse_adapters.hands_host.hosts import HandsHost
from pulse_adapters.hands_host.keeping import Failed
from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.model.errors import PulseError
from pulse_core.ports import CannotLoad, History, Kept, Revision, Taken
from pulse_core.projections import Snapshot
from pulse_core.settings import Settings
from upulse_cli.engine.plugins import found_plugins

READABLE = "install Python and Pulse where it can, as in /opt"
"""What helps a user that can't read them."""


def quarters_of(home: Home, settings: Settings) -> Quarters | None:
    """Where the engine's user lives, or None if its code runs as we do. Raises PulseError.

    A user that the settings name must do. The usual one is taken only if it can read Python and Pulse: where they were
    installed in root's own folders, the engine goes on as before.
    """
    account = chosen(settings.engine.user)
    if account is None:
        return None
    if account.uid == home.path.stat().st_uid:
        raise PulseError(
            f"{home.path} belongs to the user {account.name}, who must not read it; name another one"
        )
    if where := barrier(account):
        if not settings.engine.user:
            return None
        raise PulseError(f"the user {account.name} can't read {where}; {READABLE}")
    return Quarters(account, home.path)


def settings_of(home: Home) -> Settings:
    """The settings, also with such faults as keep no daemon from starting. Raises SettingsRefused."""
    return load_to_start(home.config)[0]


def hosts_of(home: Home, dev: bool = False) -> ChildHosts:
    """Starts rule hosts for this home from the command line, by its settings as they are now."""
    return housed(home, lambda: settings_of(home), ChildHosts(plugins=found_plugins(), dev=dev))


def housed(home: Home, settings: Callable[[], Settings], hosts: ChildHosts) -> ChildHosts:
    """The same hosts with the user that they are to have; without one that must be there, each start raises CannotLoad."""
    if os.geteuid() != 0:
        return hosts
    try:
        quarters = quarters_of(home, settings())
    except PulseError as error:
        return replace(hosts, shown=partial(_refused, str(error)))
    return replace(hosts, user=quarters.account.ids, shown=quarters.shown) if quarters else hosts


def _refused(why: str, path: str) -> str:
    raise CannotLoad(why)


@dataclass(frozen=True)
class HousedHosts:
    """`Hosts` of a daemon: each host by the settings of that moment. hosts: what is the same for all."""

    home: Home
    settings: Callable[[], Settings]
    hosts: ChildHosts

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, Kept]
    ) -> ChildRuleHost:
        """A host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        hosts = housed(self.home, self.settings, self.hosts)
        return await hosts.start(revision, prev, history, kept)


@dataclass(frozen=True)
class HousedHands:
    """`HandsHosts` of a daemon, likewise. hands: what is the same for all."""

    home: Home
    settings: Callable[[], Settings]
    hands: HandsHost

    async def start(self, revision: Revision, memory: int, taken: Taken, failed: Failed) -> Hands:
        """The revision's hands. Raises CannotLoad."""
        try:
            quarters = quarters_of(self.home, self.settings())
        except PulseError as error:
            raise CannotLoad(str(error)) from error
        hands = self.hands
        if quarters:
            hands = replace(hands, user=quarters.account.ids, shown=quarters.shown)
        return await hands.start(revision, memory, taken, failed)
