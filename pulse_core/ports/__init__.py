"""Ports: small protocols that adapters implement; their docstrings state the guarantees.

Each has a real adapter and a twin in `pulse_adapters.memory`; one contract suite runs over both.
"""

from pulse_core.model.event import Checkpoint
from pulse_core.ports.clock import Clock
from pulse_core.ports.engine import (
    ActionHost,
    ActionHosts,
    CannotLoad,
    EngineCodeBroken,
    EngineFault,
    FoldResult,
    History,
    LoadedRevision,
    RecordedInput,
    ReplayBatch,
    ReservedNames,
    Revision,
    Revisions,
    RuleHost,
    RuleHosts,
    UserProjectionState,
)
from pulse_core.ports.executor import Executor, GivenUp, Policy, Result, Safety, Unsure
from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.ports.log import EventLog, Listener
from pulse_core.ports.logs import LogBatch, LogFollower, MatchedLines, Place, ReadProgress
from pulse_core.ports.prober import Prober, ProbeRequest, ProbeResult, Trouble
from pulse_core.ports.service_manager import ServiceManager
from pulse_core.ports.stores import Checkpoints, Objects, Sweep, SweepResult, Vitals
from pulse_core.ports.transport import OutgoingMessage, Transport
from pulse_core.ports.watcher import Watcher

__all__ = [
    "ActionHost",
    "ActionHosts",
    "CannotLoad",
    "Checkpoint",
    "Checkpoints",
    "Clock",
    "EngineCodeBroken",
    "EngineFault",
    "EventLog",
    "Executor",
    "FoldResult",
    "GivenUp",
    "History",
    "Listener",
    "LoadedRevision",
    "LogBatch",
    "LogFollower",
    "MatchedLines",
    "Objects",
    "OutgoingMessage",
    "Place",
    "Policy",
    "ProbeRequest",
    "ProbeResult",
    "Prober",
    "ProcessId",
    "ProcessObservation",
    "ProcessTable",
    "ReadProgress",
    "RecordedInput",
    "ReplayBatch",
    "ReservedNames",
    "Result",
    "Revision",
    "Revisions",
    "RuleHost",
    "RuleHosts",
    "Safety",
    "ServiceManager",
    "Sweep",
    "SweepResult",
    "Transport",
    "Trouble",
    "Unsure",
    "UserProjectionState",
    "Vitals",
    "Watcher",
]
