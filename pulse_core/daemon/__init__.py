"""Which loops exist, and how they start, stop, drain and show that they live.

The daemon decides nothing and has no side effects of its own: it passes values between the other packages.
"""

from pulse_core.daemon.daemon import Daemon
from pulse_core.daemon.parts import CurrentSettings, Parts, Service
from pulse_core.daemon.request_handler import Caller, RequestHandler

__all__ = ["Caller", "CurrentSettings", "Daemon", "Parts", "RequestHandler", "Service"]
