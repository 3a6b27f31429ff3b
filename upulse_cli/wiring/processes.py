"""What a guarded process printed, and what its tree takes: from the files of its home and from /proc."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pulse_adapters.host.environment_file import read_environment_file
from pulse_adapters.host.tree_usage import tree_usage
from pulse_adapters.ipc.daemon_process import log_lines
from pulse_core.app.context import HomeContext
from pulse_core.app.process_report import process_report
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.secret_text import hide_secrets
from pulse_core.model.text import clean

SHOWN = 10
"""Last lines that `upulse process show` shows."""


def process_log_lines(home: HomeContext, name: str, count: int, follow: bool) -> Iterator[str]:
    """The last lines that a process printed, without secrets, and what comes, if wanted; raises PulseError.

    Of one that is not guarded any more, what is kept; what its `env` and `env_file` had of secrets nobody knows then.
    """
    processes = {process.name: process for process in home.settings().settings.process}
    path = home.layout.outputs / f"{name}.log"
    if name not in processes:
        kept = {file.stem for file in home.layout.outputs.glob("*.log") if file.is_file()}
        if name not in kept:
            raise UnknownName("guarded process", name, {*processes, *kept})
        for line in log_lines(path, count, follow):
            yield clean(hide_secrets(line))
        return
    if not path.is_file():
        unit = processes[name].systemd_unit
        hint = (
            f"; see: journalctl -u {unit}" if unit else ": Pulse has not started it yet, or could not keep it"
        )
        if os.path.lexists(path):
            hint = f" there: {path} is no plain file; see: upulse process list"
        raise PulseError(f"nothing that {name} printed is kept{hint}")
    environment = dict(processes[name].env)
    with suppress(PulseError):
        if (file := processes[name].env_file) is not None:
            environment |= read_environment_file(file)
    for line in log_lines(path, count, follow):
        yield clean(hide_secrets(line, environment))


def is_guarded(home: HomeContext, name: str) -> bool:
    """Whether the settings name it."""
    return any(process.name == name for process in home.settings().settings.process)


def report_of_process(home: HomeContext, name: str) -> Mapping[str, Any]:
    """All that is known of a guarded process."""

    def last_lines() -> list[str]:
        try:
            return list(process_log_lines(home, name, SHOWN, follow=False))
        except PulseError:
            return []

    return process_report(home, name, tree_usage, last_lines)
