"""Tells those who read a log that its end is lost, where somebody else knows later rows."""

from pulse_adapters.sqlite.connect import is_open_elsewhere
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.last_write import last_row_noted
from pulse_adapters.workers.database_files import files_of
from pulse_core.home import HomeLayout
from pulse_core.ports.readers import EventQuery


def lost_end(home: HomeLayout) -> str:
    """That somebody knows rows after the last one of the log, in words; empty while nobody does.

    Only a log that nobody has open may have lost them unseen; what is known is read before the log, which may become longer.
    In this boot the file beside it knows its last row; else all others are asked, unless the log had a new beginning.
    """
    noted, others = last_row_noted(home.events), dict[int, str]()
    if not noted and not is_open_elsewhere(files_of(home.events).shm):
        # Only here: each command that reads a log would wait for all that it imports.
        from pulse_adapters.sqlite.backup.known_rows import NEW_BEGINNINGS, others_who_know

        others = others_who_know(home)
    with SqliteEventReader(home.path) as log:
        head = log.head().seq
        known, who = max([(noted, f"{home.events}-boot"), *others.items()])
        if known <= head or (others and next(log.events(EventQuery(kinds=NEW_BEGINNINGS), limit=1), None)):
            return ""
    return f"{who} knows row {known}, {home.events} ends at row {head}: rows are LOST, and not shown; see: upulse verify"
