"""Where a daemon keeps what it knows: the log, vitals, objects, checkpoints; and what tidies them."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.damage import refuse_lost_rows
from pulse_adapters.sqlite.events import SqliteEventLog, new_id
from pulse_adapters.sqlite.opening import Opening
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_adapters.systemd.notify import Notifier
from pulse_core import __version__
from pulse_core.daemon import Parts
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ErrorReported
from upulse_cli.views.narrator import Narrator
from upulse_cli.wiring.daemon_context import DaemonContext
from upulse_cli.wiring.executors import MachineExecutors
from upulse_cli.wiring.gc import sweeper_of


@asynccontextmanager
async def narrated_log(shared: DaemonContext, how: Opening) -> AsyncIterator[SqliteEventLog]:
    """The log that the daemon writes, without rows lost unless that is accepted, and told aloud as it grows."""
    home = shared.home
    opened = SqliteEventLog.open(
        home.events, clock=shared.clock, objects=shared.objects, reserve=home.reserve, how=how
    )
    async with opened as log:
        if not how.accept_damage:
            await refuse_lost_rows(log, SqliteCheckpoints(home.state))
        log.listen(narrator := Narrator())
        try:
            yield log
        finally:
            narrator.speak()


def parts_of(
    shared: DaemonContext, acting: MachineExecutors, log: SqliteEventLog, vitals: SqliteVitals
) -> Parts:
    """The stores, the hands and the identity of a daemon; its watchers, services and news are still to come."""
    return Parts(
        log=log,
        vitals=vitals,
        objects=shared.objects,
        checkpoints=SqliteCheckpoints(shared.home.state),
        clock=shared.clock,
        table=acting.table,
        executors=acting.executors,
        current_settings=shared.current_settings,
        view=shared.view,
        service_manager=Notifier.from_environment(),
        new_id=new_id,
        dice=Random(),
        pid=os.getpid(),
        version=__version__,
        sweep=sweeper_of(
            shared.home,
            shared.objects,
            shared.current_settings,
            lambda: shared.view().control.damage,
        ),
    )


def torn(log: SqliteEventLog) -> Sequence[Draft]:
    """The torn end of a log after a power cut, to be said."""
    return [Draft(ErrorReported(message=log.torn), subject="log")] if log.torn else []
