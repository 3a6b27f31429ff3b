"""Keeps unused modules from being loaded in the child; imported there before anything else.

pydantic searches for its plugins with a module that takes more time and memory than a small engine.
"""

import sys
from types import ModuleType

_UNUSED = "importlib.metadata"


class EmptyModule(ModuleType):
    """A module whose functions all return nothing."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: ()


def load_pydantic() -> None:
    """Load pydantic, and let it search for plugins now: the first model does that."""
    sys.modules[_UNUSED] = EmptyModule(_UNUSED)
    try:
        from pydantic import BaseModel, TypeAdapter  # noqa: F401 - it loads its parts when they are asked for

        type("First", (BaseModel,), {"__module__": __name__})
    finally:
        del sys.modules[_UNUSED]


load_pydantic()
