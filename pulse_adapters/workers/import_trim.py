"""Loads pydantic, in the child before anything else, without what it searches for plugins by.

That module takes more time and memory than a small engine.
Nor is anything searched for garbage while modules are loaded, which takes a fifth of the time: nearly all of it stays.
"""

import gc
import sys
from types import ModuleType

_UNUSED = "importlib.metadata"

gc.disable()
sys.modules[_UNUSED] = ModuleType(_UNUSED)
setattr(sys.modules[_UNUSED], "entry_points", lambda **_: ())  # noqa: B010 - mypy knows no such attribute
try:
    import pydantic.plugin._loader  # noqa: F401 - the first model loads it
finally:
    del sys.modules[_UNUSED]
