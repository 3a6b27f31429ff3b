"""The daemon's side of the engine: which revision runs, and what happens when it fails.

Nothing here runs the engine's code; that happens in hosts, behind `pulse_core.ports.engine`.
"""
