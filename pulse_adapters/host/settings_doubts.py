"""What is doubtful about the guarded processes of settings on this machine, before a daemon acts on it."""

from collections.abc import Mapping, Sequence

from pulse_adapters.host.pid_files import PidFiles
from pulse_adapters.host.process_identity import carries, doubtful_matches, is_produced_by, start_user
from pulse_core.model.errors import PulseError
from pulse_core.settings.cross_checks import overlaps
from pulse_core.settings.processes import ProcessSettings


async def doubts_of(processes: Sequence[ProcessSettings]) -> Mapping[str, str]:
    """By name, in words: who can't be started, who is recognised as another one is, whose PID file names a stranger, and
    what `doubtful_matches` says.
    """
    told = {name: [words] for name, words in (await doubtful_matches(processes)).items()}
    shared = overlaps(processes)
    for process in processes:
        words = told.setdefault(process.name, [])
        if process.name in shared:
            words.append(shared[process.name])
        try:
            start_user(process) if process.start else None
        except PulseError as error:
            words.append(str(error))
        seen = PidFiles().observe(process.pid_file, process.start) if process.pid_file else None
        pid = seen.found[0].pid if seen and seen.found and process.start else 0
        if (
            seen
            and pid
            and not (is_produced_by(process.start, pid) or carries(pid, f"{process.name}@", end=""))
        ):
            words.append(f"{seen.detail} is no work of its `start`")
    return {name: "; ".join(words) for name, words in told.items() if words}
