"""The part of this process's environment that workers get."""

import os
from collections.abc import Mapping
from pathlib import Path

NEVER_PASSED_ON = (
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MAINPID",
    "MANAGERPID",
    "NOTIFY_SOCKET",
    "PULSE_AGENT",
    "PULSE_TASK",
    "PULSE_TOKEN",
    "SYSTEMD_EXEC_PID",
)
"""What systemd tells the daemon alone, and what a run tells an agent, which may have begun the daemon. A child with its
NOTIFY_SOCKET could end the daemon's watchdog, and one with the agent's marks is taken for what that has left behind."""
HANDS_MARK, EFFECT_MARK, PROCESS_MARK = "PULSE_HANDS", "PULSE_EFFECT", "PULSE_PROCESS"
"""By these variables it is known what an action host, an effect, or a start of a guarded process (`NAME@HOME`) has begun."""
LOG_MARK = f"{PROCESS_MARK}_LOG"
"""By this variable it is known of which log that is, wherever its home lies by now: see `control_group.log_identity`."""
START_MARK = f"{PROCESS_MARK}_START"
"""By this variable it is known with which settings a guarded process was started."""
UNLOGGED_MARK = f"{PROCESS_MARK}_UNLOGGED"
"""By this variable it is known why the output of a guarded process is not in its log: the log of events may not know."""
NEVER_PASSED_ON_PREFIXES = ("LISTEN_", "WATCHDOG_", HANDS_MARK, EFFECT_MARK, PROCESS_MARK)
"""More of that, and the marks by which Pulse knows what it started: who has inherited one is taken for another."""

_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
"""What Python reads of the environment in programs of Pulse: where modules are. All else changes what they print or do."""

ROOT = str(Path(__file__).parents[2])
"""The folder in which Pulse's packages lie."""


def inherited_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (this process's) without what is never passed on."""
    return {
        name: value
        for name, value in (os.environ if environment is None else environment).items()
        if name not in NEVER_PASSED_ON and not name.startswith(NEVER_PASSED_ON_PREFIXES)
    }


def python_environment() -> dict[str, str]:
    """The same for a Python program of Pulse, as PYTHONINSPECT or PYTHONIOENCODING would have it answer otherwise."""
    inherited = inherited_environment().items()
    return {name: value for name, value in inherited if not name.startswith("PYTHON") or name in _OF_PYTHON}


def selected_variables(*names: str) -> dict[str, str]:
    """These variables of this process's environment, as far as they are set, and no others."""
    return {name: os.environ[name] for name in names if name in os.environ}
