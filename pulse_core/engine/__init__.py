"""The engine's place in the daemon: which revision of it runs, and what happens when it misbehaves.

Nothing here runs the engine's code; that happens in hosts, behind `pulse_core.ports.engine`.
"""
