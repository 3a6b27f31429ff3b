"""Is the log the one whose heads were written down outside of its home?"""

from collections.abc import Iterable
from typing import NamedTuple

from pulse_core.model.anchor import Anchor
from pulse_core.model.kinds import DamageAccepted, LogRestored
from pulse_core.model.moment import iso
from pulse_core.ports.readers import EventQuery, EventReader

NEW_BEGINNINGS = (DamageAccepted.kind, LogRestored.kind)
"""After these, anchors may know rows that are no more."""


class Compared(NamedTuple):
    """How many anchors agree with the log; the first that does not, and one that need not, in words."""

    agreed: int = 0
    fault: str = ""
    note: str = ""


def compare_anchors(
    log: EventReader, path: str, where: str, anchors: Iterable[Anchor], *, is_named: bool = True
) -> Compared:
    """Compare the log of the home at this path with the anchors found there.

    is_named: whether this home says that it has anchors there; else that of an earlier home at this path is no fault.
    """
    newest = next(log.events(limit=1, newest_first=True), None)
    begun = next(log.events(EventQuery(kinds=NEW_BEGINNINGS), limit=1, newest_first=True), None)
    first = next(log.events(limit=1), None)
    agreed, note = 0, ""
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
        if (there := log.chain_at(seq)) == chain:
            agreed += 1
        elif begun and begun.at > anchor.at:
            note = f"{where} knows row {seq} of the log before row {begun.seq} ({begun.kind})"
        elif there is None:
            words = f"{where} knows row {seq}, the log ends at row {newest.seq}: rows are lost"
            return Compared(agreed, words, note)
        else:
            words = f"row {seq} is not the one that {where} knows: the log was written anew"
            return Compared(agreed, words, note)
    return Compared(agreed, "", note)
