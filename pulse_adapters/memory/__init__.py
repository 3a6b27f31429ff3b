"""Twins of every adapter, in memory and without threads: the same promises, kept until the process ends.

With these and a loop in virtual time the whole daemon runs deterministically inside a test.
"""

from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.courier import MemoryCourier
from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions, MemoryRuleHost
from pulse_adapters.memory.executors import MemoryExecutor, MemoryRestart, MemoryStop
from pulse_adapters.memory.host import MemoryHost
from pulse_adapters.memory.lifeline import MemoryLifeline
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.logs import MemoryLogs
from pulse_adapters.memory.prober import MemoryProber
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryObjects, MemoryVitals

__all__ = [
    "MemoryCheckpoints",
    "MemoryCourier",
    "MemoryExecutor",
    "MemoryHost",
    "MemoryHosts",
    "MemoryLifeline",
    "MemoryLog",
    "MemoryLogs",
    "MemoryObjects",
    "MemoryProber",
    "MemoryRestart",
    "MemoryRevisions",
    "MemoryRuleHost",
    "MemoryStop",
    "MemoryVitals",
    "VirtualClock",
    "virtual_loop",
]
