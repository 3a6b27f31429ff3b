"""Declarations of actions: each declares its params and restrictions, and the core reads nothing else about them.

Nothing acts here: an executor carries an action out, in an adapter, and takes its name and params from its declaration.
"""

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.actions.declared import BUILT_IN

__all__ = ["BUILT_IN", "ActionDeclaration"]
