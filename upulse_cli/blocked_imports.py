"""Keeps out of the daemon what it never uses: imported before all else, it saves 3 MiB for as long as it lives.

Only for the daemon's own process: nothing that is imported afterwards can speak TLS, or pack but with zlib.
"""

import sys
from types import ModuleType

NO_PLUGINS = ModuleType("pydantic.plugin._loader")
"""Tells pydantic of no plugins; its own would read the metadata of every package, and run what they name."""

NO_PLUGINS.get_plugins = tuple  # type: ignore[attr-defined]  # a module is what its importer finds in it

for unused in ("ssl", "bz2", "lzma"):  # asyncio and shutil then go without, as where there is none
    sys.modules.setdefault(unused, None)  # type: ignore[arg-type]
sys.modules.setdefault(NO_PLUGINS.__name__, NO_PLUGINS)
