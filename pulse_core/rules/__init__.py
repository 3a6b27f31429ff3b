"""Rules decide: an onion of async functions from snapshots to a verdict.

They compute; they never act, read the clock, or keep state between calls.
"""

from pulse_core.rules.onion import Inner, Rule, compose, no_effects

__all__ = ["Inner", "Rule", "compose", "no_effects"]
