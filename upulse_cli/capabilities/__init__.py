"""The commands of capabilities: a package NAME for each that has any, with `add_to(app)`."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from pulse_core.capabilities import CAPABILITIES


def packages() -> Iterator[ModuleType]:
    """Those that are there, in the order of the capabilities."""
    for name in CAPABILITIES:
        if find_spec(f"{__name__}.{name}"):
            yield import_module(f"{__name__}.{name}")
