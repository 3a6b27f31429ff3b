"""Watchers collect samples: each on its own schedule, in isolation, with its last minute kept as a window.

Nothing here acts; what a watcher concludes is an event, and the rest is a sample.
"""

from pulse_core.watch.loop import WatchLoop
from pulse_core.watch.process_alive import ProcessAlive

__all__ = ["ProcessAlive", "WatchLoop"]
