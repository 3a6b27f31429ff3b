"""Checks on this machine: the files that they look at, and what is doubtful about the programs that they run."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pulse_adapters.workers.allowed_programs import allowed_program, allowed_programs
from pulse_adapters.workers.file_systems import NoAnswer, answer_in_time
from pulse_core.capability import WatcherContext
from pulse_core.checks.conclusions import KEY, PREFIX
from pulse_core.checks.outcomes import of_vital, senses_of
from pulse_core.checks.settings import CHECKS, CheckSettings
from pulse_core.model.errors import Refused, hint
from pulse_core.model.kinds import SettingsLoaded
from pulse_core.model.names import PROCESS_USAGE
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.watcher import Watcher
from pulse_core.settings.settings import Settings
from pulse_core.watch.on_demand import WatcherOnDemand
from pulse_core.watch.process_alive import ProcessAlive


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of the checks that the settings have."""

    def is_needed() -> bool:
        raised = context.state().conditions.raised
        return bool(CHECKS.of(context.settings())) or any(name.startswith(PREFIX) for name in raised)

    def make() -> Watcher:
        from pulse_adapters.checks.file_status import AskFiles
        from pulse_core.checks.watcher import Checks

        return Checks(context, AskFiles())

    return (WatcherOnDemand(KEY, context, {SettingsLoaded.kind}, is_needed, make, (PREFIX,)),)


def doubts(home: Path, settings: Settings, samples: Sequence[Sample]) -> Mapping[str, str]:
    """By `check NAME`, in words: whose command is not there or may not be run, and whose vital nothing senses.

    samples: the newest of each sense, from which a vital of a watcher that a rule's author has written is known, too.
    """
    found = {
        f"check {check.name}": "; ".join(_doubts(check, settings, samples)) for check in CHECKS.of(settings)
    }
    return {name: words for name, words in found.items() if words}


def _doubts(check: CheckSettings, settings: Settings, samples: Sequence[Sample]) -> Iterator[str]:
    sensed = {sample.key: Window((sample,)) for sample in samples}
    if check.vital and sensed and not _is_new(check.vital, settings, sensed):
        yield from filter(None, [vital_fault(check, sensed)])
    for argv, fault in ((check.command, program_fault), (check.run, partial(allow_fault, settings))):
        try:
            words = answer_in_time(argv[0], partial(fault, argv[0])) if argv else ""
        except NoAnswer as error:
            words = str(error)
        if words:
            yield words


def _is_new(vital: str, settings: Settings, sensed: Mapping[str, Window]) -> bool:
    """Whether it is of a check or process of these settings that nobody has looked at yet, as they are not in force."""
    names = {
        KEY: [check.name for check in CHECKS.of(settings)],
        ProcessAlive.key: (processes := [process.name for process in settings.process]),
        PROCESS_USAGE: processes,
    }
    sense, _, rest = vital.partition(".")
    last = sensed.get(sense, Window()).last
    known = last.data if last else {}
    return any(rest.startswith(f"{name}.") for name in names.get(sense, ()) if name not in known)


def vital_fault(check: CheckSettings, sensed: Mapping[str, Window]) -> str:
    """That nothing has sensed its vital, with what was; empty if something has."""
    senses = senses_of(check)
    if any(sense in sensed for sense in senses):
        seen = of_vital(check, ((sense, sensed.get(sense, Window())) for sense in senses))
        return seen.words if seen.value is None else ""
    return f"nothing has sensed {check.vital} yet{hint(senses[0], sensed)}"


def program_fault(program: str) -> str:
    """Why this can't be run; empty if it can."""
    return "" if shutil.which(program) else f"there is no program {program!r} that may be executed"


def allow_fault(settings: Settings, program: str) -> str:
    """Why the settings don't allow to run this; empty if they do."""
    try:
        allowed_program(program, allowed_programs(settings.executors.run_command.allow))
    except Refused as refused:
        return str(refused)
    return program_fault(program)
