"""What follows from one look at a guarded process. Pure: the same look, history and streak conclude the same."""

from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ProcessDied, ProcessStopped, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.ports import ProcessId, ProcessObservation
from pulse_core.projections import ProcessHistory
from pulse_core.projections.processes import SYSTEMD
from pulse_core.settings import ProcessSettings


class ProcessProbe(NamedTuple):
    """One look: at what, what was seen, what the log knew, failed probes in a row before it, and when.

    proven: the process last known to be it was seen dying through its pidfd; before: the one that was known at the
    look before, if it was.
    """

    process: ProcessSettings
    sight: ProcessObservation
    history: ProcessHistory
    streak: int
    now: Moment
    expires_us: int
    proven: bool = False
    before: ProcessId | None = None


class ProcessConclusion(NamedTuple):
    """Events that follow, and the streak of failed probes from now on."""

    drafts: tuple[Draft, ...] = ()
    streak: int = 0


def conclude(look: ProcessProbe) -> ProcessConclusion:
    """What follows from the look."""
    sight, history = look.sight, look.history
    if sight.busy:
        return _busy(look)
    if is_up(sight):
        return ProcessConclusion(_seen_up(look))
    if sight.intended:
        return ProcessConclusion(_stopped(look))
    if history.up is not None:
        return _missed(look)
    return ProcessConclusion(_still_down(look))


def _busy(look: ProcessProbe) -> ProcessConclusion:
    """Its manager is at work on it, or it could not be looked at: only a proven death is news, and has its grace."""
    gone = (
        look.history.pid is not None and not look.sight.known and bool(look.sight.ended or look.sight.found)
    )
    if look.history.up is None or not (look.proven or gone):
        return ProcessConclusion(streak=look.streak)
    words = f"process {look.history.pid} {look.sight.ended or 'died'}; {look.sight.detail or 'its manager is at work'}"
    return ProcessConclusion((_died(look, words, recovering=True),))


def is_up(sight: ProcessObservation) -> bool:
    """Whether it is alive, and answers if it has a port to ask."""
    return sight.answering if sight.answering is not None else bool(sight.found)


def identity(sight: ProcessObservation, history: ProcessHistory) -> ProcessId | None:
    """The process that stands for it: the one known before if it is still among the found, else the oldest."""
    if history.pid is not None and history.started is not None:
        known = ProcessId(history.pid, history.started)
        if known in sight.found:
            return known
    return sight.found[0] if sight.found else None


def _seen_up(look: ProcessProbe) -> tuple[Draft, ...]:
    found, history = identity(look.sight, look.history), look.history
    if history.up is None:
        return (_up(look, found),)
    if found is None or history.pid is None or (found.pid, found.started) == (history.pid, history.started):
        return ()
    if history.boot == look.now.boot and look.sight.known:
        return ()  # the known one lives still: another one beside it is no news
    if look.process.match:
        return (_up(look, found),)  # it is dead when no match is left: this is another one of it
    return (_died(look, f"replaced by process {found.pid}"), _up(look, found))


def _missed(look: ProcessProbe) -> ProcessConclusion:
    """It was up and does not look so now: proof counts at once, a failed probe only in a row."""
    if look.proven:
        ended = look.sight.ended or "died"
        return ProcessConclusion(
            (_died(look, f"process {look.history.pid} {ended} (seen through its pidfd)"),)
        )
    if look.before and look.history.pid not in (None, look.before.pid):  # its restart was acked meanwhile
        words = f"process {look.before.pid} died, replaced by process {look.history.pid}"
        return ProcessConclusion((_died(look, words, pid=look.before.pid),))
    if not look.sight.known and look.history.pid is not None:
        return ProcessConclusion(
            (_died(look, f"process {look.history.pid} {look.sight.ended or 'is gone'}"),)
        )
    streak = look.streak + 1
    if streak < look.process.evidence:
        return ProcessConclusion(streak=streak)
    return ProcessConclusion((_died(look, f"{look.sight.detail or 'no answer'}, {streak} probes in a row"),))


def _still_down(look: ProcessProbe) -> tuple[Draft, ...]:
    """It was not up before either: news only at the first look of all, or if it died while starting."""
    history = look.history
    if history.down is None and history.starting is None:
        return (_died(look, "not there at the first look"),)
    if (
        history.starting is not None
        and history.pid is not None
        and not look.sight.known
        and not look.sight.found
    ):
        return (_died(look, f"process {history.pid} {look.sight.ended or 'died'} while it was starting"),)
    return ()


def _stopped(look: ProcessProbe) -> tuple[Draft, ...]:
    """Its own manager was told to stop it: a death, but a wanted one, said once until it is up again."""
    evidence = look.sight.detail or "stopped by its manager"
    death = () if look.history.down is not None else (_died(look, evidence),)
    stop = look.history.stop
    known = stop is not None and (stop.by == SYSTEMD or stop.holds(look.now))
    if known or (look.history.down is not None and look.history.starting is None):
        return death
    return (*death, _about(look, ProcessStopped(evidence=evidence, expires_us=look.expires_us)))


def _up(look: ProcessProbe, found: ProcessId | None) -> Draft:
    evidence = look.sight.detail or (f"process {found.pid}" if found else "it answers")
    pid, started = found if found else (None, None)
    return _about(look, ProcessUp(pid=pid, started=started, evidence=evidence))


def _died(look: ProcessProbe, evidence: str, recovering: bool = False, pid: int | None = None) -> Draft:
    up = look.history.up
    first = up is None and look.history.down is None and look.history.starting is None
    healthy = first or (up is not None and look.now.since(up) >= look.process.restart.healthy_after)
    pid = look.history.pid if pid is None else pid
    return _about(look, ProcessDied(pid=pid, evidence=evidence, healthy=healthy, recovering=recovering))


def _about(look: ProcessProbe, payload: Payload) -> Draft:
    return Draft(payload, subject=look.process.name)
