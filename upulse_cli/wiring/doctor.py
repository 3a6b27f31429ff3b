"""The checks of the doctor, each from the adapter whose matter it is, in the order in which they are told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pulse_adapters.config.checks import NeedChecks
from pulse_adapters.config.file import load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.engine_user.account_setup import AccountChecks
from pulse_adapters.git.checks import RepositoryChecks
from pulse_adapters.host.checks import HostChecks
from pulse_adapters.ipc.checks import LockChecks
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import HomeLock, holder
from pulse_adapters.notify.addresses import resolve_url, unknown_services
from pulse_adapters.sqlite.checks import StoreChecks, newest_event
from pulse_adapters.systemd.checks import UnitChecks
from pulse_core import __version__
from pulse_core.app.doctor import Check, DaemonChecks
from pulse_core.app.state import current_state
from pulse_core.model.errors import PulseError, SettingsRefused
from pulse_core.model.home_status import LockHolder
from pulse_core.model.moment import Moment, iso
from pulse_core.settings import Settings
from upulse_cli.time_args import local
from upulse_cli.wiring.home import home_context

PATIENCE = 3.0


@dataclass(frozen=True)
class HomeFacts:
    """What several checks ask of a home, each asked once."""

    home: Home

    @cached_property
    def holder(self) -> LockHolder | None:
        """Who holds the home's lock: the daemon, for a moment a command, or nobody."""
        return holder(self.home.lock)

    @cached_property
    def status(self) -> Mapping[str, Any] | PulseError:
        """The daemon's status, or why there is none."""
        try:
            with Client(self.home.socket, PATIENCE) as client:
                return client.ask("status")
        except PulseError as error:
            return error

    @cached_property
    def settings(self) -> tuple[Settings, Sequence[str]]:
        """The settings, or the defaults and why they are refused."""
        try:
            return load_to_start(self.home.config)
        except SettingsRefused as refused:
            return Settings(), refused.faults
        except PulseError as error:
            return Settings(), [str(error)]

    @property
    def answering_daemon(self) -> int | None:
        """The process of a daemon that answers."""
        answers = self.holder is not None and isinstance(self.status, Mapping)
        return self.holder.pid if answers and self.holder else None

    def last_start(self) -> Moment | None:
        """When the daemon last started."""
        if not self.home.events.exists():
            return None
        event = newest_event(self.home, "daemon-started")
        return Moment(event.at, event.boot, event.mono) if event else None

    def loaded_digest(self) -> str | None:
        """Of the settings that a daemon loaded last."""
        event = newest_event(self.home, "settings-loaded")
        return json.loads(event.data).get("digest", "") if event else None


def checks_of(home: Home, deep: bool) -> Sequence[Check]:
    """All checks of a home. deep: read the whole log, however long it is."""
    facts = HomeFacts(home)

    def is_held() -> bool:
        return facts.holder is not None

    def lock(wait: float = 0.0) -> HomeLock:
        return HomeLock(home.lock, __version__, wait=wait)

    def spell(at: int, date: bool) -> str:
        return local(iso(at), date=date)

    host = HostChecks(home, facts.last_start)
    stores = StoreChecks(home, deep, is_held, lock, spell)
    needs = NeedChecks(
        lambda: facts.settings[0], lambda: facts.answering_daemon, resolve_url, unknown_services
    )
    run = LockChecks(home, is_held, lock)
    daemon = DaemonChecks(
        lambda: facts.holder.pid if facts.holder else None,
        lambda: facts.status,
        lambda: facts.settings,
        str(home.config),
        facts.loaded_digest,
    )
    repository = RepositoryChecks(home.path, lambda: current_state(home_context(home)).engine.commit)
    account = AccountChecks(
        home.path, lambda: load_to_start(home.config)[0].engine.user, daemon.lacks_engine_user
    )
    return (
        host.python,
        host.packages,
        stores.sqlite,
        needs.extras,
        host.pidfd,
        host.pressure,
        host.inotify,
        host.sandbox,
        run.locks,
        host.disk,
        host.file_system,
        host.clock,
        host.access,
        host.owners,
        stores.reserve,
        stores.restore,
        run.leftovers,
        stores.log,
        stores.verified,
        stores.checkpoints,
        stores.backup,
        stores.vitals,
        stores.aside,
        repository.engine,
        daemon.rule_host,
        account.engine_user,
        daemon.settings,
        needs.environment,
        daemon.daemon,
        UnitChecks(home.path).unit,
    )
