"""Evaluates one probe of a guarded process. Pure: the same probe, history and streak give the same conclusion."""

from collections.abc import Collection
from typing import NamedTuple

from pulse_core.model.durations import duration_text
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ProcessDied, ProcessStopped, ProcessUp
from pulse_core.model.moment import US_PER_SECOND, Moment, describe_span
from pulse_core.model.payload import Payload
from pulse_core.model.text import was_held, with_port_holder
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.projections.processes import SYSTEMD, ProcessHistory
from pulse_core.settings.processes import ProcessSettings

BY_SIGNAL = "was killed by SIG"
KILLED = f"{BY_SIGNAL}KILL"
DIED = "died, and how is not known"
"""Of a process that this daemon did not start, whose end only its parent is told."""
NO_DAEMON, LOG_GAP = "no daemon ran", "the log may have a gap"
"""Why nothing is known of before a daemon's first look; the second of a log that was put back from a backup."""
UNGUARDED = "it was not guarded"
"""Why nothing is known of a process while it was not in the settings."""
REBOOTED = ", and the machine was rebooted meanwhile"


class ProcessProbe(NamedTuple):
    """One probe: the process, what was observed, its history as it was recorded when the look began, failed probes in a row
    before it, and when.

    proven: the death of the last known process was seen through its pidfd; before: the process that was known at the
    previous probe, if any; failed: that enough of its health's probes failed, in words; failing: since when they do (UTC
    microseconds), 0 if the last one was good; restarting: its `start` is being
    carried out, and what is left of its last life ended; ended: those that Pulse itself had ended; killed: those of them
    that it killed, since they had not ended in time; resumed: an earlier daemon had begun a restart or stop of it that is
    not settled yet; holder: who else holds its port, in words; unwatched: if nobody had looked for long, since when (UTC
    microseconds), else 0; unwatched_while: why not; limit: which condition it was last restarted for, in words;
    stopping: the newest effect that is to end it was to stop it.
    """

    process: ProcessSettings
    sight: ProcessObservation
    history: ProcessHistory
    streak: int
    now: Moment
    expires_us: int
    proven: bool = False
    before: ProcessId | None = None
    failed: str = ""
    restarting: bool = False
    ended: Collection[ProcessId] = ()
    resumed: bool = False
    holder: str = ""
    unwatched: int = 0
    unwatched_while: str = NO_DAEMON
    failing: int = 0
    killed: Collection[ProcessId] = ()
    limit: str = ""
    stopping: bool = False


class ProcessConclusion(NamedTuple):
    """Events that follow, and the streak of failed probes from now on."""

    drafts: tuple[Draft, ...] = ()
    streak: int = 0


def conclude(look: ProcessProbe) -> ProcessConclusion:
    """Conclude what follows from the probe."""
    sight, history = look.sight, look.history
    if sight.busy:  # its manager is restarting it, or the probe failed: only a proven death is recorded
        is_gone = history.pid is not None and not sight.known and bool(sight.ended or sight.found)
        if history.up is None or not (look.proven or is_gone):
            return ProcessConclusion(streak=look.streak)
        words = f"process {history.pid} {sight.ended or 'died'}; {sight.detail or 'its manager is at work'}"
        return ProcessConclusion((_died(look, words, recovering=True),))
    if look.restarting and history.up is None:
        return ProcessConclusion(streak=look.streak)  # who is found may be ended a moment later, as left over
    if is_up(sight):
        return ProcessConclusion(_seen_up(look))
    if sight.intended and not sight.found:
        return ProcessConclusion(_stopped(look))
    return _missed(look) if history.up is not None else ProcessConclusion(_still_down(look))


def is_up(sight: ProcessObservation) -> bool:
    """Whether it is alive and, if it is asked, serves."""
    return sight.answering if sight.answering is not None else bool(sight.found)


def believed(
    process: ProcessSettings, sight: ProcessObservation, history: ProcessHistory
) -> ProcessObservation:
    """The observation as it counts: whom `start` would not produce may be it only where none was ever known.

    There it keeps a second one from being started beside what may run behind another command line.
    """
    is_named = process.match or process.pid_file
    if sight.unlike and is_named and history.pid is None and history.start is None:
        return sight._replace(found=sight.unlike, unlike=(), doubt=sight.detail)
    return sight


