"""The executor loop: carries out pending effects, and records this before and after.

It decides nothing about what should be done; it never acts on an effect that is not on disk, and never loses one
that was begun.
"""

from pulse_core.execute.effect_tasks import ExecutorRegistry
from pulse_core.execute.loop import ExecutorLoop

__all__ = ["ExecutorLoop", "ExecutorRegistry"]
