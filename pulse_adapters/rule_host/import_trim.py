"""Imported before anything else in the child: what nobody there will use is not loaded.

pydantic looks for plugins of its own with a module that takes more time and memory than a small engine.
"""

import sys
from types import ModuleType

_UNUSED = "importlib.metadata"


class EmptyModule(ModuleType):
    """A module in which whatever is looked for finds nothing."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: ()


def load_pydantic() -> None:
    """Have pydantic loaded, and its search for plugins done: it is made by the first model."""
    sys.modules[_UNUSED] = EmptyModule(_UNUSED)
    try:
        from pydantic import BaseModel, TypeAdapter  # noqa: F401 - it loads its parts when they are asked for

        type("First", (BaseModel,), {"__module__": __name__})
    finally:
        del sys.modules[_UNUSED]


load_pydantic()
