"""Which loops exist, and how they start, stop, drain and show that they live.

The daemon decides nothing and touches nothing outside itself: it carries values from room to room.
"""

from pulse_core.daemon.daemon import Daemon
from pulse_core.daemon.decisions import Decisions
from pulse_core.daemon.desk import Caller, Desk
from pulse_core.daemon.parts import Parts, Service

__all__ = ["Caller", "Daemon", "Decisions", "Desk", "Parts", "Service"]