def identity(sight: ProcessObservation, history: ProcessHistory) -> ProcessId | None:
    """The process id that identifies it: the one known before if it was found again, else the first; none in doubt."""
    if (known := recorded_process(history)) in sight.found:
        return known
    return sight.found[0] if sight.found and not sight.doubt else None


def recorded_process(history: ProcessHistory) -> ProcessId | None:
    """The process that was last known to be it."""
    if history.pid is None or history.started is None:
        return None
    return ProcessId(history.pid, history.started)


def _seen_up(look: ProcessProbe) -> tuple[Draft, ...]:
    found, history = identity(look.sight, look.history), look.history
    if history.up is None:
        return (_up(look, found),)
    if history.pid is None:
        return (_up(look, found),) if found else ()
    if history.starting is not None:  # it was restarted while it lived, and none has seen the new one yet
        return (_up(look, found),)
    if history.boot == look.now.boot and (look.sight.known or found == (history.pid, history.started)):
        return ()
    if found is None and look.process.systemd_unit:
        return ()  # the unit is up without a main process
    other = f"replaced by process {found.pid}" if found else look.sight.detail
    # Whoever is asked whether it serves is up once it has said so, whoever has started it.
    is_asked = found is not None and look.process.probe in ("http", "exec")
    death = _gone(look, "is gone", f"; {other}", recovering=is_asked)
    return (death,) if is_asked else (death, _up(look, found))


def _missed(look: ProcessProbe) -> ProcessConclusion:
    """It was up and seems down now: a proven death counts at once, failed probes only several in a row."""
    pid, before, streak = look.history.pid, look.before, look.streak + 1
    if look.proven:
        death = _gone(look, DIED)
    elif before and pid not in (None, before.pid):  # its restart was acked meanwhile
        words = f"process {before.pid} died, replaced by process {pid}"
        death = _died(look, words, before)
    elif not look.sight.known and pid is not None:
        death = _gone(look, "is gone")
    elif look.failed:
        death = _died(look, look.failed, failing=look.failing)
    elif streak < look.process.evidence:
        return ProcessConclusion(streak=streak)
    else:
        death = _died(look, f"{look.sight.detail or 'no answer'}; {streak} probes in a row failed")
    return ProcessConclusion((death,))


def _still_down(look: ProcessProbe) -> tuple[Draft, ...]:
    """It was not up before either: recorded only at the very first probe, or if it died while starting."""
    history, sight = look.history, look.sight
    if history.starting is None:
        # It has run before, if it was put back into the settings.
        yet = "" if recorded_process(history) else " yet"
        return () if history.down is not None else (_died(look, f"not running{yet}"),)
    if sight.known or sight.found:
        return ()
    if history.pid is None:
        # A unit's restart names no process; it was acked before the look began, so this is what has come of it.
        return (_died(look, f"its start failed: {sight.detail}"),) if look.process.systemd_unit else ()
    if look.process.systemd_unit and history.starting == history.down:  # its death is told already
        return (_died(look, f"its manager did not bring it back; {sight.detail}"),)
    is_late = look.now.since(history.starting) > max(look.process.start_grace, US_PER_SECOND)
    when = "before it had come up" if is_late else "while it was starting"
    return (_died(look, f"process {history.pid} {sight.ended or 'died'} {when}"),)


def _stopped(look: ProcessProbe) -> tuple[Draft, ...]:
    """Its own manager was told to stop it: an intended death, recorded once until it is up again."""
    evidence = look.sight.detail or "stopped by its manager"
    if look.sight.ended and look.history.up is not None and look.sight.ended not in evidence:
        evidence = f"process {look.history.pid} {look.sight.ended}; {evidence}"
    death = () if look.history.down is not None else (_died(look, evidence),)
    stop = look.history.stop
    known = stop is not None and (stop.by == SYSTEMD or stop.holds(look.now))
    if known or (look.history.down is not None and look.history.starting is None):
        return death
    return (*death, _about(look, ProcessStopped(evidence=evidence, expires_us=look.expires_us)))


