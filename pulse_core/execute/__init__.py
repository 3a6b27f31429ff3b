"""The executor loop: carries out pending effects, and says before and after that it does.

It decides nothing about what should be done; it never acts on an effect that is not on disk, and never lets one
that was begun just disappear.
"""

from pulse_core.execute.executor_registry import ExecutorRegistry
from pulse_core.execute.loop import ExecutorLoop
from pulse_core.execute.objection import objection

__all__ = ["ExecutorLoop", "ExecutorRegistry", "objection"]
