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
    """The incidents since then (UTC microseconds), oldest first, as they stand now; also those that had begun before."""
    now = home.clock.now()
    with home.events() as log:
        return told_since(_known_since(home, log, since), since, now)


def incident(home: HomeContext, id_: str) -> Incident:
    """The incident that began with the event of this id. Raises UnknownName if none did."""
    now = home.clock.now()
    with home.events() as log:
        began = log.event(id_)
        known = _known_since(home, log, began.at).at(now)
    if found := next((one for one in known if one.id == began.id), None):
        return found
    raise UnknownName("incident", id_, ())


def _known_since(home: HomeContext, log: EventReader, since: int | None) -> Incidents:
    """The incidents, with all that were not over before that time.

    Those that the checkpoint has left out are folded from the whole log, which takes seconds: what an event began may
    depend on those before it, as whether somebody had stopped its process.
    """
    kept = kept_incidents(home, log)
    has_all = kept and (not kept.left_out or (since is not None and since > kept.left_out))
    return kept if kept and has_all else whole(log)


def incidents_in(log: EventReader, since: int | None, now: Moment) -> Sequence[Incident]:
    """The incidents since then that this log tells of, folded from its beginning: each the same, whatever the time."""
    return told_since(whole(log), since, now)


def told_since(state: Incidents, since: int | None, now: Moment) -> Sequence[Incident]:
    """Those that were not over before that time. A line of a log is over as soon as it is written, whatever comes later."""
    told = [
        one
        for one in state.at(now)
        if since is None or one.last.at >= since or not (one.over or one.about == "log")
    ]
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
