"""All checks, in the order in which they are told."""

from collections.abc import Sequence

from upulse_cli.doctor import engine, kernel, machine, place, service, software, stores
from upulse_cli.doctor.findings import Check

CHECKS: Sequence[Check] = (
    software.python,
    software.packages,
    software.sqlite,
    software.extras,
    kernel.pidfd,
    kernel.pressure,
    kernel.inotify,
    kernel.sandbox,
    kernel.locks,
    machine.disk,
    machine.file_system,
    machine.clock,
    place.access,
    place.owners,
    place.reserve,
    place.leftovers,
    stores.log,
    stores.verified,
    stores.checkpoints,
    stores.backup,
    stores.vitals,
    stores.aside,
    engine.engine,
    engine.engine_user,
    service.settings,
    service.environment,
    service.daemon,
    service.unit,
)
