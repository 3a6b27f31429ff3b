"""Is the log the one whose heads were written down outside of its home?"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pulse_core.model.anchor import Anchor
from pulse_core.model.kinds import DamageAccepted, LogRestored
from pulse_core.model.moment import iso
from pulse_core.ports.readers import EventQuery, EventReader

NEW_BEGINNINGS = (DamageAccepted.kind, LogRestored.kind)
"""After these, anchors may know rows that are no more."""


class Compared(NamedTuple):
    """How many anchors agree with the log; the first that does not, and one that need not, in words; the last row known."""

    agreed: int = 0
    fault: str = ""
    note: str = ""
    last: int = 0


def compare_anchors(
    log: EventReader,
    path: str,
    where: str,
    anchors: Iterable[Anchor],
    *,
    is_named: bool = True,
    known: int = 0,
    is_backup: Callable[[], bool] = lambda: False,
) -> Compared:
    """Compare the log of the home at this path with the anchors found there.

    is_named: whether this home says that it has anchors there; else that of an earlier home at this path is no fault.
    known: a row that was among them once, 0 if none was: where it is not, and older ones are, those are not all.
    is_backup: whether a backup lies at this path, which lacks what came after it. Who cuts a home's log can make the home
    look like one, but its anchors say where it lies.
    """
    newest = next(log.events(limit=1, newest_first=True), None)
    begun = next(log.events(EventQuery(kinds=NEW_BEGINNINGS), limit=1, newest_first=True), None)
    first = next(log.events(limit=1), None)
    agreed, last, note, has_older, has_known = 0, 0, "", False, not known
    for anchor in anchors:
        if newest is None or anchor.home != newest.host:
            if anchor.path == path and not is_named and first and first.at > anchor.at:
                since = iso(first.at)
                note = f"{where} knows the home here as {anchor.home}; this one was begun later, {since}"
            elif anchor.path == path:
                found = f"that of {newest.host}" if newest else "empty"
                words = (
                    f"{where} knows the home here as {anchor.home}, and the log is {found}: it is another one"
                )
                return Compared(agreed, words, note)
            continue
        seq, chain = anchor.head
        has_older, has_known = has_older or seq < known, has_known or seq == known
        if (there := log.chain_at(seq)) == chain:
            agreed, last = agreed + 1, max(last, seq)
        elif begun and begun.at > anchor.at:
            note = f"{where} knows row {seq} of the log before row {begun.seq} ({begun.kind})"
        elif there is None and anchor.path != path and is_backup():
            note = f"{where} knows row {seq}, which came after this backup"
        elif there is None:
            words = f"{where} knows row {seq}, the log ends at row {newest.seq}: rows are lost"
            return Compared(agreed, words, note)
        else:
            words = f"row {seq} is not the one that {where} knows: the log was written anew"
            return Compared(agreed, words, note)
    if has_older and not has_known:
        words = f"{where} does not know row {known} any more, which was in it when the log was last read as a whole"
        return Compared(agreed, f"{words}: it was cut short, or replaced by an older one", note, last)
    return Compared(agreed, "", note, last)
