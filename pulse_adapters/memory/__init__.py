"""Twins of every adapter, in memory and without threads: the same promises, kept until the process ends.

With these and a loop in virtual time the whole daemon runs deterministically inside a test.
"""

from pulse_adapters.memory.backups import MemoryBackups
from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.daemon_control import MemoryBackgroundDaemon, MemoryDaemonUnit
from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions, MemoryRuleHost
from pulse_adapters.memory.executors import MemoryExecutor, MemoryRestart, MemoryStop
from pulse_adapters.memory.host import MemoryHost
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.logs import MemoryLogs
from pulse_adapters.memory.prober import MemoryProber
from pulse_adapters.memory.service_manager import MemoryServiceManager
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryObjects, MemoryVitals
from pulse_adapters.memory.transport import MemoryTransport

__all__ = [
    "MemoryBackgroundDaemon",
    "MemoryBackups",
    "MemoryCheckpoints",
    "MemoryDaemonUnit",
    "MemoryExecutor",
    "MemoryHost",
    "MemoryHosts",
    "MemoryLog",
    "MemoryLogs",
    "MemoryObjects",
    "MemoryProber",
    "MemoryRestart",
    "MemoryRevisions",
    "MemoryRuleHost",
    "MemoryServiceManager",
    "MemoryStop",
    "MemoryTransport",
    "MemoryVitals",
    "VirtualClock",
    "virtual_loop",
]
