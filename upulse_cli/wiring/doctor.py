"""The checks of the doctor, each from the adapter whose matter it is, in the order in which they are told."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pulse_adapters.config.checks import NeedChecks
from pulse_adapters.engine_user.account_setup import AccountChecks
from pulse_adapters.git.checks import RepositoryChecks
from pulse_adapters.host.checks import HostChecks
from pulse_adapters.ipc.checks import LockChecks
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.notify.addresses import resolve_url, unusable_addresses
from pulse_adapters.sqlite.checks import StoreChecks
from pulse_adapters.systemd.checks import UnitChecks
from pulse_core import __version__
from pulse_core.app.context import HomeContext
from pulse_core.app.doctor import FAIL, OK, WARN, Check, DaemonChecks, Finding
from pulse_core.app.state import current_state
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import US_PER_SECOND, iso
from pulse_core.ports.readers import EventQuery
from upulse_cli.time_args import local
from upulse_cli.wiring.verify import compare_with_anchors

ANCHOR_REMEDY = "find out who changed it, and what else; then put the anchor back, or upulse restore a backup"
RECENT_US = 3600 * US_PER_SECOND
"""For how long a failure to write an anchor is told."""


def checks_of(context: HomeContext, deep: bool) -> Sequence[Check]:
    """All checks of a home. deep: read the whole log, however long it is."""
    home, daemon = context.layout, DaemonChecks(context)

    def is_held() -> bool:
        return daemon.holder is not None

    def lock(wait: float = 0.0) -> HomeLock:
        return HomeLock(home.lock, __version__, wait=wait)

    def spell(at: int, date: bool) -> str:
        return local(iso(at), date=date, named=True)

    def anchors() -> Iterator[Finding]:
        return anchor_findings(context)

    host = HostChecks(home, daemon.last_start)
    stores = StoreChecks(home, deep, is_held, lock, spell, daemon.newest)
    needs = NeedChecks(
        lambda: None if daemon.settings_in_file.faults else daemon.settings_in_file.settings,
        lambda: daemon.answering_daemon,
        resolve_url,
        unusable_addresses,
    )
    run = LockChecks(home, is_held, lock)
    repository = RepositoryChecks(home.path, lambda: current_state(context).engine.commit)
    account = AccountChecks(
        home.path, lambda: context.settings().settings.engine.user, daemon.lacks_engine_user
    )
    return (
        host.python,
        host.packages,
        stores.sqlite,
        needs.extras,
        host.pidfd,
        host.process_trees,
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
        daemon.log,
        stores.verified,
        stores.checkpoints,
        stores.backup,
        anchors,
        stores.vitals,
        stores.aside,
        repository.engine,
        daemon.leftovers,
        daemon.safe_mode,
        daemon.rule_host,
        account.engine_user,
        daemon.settings,
        needs.environment,
        needs.addresses,
        daemon.daemon,
        UnitChecks(home.path).unit,
    )


def anchor_findings(context: HomeContext) -> Iterator[Finding]:
    """What the anchors outside the home say of its log, and what failed about them within the hour."""
    known, is_odd = dict[str, int](), False
    for fault, note in compare_with_anchors(context.layout, known):
        if words := fault or note:
            is_odd = True
            yield Finding("anchor", FAIL if fault else WARN, words, ANCHOR_REMEDY if fault else "")
    query = EventQuery(since_at=context.clock.now().at - RECENT_US, kinds=("error",), subject="anchor")
    with suppress(PulseError), context.events() as log:
        for event in log.events(query, limit=1, newest_first=True):
            is_odd = True
            words = f"the daemon said within the hour: {(event.spelled()['data'] or {}).get('message')}"
            yield Finding("anchor", WARN, words, "see: upulse events --kind error")
    if rows := [row for row in known.values() if row and not is_odd]:
        yield Finding("anchor", OK, f"the log is what its anchors know, up to row {max(rows)}")
