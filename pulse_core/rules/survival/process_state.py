"""The states of a guarded process, the same for the rule and for people."""

from enum import Enum
from typing import NamedTuple


class ProcessState(Enum):
    """The state of a guarded process."""

    UNKNOWN = "unknown"
    UP = "up"
    STOPPING = "stopping"
    STOPPED = "stopped"
    RESTARTING = "restarting"
    STARTING = "starting"
    WAITING = "waiting"
    BACKING_OFF = "backing-off"
    FLAPPING = "flapping"
    DUE = "due"
    SILENCED = "silenced"


class ProcessStatus(NamedTuple):
    """A state, microseconds until it may change by itself (None: only after an event), and why.

    stop: stop it in this tick; tell: Pulse's own actions did not help, so notify a person.
    """

    state: ProcessState
    wait_us: int | None = None
    why: str = ""
    tell: bool = False
    stop: bool = False
