"""What a session of `upulse dev` needs of this machine."""

from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from os.path import relpath

from pulse_adapters.host.guarded_processes import guarded_process
from pulse_adapters.host.system_watcher import SystemResource
from pulse_adapters.workers.allowed_programs import allowed_program, allowed_programs
from pulse_core.actions import CommandParams
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import STAGING, revision_named
from pulse_core.app.engine.dev_session import DevTarget, daemon_executor
from pulse_core.app.state import current_state, settings_for
from pulse_core.daemon import CurrentSettings
from pulse_core.model.errors import Refused
from pulse_core.model.kinds import Effect
from pulse_core.model.names import RESTART_PROCESS, RUN_COMMAND, STOP_PROCESS
from pulse_core.model.vitals import Window
from pulse_core.ports.watcher import Watcher
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.executors import machine_executors

UNNAMED = "a file whose name is not UTF-8"


def dev_target(home: HomeContext, *, does_execute: bool) -> DevTarget:
    """Staging of this home, tried. does_execute: by the daemon; raises PulseError if none runs."""
    engine = workflow_context(home, is_live=True)
    execute = daemon_executor(engine) if does_execute else None
    machine = partial(system_watcher_of, engine.home)
    path = revision_named(engine.repository, STAGING).path
    return DevTarget(engine, saves, machine, path, lambda report: None, execute, refusal)


def refusal(effect: Effect, settings: Settings) -> str:
    """Why a program may not be run, or a process is none to restart or stop; empty for all else."""
    params = effect.params
    try:
        if effect.action == RUN_COMMAND:
            allowed = allowed_programs(settings.executors.run_command.allow)
            allowed_program(CommandParams.model_validate(params).argv[0], allowed)
        elif effect.action in (RESTART_PROCESS, STOP_PROCESS) and (name := params.get("process")):
            guarded_process(settings, str(name))
    except Refused as error:
        return str(error)
    return ""


@contextmanager
def system_watcher_of(context: HomeContext) -> Iterator[Watcher]:
    """The sense of this machine's vital signs, as a daemon has it."""
    state = current_state(context)
    current_settings, view = CurrentSettings(settings_for(context, state).settings), View(state)
    acting = machine_executors(context.layout, current_settings, view)
    try:
        yield SystemResource(current_settings, lambda: 0.0, acting.spawner, acting.consumers, view, Window)
    finally:
        acting.close()


async def saves(path: str) -> AsyncGenerator[Collection[str], None]:
    """The files that were saved, from the tree on, each time that some were; polled where inotify grants nothing.

    watchfiles ends at a name that is not UTF-8: then it is begun anew, and whoever loads the tree names that file.
    """
    from watchfiles import DefaultFilter, awatch  # costs 60 ms
    from watchfiles._rust_notify import WatchfilesRustInternalError

    watch = partial(awatch, path, watch_filter=DefaultFilter(), debounce=50, step=10)
    is_polled = False
    while True:
        is_unnamed = False
        try:
            async for changes in watch(force_polling=is_polled, poll_delay_ms=250):
                yield _relative(path, (changed for _, changed in changes))
            return
        except ExceptionGroup as failed:
            if failed.subgroup(WatchfilesRustInternalError) is None:
                raise
            is_unnamed = True
        except (OSError, RuntimeError):
            if is_polled:
                raise
            is_polled = True
        if is_unnamed:
            yield [UNNAMED]


def _relative(path: str, files: Iterable[str]) -> Collection[str]:
    return sorted({relpath(file, path) for file in files})
