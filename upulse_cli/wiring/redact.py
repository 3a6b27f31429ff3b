"""Where in a home, and in its last backup, a text that was redacted can still be read."""

from collections.abc import Collection, Sequence
from pathlib import Path

from pulse_adapters.files.text_search import files_with
from pulse_adapters.sqlite.backup.known_rows import last_backup
from pulse_core.home import HomeLayout


def remains(home: HomeLayout, texts: Collection[str]) -> Sequence[str]:
    """The files that still hold one of these texts."""
    backup = last_backup(home)
    places = [home.path, *([Path(backup.path)] if backup else ())]
    return [str(path) for path in files_with(places, texts)]
