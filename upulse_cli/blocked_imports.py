"""Keeps out of the programs of Pulse what they never use: imported before all else, it saves a command 10 ms.

The daemon does without more, which saves 3 MiB for as long as it lives: nothing that is imported there afterwards can speak
TLS, or pack but with zlib.
"""

import sys
from types import ModuleType

NO_PLUGINS = ModuleType("pydantic.plugin._loader")
"""Tells pydantic of no plugins; its own would read the metadata of every package, and run what they name."""

NO_PLUGINS.get_plugins = tuple  # type: ignore[attr-defined]  # a module is what its importer finds in it

sys.modules.setdefault(NO_PLUGINS.__name__, NO_PLUGINS)


def block_in_daemon() -> None:
    """Keep out what the daemon's own process never uses: asyncio and shutil then go without, as where there is none."""
    for unused in ("ssl", "bz2", "lzma"):
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]
