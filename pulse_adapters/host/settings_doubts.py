"""What is doubtful about the guarded processes of settings on this machine, before a daemon acts on it."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pulse_adapters.host.environment_file import environment_of
from pulse_adapters.host.guarded_processes import Systemctl
from pulse_adapters.host.launch import start_error
from pulse_adapters.host.listening_ports import listening_inodes, numeric_addresses, port_of, socket_owners
from pulse_adapters.host.marked_processes import HomeMarks
from pulse_adapters.host.pid_files import PidFiles
from pulse_adapters.host.port_holders import PROXIES
from pulse_adapters.host.process_attributes import started_as
from pulse_adapters.host.process_identity import (
    begun_otherwise,
    choose,
    doubtful_matches,
    is_as_begun,
    is_produced_by,
    start_sum,
)
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.proc import described, is_alive, program_name
from pulse_adapters.workers.spawn import reach_program
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.projections.processes import UNKNOWN_HISTORY, ProcessHistory
from pulse_core.settings.cross_checks import overlaps
from pulse_core.settings.processes import ProcessSettings


async def doubts_of(processes: Sequence[ProcessSettings]) -> Mapping[str, str]:
    """By name, in words: who can't be started, who is recognised as another one is, whose PID file names a stranger, whose
    port somebody else holds, whose unit systemd can't start, and what `doubtful_matches` says.
    """
    told = {name: [words] for name, words in (await doubtful_matches(processes)).items()}
    shared = overlaps(processes)
    units = await asyncio.gather(*map(_unit_of, processes))
    for process, unit in zip(processes, units, strict=True):
        words = told.setdefault(process.name, [])
        words += [unit] if unit else []
        if process.name in shared:
            words.append(shared[process.name])
        try:
            started_as(process) if process.start else None
            env = await environment_of(process, FileThreads(), is_for_command=bool(process.command))
            await _reach_start(process, {**os.environ, **env})
        except (PulseError, TimeoutError) as error:
            words.append(str(error))
        words += _held_port(process)
        seen = await _pid_file_of(process, words)
        if seen and seen.doubt and not process.start:
            words.append(seen.doubt)
        pid = seen.found[0].pid if seen and seen.found and process.start else 0
        if (
            seen
            and pid
            and not (is_produced_by(process.start, pid) or HomeMarks(None).are_on(process.name, pid))
        ):
            words.append(f"process {pid} of {process.pid_file} is no work of its `start`")
    return {name: "; ".join(words) for name, words in told.items() if words}


async def _unit_of(process: ProcessSettings) -> str:
    """Why systemd can't start its unit, or tells nothing by it, in words; empty if it can, or nobody can ask systemd."""
    if not (name := process.systemd_unit):
        return ""
    if not name.endswith(".service"):
        return f"{name} runs no program: it counts as up while systemd has it active, whatever it starts; name a .service"
    spawner = Spawner()
    try:
        unit = await Systemctl(spawner).show(name, user=process.systemd_user)
    except (PulseError, OSError):
        return ""
    finally:
        spawner.close()
    return "" if unit.load == "loaded" else f"systemd can't start {name}: {unit.words}"


async def _reach_start(process: ProcessSettings, env: Mapping[str, str]) -> None:
    """Raises PulseError if its program or its working directory is not there, for whoever asks."""
    if not process.start:
        return
    program, cwd = process.start[0], process.cwd or None

    def reach() -> None:
        if cwd is not None:
            os.close(os.open(cwd, os.O_PATH | os.O_DIRECTORY))
        reach_program(program, env, cwd, is_sure=True)

    try:
        await FileThreads().ask(f"{program!r} or {cwd!r}" if cwd else program, reach)
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        raise PulseError(start_error(program, cwd, error)) from error


def _held_port(process: ProcessSettings) -> Iterator[str]:
    """Who holds the port of its `tcp` or `http`, if that is not what `start` would produce or has left, or several are."""
    where = numeric_addresses(port_of(process)) if process.start and port_of(process) else ()
    owners = socket_owners(listening_inodes(where))
    chosen = choose(process, owners)
    if process.tcp and chosen.doubt:
        yield f"{process.tcp} answers; {chosen.doubt}"
    if not owners or chosen.found:
        return
    holder = owners[0].pid
    if program_name(holder) not in PROXIES and not HomeMarks(None).are_on(process.name, holder):
        yield f"{port_of(process)} is held by {described(holder)}"


async def _pid_file_of(process: ProcessSettings, words: list[str]) -> ProcessObservation | None:
    """Whom its PID file names, if that can be read in time."""
    if not (path := process.pid_file):
        return None
    try:
        return await FileThreads().ask(path, partial(PidFiles().observe, path))
    except TimeoutError as error:
        words.append(str(error))
        return None


def left_unguarded(
    processes: Sequence[ProcessSettings], histories: Mapping[str, ProcessHistory], boot: str
) -> Mapping[str, int]:
    """Who was started for a name that is not among these and goes on, by that name, unless one of these takes it over."""
    names, left = {one.name for one in processes}, dict[str, int]()

    def standing(name: str) -> ProcessId | None:
        history = histories.get(name, UNKNOWN_HISTORY)
        if history.boot != boot:
            return None
        start = history.start
        main = ProcessId(history.pid or 0, history.started or 0)
        both = (main, start and ProcessId(start.pid, start.started))
        return next((one for one in both if one and one.pid and is_alive(one)), None)

    for name in histories.keys() - names:
        if (start := histories[name].start) is None or (live := standing(name)) is None:
            continue
        is_new = any(
            start.settings == start_sum(one)
            or (live == (start.pid, start.started) and is_as_begun(one, start.pid))
            for one in processes
            if one.start and not standing(one.name)
        )
        if not is_new:
            left[name] = live.pid
    return left


def changed_since_start(
    processes: Sequence[ProcessSettings], histories: Mapping[str, ProcessHistory], boot: str
) -> Mapping[str, str]:
    """By name, in words, the live processes that were started with other settings than these, as far as they show it."""
    live = (
        (process, history.pid)
        for process in processes
        if (history := histories.get(process.name, UNKNOWN_HISTORY)).pid is not None
        and history.boot == boot
        and is_alive(ProcessId(history.pid, history.started or 0))
    )
    return {process.name: words for process, pid in live if (words := begun_otherwise(process, pid))}
