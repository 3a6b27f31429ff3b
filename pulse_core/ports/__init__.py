"""What the core asks of the outside: small protocols in the core's words, their promises in the docstrings.

Each has a real adapter and a twin in `pulse_adapters.memory`; one contract suite runs over both.
"""

from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor, Policy, Result, Safety, Unsure
from pulse_core.ports.host import Found, ProcessTable, Sight, SystemProbe
from pulse_core.ports.lifeline import Lifeline
from pulse_core.ports.log import EventLog, Listener
from pulse_core.ports.stores import Checkpoint, Checkpoints, Objects, Vitals
from pulse_core.ports.watcher import Watcher

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Clock",
    "EventLog",
    "Executor",
    "Found",
    "Lifeline",
    "Listener",
    "Objects",
    "Policy",
    "ProcessTable",
    "Result",
    "Safety",
    "Sight",
    "SystemProbe",
    "Unsure",
    "Vitals",
    "Watcher",
]
