"""What the core asks of the outside: small protocols in the core's words, their promises in the docstrings.

Each has a real adapter and a twin in `pulse_adapters.memory`; one contract suite runs over both.
"""

from pulse_core.model.checkpoint import Checkpoint
from pulse_core.ports.clock import Clock
from pulse_core.ports.courier import Courier, Letter
from pulse_core.ports.engine import (
    Broken,
    CannotLoad,
    Fault,
    Hands,
    HandsHosts,
    History,
    Hosts,
    Insight,
    Kept,
    Loaded,
    Revision,
    Revisions,
    RuleHost,
    Taken,
)
from pulse_core.ports.executor import Executor, GivenUp, Policy, Result, Safety, Unsure
from pulse_core.ports.host import Found, ProcessTable, Sight, SystemProbe
from pulse_core.ports.lifeline import Lifeline
from pulse_core.ports.log import EventLog, Listener
from pulse_core.ports.logs import Heard, Hits, LogReader, Place, Progress
from pulse_core.ports.prober import Answer, Prober, Question, Trouble
from pulse_core.ports.stores import Checkpoints, Objects, Sweep, Swept, Vitals
from pulse_core.ports.watcher import Watcher

__all__ = [
    "Answer",
    "Broken",
    "CannotLoad",
    "Checkpoint",
    "Checkpoints",
    "Clock",
    "Courier",
    "EventLog",
    "Executor",
    "Fault",
    "Found",
    "GivenUp",
    "Hands",
    "HandsHosts",
    "Heard",
    "History",
    "Hits",
    "Hosts",
    "Insight",
    "Kept",
    "Letter",
    "Lifeline",
    "Listener",
    "Loaded",
    "LogReader",
    "Objects",
    "Place",
    "Policy",
    "Prober",
    "ProcessTable",
    "Progress",
    "Question",
    "Result",
    "Revision",
    "Revisions",
    "RuleHost",
    "Safety",
    "Sight",
    "Sweep",
    "Swept",
    "SystemProbe",
    "Taken",
    "Trouble",
    "Unsure",
    "Vitals",
    "Watcher",
]
