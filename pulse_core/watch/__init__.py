"""Watchers collect samples: each on its own schedule, in isolation, with its last minute kept as a window.

Nothing here acts; what a watcher concludes is an event, and the rest is a sample.
"""
