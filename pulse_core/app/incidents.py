"""The incidents of a home: from the checkpoint that its daemon keeps, and the events since."""

from collections.abc import Sequence

from pulse_core.app.context import HomeContext
from pulse_core.app.state import checkpoints_of
from pulse_core.composition import OWN_NAMES
from pulse_core.model.errors import UnknownName
from pulse_core.model.kinds import EventRedacted
from pulse_core.model.moment import Moment
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.incident import Incident
from pulse_core.projections.incidents import KINDS, NAME, VERSION, IncidentFold, Incidents, load


def incidents(home: HomeContext, since: int | None) -> Sequence[Incident]:
    """The incidents since then (UTC microseconds), oldest first, as they stand now; also those that had begun before.

    Those that the checkpoint has left out are folded from the whole log, which takes seconds.
    """
    now = home.clock.now()
    with home.events() as log:
        kept = kept_incidents(home, log)
        if kept and kept.left_out and (since is None or since <= kept.left_out):
            kept = None
        return told_since(kept or whole(log), since, now)


def incident(home: HomeContext, id_: str) -> Incident:
    """The incident that began with the event of this id. Raises UnknownName if none did."""
    now = home.clock.now()
    with home.events() as log:
        kept = kept_incidents(home, log)
        if kept and (found := next((one for one in kept.at(now) if one.id == id_), None)):
            return found
        began = log.event(id_)
        fold = IncidentFold(own=OWN_NAMES)
        for row in log.events(EventQuery(since_seq=began.seq - 1, kinds=tuple(KINDS))):
            fold.take(row)
            first = next(iter(fold.state.all.values()), None)
            if first is None or first.id != began.id or first.is_history(row.moment):
                break
    told = fold.state.at(now)
    if not told or told[0].id != began.id:
        raise UnknownName("incident", id_, [one.id for one in told])
    return told[0]


def incidents_in(log: EventReader, since: int | None, now: Moment) -> Sequence[Incident]:
    """The incidents since then that this log tells of, folded from its beginning: each the same, whatever the time."""
    return told_since(whole(log), since, now)


def told_since(state: Incidents, since: int | None, now: Moment) -> Sequence[Incident]:
    """Those that were not over before that time."""
    told = [one for one in state.at(now) if since is None or one.last.at >= since or not one.over]
    return sorted(told, key=lambda one: one.began.at)  # which may be before it was found, and others were


def kept_incidents(home: HomeContext, log: EventReader) -> Incidents | None:
    """The incidents from the checkpoint on; None without one, or if something was redacted since."""
    kept = checkpoints_of(home, log).get(NAME)
    if kept is None or kept.version != VERSION:
        return None
    redacted = EventQuery(since_seq=kept.head.seq, kinds=(EventRedacted.kind,))
    try:
        state = load(kept.state)
    except (ValueError, TypeError, KeyError):
        return None
    return None if next(log.events(redacted, limit=1), None) else folded(log, state, kept.head.seq)


def folded(log: EventReader, state: Incidents, seq: int) -> Incidents:
    """The incidents after all events behind this row."""
    return _taken(IncidentFold(state, OWN_NAMES), log, seq)


def whole(log: EventReader) -> Incidents:
    """All incidents, also those that a checkpoint leaves out; it takes seconds."""
    return _taken(IncidentFold(own=OWN_NAMES, keeps_all=True), log, 0)


def _taken(fold: IncidentFold, log: EventReader, seq: int) -> Incidents:
    for row in log.events(EventQuery(since_seq=seq, kinds=tuple(KINDS))):
        fold.take(row)
    return fold.state