def _up(look: ProcessProbe, found: ProcessId | None) -> Draft:
    evidence = look.sight.detail or (f"process {found.pid}" if found else "it answers")
    if look.sight.doubt and look.sight.doubt not in evidence:
        evidence = f"{evidence}; {look.sight.doubt}"
    pid, started = found if found else (None, None)
    return _about(look, ProcessUp(pid=pid, started=started, evidence=evidence))


def _gone(look: ProcessProbe, unexplained: str, rest: str = "", recovering: bool = False) -> Draft:
    """The death of the known process: how it ended, or, in these words, that nobody knows. recovering: another begins."""
    ended = look.sight.ended
    words = f"process {look.history.pid} {ended or unexplained}{rest}"
    return _died(look, words, recovering=recovering, unexplained=not ended)


def _died(
    look: ProcessProbe,
    evidence: str,
    dead: ProcessId | None = None,
    recovering: bool = False,
    unexplained: bool = False,
    failing: int = 0,
) -> Draft:
    """The death of `dead`, or of the process that was known to be it; by whose hand is a matter of that one alone."""
    up = look.history.up
    dead = dead or recorded_process(look.history)
    first = up is None and look.history.down is None and look.history.starting is None
    healthy = first or (up is not None and look.now.since(up) >= look.process.restart.healthy_after)
    if look.sight.unlike and look.sight.detail not in evidence:
        evidence = f"{evidence}; {look.sight.detail}"
    stop, evidence = look.history.stop, was_held(with_port_holder(evidence, look.holder))
    is_ended = dead in look.ended or (look.resumed and up is not None)
    is_unseen = up is not None and not look.sight.known and not is_ended
    if last_seen := look.unwatched if is_unseen else 0:
        why = look.unwatched_while + REBOOTED * (look.history.boot != look.now.boot)
        evidence = f"{evidence}; it ended {describe_span(last_seen, look.now.at)}, while {why}"
    if words := _whose_end(look, is_ended, dead in look.killed):
        evidence = f"{evidence.replace(DIED, 'died') if is_ended else evidence}; {words}"
    is_over = not look.process.autostart and look.history.boot != look.now.boot  # a reboot ends it for good
    # Who is up again after a time in which nobody looked may have died before somebody started it.
    is_told = look.sight.intended and not (last_seen and look.sight.found)
    is_intended = first or is_ended or is_over or is_told or bool(stop and stop.holds(look.now))
    died = ProcessDied(
        # Who was not up when it was first looked at has not died now.
        pid=None if first else dead.pid if dead else look.history.pid,
        evidence=evidence,
        healthy=healthy,
        recovering=recovering,
        intended=is_intended,
        last_seen=last_seen,
        unexplained=unexplained,
        failing=failing and min(max(failing, up.at if up else 0), look.now.at),
    )
    return _about(look, died)


def _whose_end(look: ProcessProbe, is_ended: bool, is_killed: bool) -> str:
    """Who wanted a death, in words: a person or Pulse, which kills who does not end in time; empty if nobody did.

    What dies of a signal that Pulse did not send had only been asked to end.
    """
    stop, process = look.history.stop, look.process
    wanted = f"{stop.by} wanted it down" if stop and stop.by != SYSTEMD and stop.holds(look.now) else ""
    if not is_ended:
        return wanted
    why = f", as {wanted}" if wanted else " to stop it" if look.stopping else " to restart it"
    because = f"{look.limit}; " if look.limit and not wanted else ""
    if is_killed and look.sight.ended == KILLED:
        late = f"it had not ended {duration_text(process.stop_timeout)} after SIG{process.stop_signal}"
        return f"{because}Pulse ended it{why}, since {late}"
    sent = (f"{BY_SIGNAL}{process.stop_signal}", f"{BY_SIGNAL}TERM")
    is_own = not look.sight.ended.startswith(BY_SIGNAL) or look.sight.ended.startswith(sent)
    return f"{because}Pulse {'ended' if is_own else 'was ending'} it{why}"


def _about(look: ProcessProbe, payload: Payload) -> Draft:
    return Draft(payload, subject=look.process.name)
