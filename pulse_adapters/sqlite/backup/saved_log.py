"""Puts the rows back that were saved when the log was deleted or replaced under its writer."""

import os
from pathlib import Path

from pulse_adapters.sqlite.aside import new_aside
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.connect import is_orphaned_wal
from pulse_adapters.sqlite.synced_files import new_file, put_file
from pulse_adapters.sqlite.wal import rebuild
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError


def put_back(home: HomeLayout) -> str:
    """Make the saved rows the log again; what was done, in words. The caller holds the home's lock.

    Without saved rows the -wal is tried: a young log lies in it as a whole. What lay under the log's names is kept.
    Raises Damaged or PulseError if that can't be done; it can be broken off anywhere and done again.
    """
    log, saved = home.events, home.saved_log
    if not saved.exists():
        if not is_orphaned_wal(log):
            return "nothing has to be put back"
        _rebuild(home)
    found = examine(saved, home.objects)
    there = [path for path in (log, Path(f"{log}-wal"), Path(f"{log}-shm")) if path.exists()]
    aside = new_aside(home) if there else None
    for path in reversed(there):
        assert aside is not None
        os.rename(path, aside / path.name)
    put_file(saved, log)
    return f"{log} is there again, with {found.seq} rows" + (
        f"; what lay there is in {aside}" if aside else ""
    )


def _rebuild(home: HomeLayout) -> None:
    unfinished = new_file(home.saved_log.with_name(f"{home.saved_log.name}.unfinished"))
    try:
        if not rebuild(home.events, unfinished):
            raise PulseError(
                f"{home.events.name}-wal does not hold the whole log, only what was last written; to have it with what"
                " it holds: upulse restore BACKUP"
            )
        examine(unfinished, home.objects)
    except PulseError:
        unfinished.unlink()
        raise
    put_file(unfinished, home.saved_log)
