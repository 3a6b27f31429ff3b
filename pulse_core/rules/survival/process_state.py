"""The words for how a guarded process stands, the same for the rule and for people."""

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
    """A state, microseconds until it may change by itself (None: only by an event), and why.

    stop: a stop of it is to be tried in this tick; tell: what Pulse may do by itself did not help, so a
    person should know.
    """

    state: ProcessState
    wait_us: int | None = None
    why: str = ""
    tell: bool = False
    stop: bool = False
