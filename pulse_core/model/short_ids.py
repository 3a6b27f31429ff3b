"""Ids as people write them: as much of one as tells it from the others."""

from collections.abc import Collection

from pulse_core.model.errors import Ambiguous, UnknownName

CUT = "…"
"""What stands before the end of an id where it is shown; so it is taken, too."""


def id_meant(what: str, name: str, known: Collection[str], prefix: str = "", shortest_end: int = 1) -> str:
    """The id of this name, or the only one that begins or ends so. Raises UnknownName or Ambiguous.

    prefix: that of all ids, which may be left out; shortest_end: characters from which on an end is enough.
    """
    if name in known:
        return name
    is_cut, word = name.startswith(CUT), name.removeprefix(CUT).removeprefix(prefix)
    is_end = is_cut or len(word) >= shortest_end
    found = [
        id_
        for id_ in known
        if word
        and ((not is_cut and id_.removeprefix(prefix).startswith(word)) or (is_end and id_.endswith(word)))
    ]
    if len(found) > 1:
        raise Ambiguous(what, name, found)
    if not found:
        raise UnknownName(what, name, known)
    return found[0]
