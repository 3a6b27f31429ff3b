"""Loads pydantic, in the child before anything else, without what it searches for plugins by.

That module takes more time and memory than a small engine, and the hosts' environment says that there are no plugins.
"""

import sys
from types import ModuleType

_UNUSED = "importlib.metadata"

sys.modules[_UNUSED] = ModuleType(_UNUSED)
setattr(sys.modules[_UNUSED], "entry_points", None)  # noqa: B010 - a module has no such attribute for mypy
try:
    pass
finally:
    del sys.modules[_UNUSED]
