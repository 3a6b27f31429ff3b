"""Rows that somebody knows to have been there: does the log still have them, as they were?"""

from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery

NEW_BEGINNINGS = ("damage-accepted", "log-restored")
"""After these, others may know rows of the log before."""


class Comparison(NamedTuple):
    """Whether the log and somebody's knowledge agree, and in words how they don't, or why they need not."""

    agrees: bool
    words: str = ""


def compared(home: Home, row: tuple[int, bytes], who: str, since: int | None = None) -> Comparison:
    """Compare the log with a row, and its chain value, that `who` knows; raises PulseError if it can't be read.

    since: when he learned of it (UTC microseconds), if that may have been before the log had a new beginning.
    """
    seq, chain = row
    with SqliteEventReader(home.path) as log:
        there, head = log.chain_at(seq), log.head().seq
        begun = next(log.events(EventQuery(kinds=NEW_BEGINNINGS), newest_first=True), None)
    if there == chain:
        return Comparison(True)
    if begun and since is not None and begun.at > since:
        return Comparison(True, f"{who} is of the log before row {begun.seq} ({begun.kind})")
    if there is None:
        return Comparison(False, f"{who} knows row {seq}, the log ends at row {head}: rows are lost")
    return Comparison(False, f"row {seq} is not the one that {who} knows: rows are altered")
