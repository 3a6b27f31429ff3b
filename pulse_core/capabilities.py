"""The capabilities of this release: the one list of them, in the order of the onion, outermost first.

A name stands for `pulse_core/NAME/` and, where they are there, `pulse_adapters/NAME/` and `upulse_cli/capabilities/NAME/`.
Whoever deletes a line here and these folders has removed the capability, once those that need it are gone. Nothing of the
core is imported here, so that the command line can look for commands before that is loaded; `pulse_core.composition` loads
them all.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

CAPABILITIES: tuple[str, ...] = (
    "silences",
    "llm",
    "checks",
    "openclaw",
    "tasks",
    "mcp",
    "agents",
    "guidance",
    "guided_runs",
)

NEEDS: Mapping[str, tuple[str, ...]] = {
    "agents": ("tasks",),
    "mcp": ("silences", "tasks", "guidance"),
    "guided_runs": ("agents", "tasks", "guidance"),
}
"""The capabilities that one is built upon, where it is: it imports these and no others, and is removed with them."""


def capability_modules(package: str) -> Iterator[ModuleType]:
    """The modules of this package that capabilities have, in their order."""
    for name in CAPABILITIES:
        if find_spec(f"{package}.{name}"):
            yield import_module(f"{package}.{name}")
