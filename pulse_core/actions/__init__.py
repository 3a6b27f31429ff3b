"""What can be done, as values: each action declares its params and its restrictions, and the core asks no other way.

Nothing acts here: an executor carries an action out, in an adapter, and takes its name and params from its declaration.
"""

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.actions.declared import BUILT_IN

__all__ = ["BUILT_IN", "ActionDeclaration"]
