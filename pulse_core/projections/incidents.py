"""Incidents: what went wrong, what was done because of it, and whether it helped.

An incident begins with the first death, condition, error or log line, and ends when that is well again. What is intended
is none: the first start of a process, and what people or Pulse itself end to restart or stop it. Such a start or restart
becomes one when it fails.

The daemon folds them beside its ticks, and keeps a checkpoint: no rule reads them. So a fold takes a state of its own, which
it changes: `after` copies the one that it is given, and `IncidentFold` is for those who have it for themselves. Only what is
told is kept, in words, so that nobody has to read the log for it.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.names import HELD_BACK, NOTIFY, RESTART_PROCESS, SETTLING, is_of_process, subjects_of
from pulse_core.projections.conditions import FOR, failing_since, why_unwatched
from pulse_core.projections.control import death_words
from pulse_core.projections.incident import (
    FADED_US,
    QUIET_US,
    TOLD,
    Incident,
    RestartWish,
    UnderWay,
    decoded,
    evidence,
    has_started,
    incident_from,
    is_idle,
    is_unexplained,
    moment_from,
    occurrences,
    outcome_of,
    printed,
    said,
)

VERSION = 48
"""Raised whenever the same events would give another value."""
NAME = "incidents"
"""Under which its checkpoint is kept."""
BEGINS = {"process-died": "process", "condition-raised": "condition", "log-matched": "log", "error": "error"}
ENDS = {"process-up": "process", "condition-cleared": "condition", "process-stopped": "process"}
ENGINE = (
    "rollback",
    "rule-quarantined",
    "engine-loaded",
    "engine-disabled",
    "safe-mode-entered",
    "safe-mode-left",
)
REQUESTS = {
    "process-stop-requested": "stop",
    "process-start-requested": "start",
    "process-restart-requested": "restart",
}
ABOUTS = ("condition", "process", "log", "error")
OF_DAEMON = ("daemon-started", "daemon-stopped", "settings-loaded", "log-restored")
STARTED, STOPPED, SETTINGS, RESTORED = OF_DAEMON
DELAYED = {"restart-delayed": "process", "answer-delayed": "condition"}
ATTEMPTED = "effect-attempt-failed"
DAEMON = "daemon"
IS_DOWN = "notify:flapping:"
"""With which the keys of notices of processes that are down begin."""
CHECK = "check:"
"""With which the names of the conditions of checks begin."""
PULSE = "pulse"
"""Who writes what the daemon decides."""
OF_PULSE = {
    "notify:daemon": f"{DAEMON} {PULSE}",
    "notify:safe-mode": f"{DAEMON} safe mode",
    "notify:engine:rolled-back": "engine ",
    "notify:engine:quarantine": "rule ",
}
"""With what begins what the incident is about that a notice of Pulse itself tells of, by its key: the newest one."""
KINDS = frozenset({*BEGINS, *ENDS, *ENGINE, *REQUESTS, *DELAYED, *OF_DAEMON, *SETTLING, "effect", ATTEMPTED})
SENT_TO_SOME = "sent-to-some"
"""What became of a notice that some of its addresses have, and others do not."""
NEW_SETTINGS = "new settings were loaded"
ROLLED_BACK, NOT_GUARDED = "its commit was rolled back", "no longer guarded"
FAILED = frozenset({"effect-failed", "effect-unknown"})

RECENT = 5
"""How many of the newest lines or errors of one incident effects may name as their cause, beside the first."""

MOST, SLACK = 1_000, 100
"""How many incidents are kept that are over, and how many more until the oldest are left out."""


@dataclass(slots=True)
class Incidents:
    """all: by id, in the order in which they began; the newest thousand of those that are over; left_out: when the newest
    of the others ended (UTC microseconds), 0 if there are none; current: the newest one's id by what it is about;
    under_way: by effect; trials: by process, what will have begun an incident if its start fails; trying: the
    restarts that may still fail, by their ids; asked: by process, what a person last requested (the event's id, and in
    words) while nothing was wrong; wanted: by process, from when on the person who requested something last wants it up;
    causes: the newest events of an incident, to its id; alive: the last sign of a daemon; stopped: it has been stopped;
    settings: the digest of those in force."""

    all: dict[str, Incident] = field(default_factory=dict)
    left_out: int = 0
    current: dict[str, str] = field(default_factory=dict)
    under_way: dict[str, UnderWay] = field(default_factory=dict)
    trials: dict[str, Incident] = field(default_factory=dict)
    trying: dict[str, RestartWish] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)
    wanted: dict[str, Moment] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    alive: Moment | None = None
    stopped: bool = False
    settings: str = ""

    def at(self, now: Moment) -> Sequence[Incident]:
        """The incidents, after the last event: what did not come again for long is over."""
        told = list(self.all.values())
        for place, one in enumerate(told):
            if one.has_faded(now):
                told[place] = one = deepcopy(one)
                one.fade()
        return told


def after(state: Incidents, events: Iterable[Event], own: Collection[str] = ()) -> Incidents:
    """The incidents after more events; own: the names of Pulse's own rules, which are never gone."""
    fold = IncidentFold(deepcopy(state), own)
    for event in events:
        fold.take(event)
    return fold.state


def dump(state: Incidents) -> str:
    """The state as JSON text."""
    return json.dumps(asdict(state), separators=(",", ":"))


def load(text: str) -> Incidents:
    """The state from `dump`'s text; raises ValueError, TypeError or KeyError if it is not one."""
    values = json.loads(text)
    under_way = {id_: UnderWay(**one) for id_, one in values.pop("under_way").items()}
    found, trials = (
        {id_: incident_from(one) for id_, one in values.pop(name).items()} for name in ("all", "trials")
    )
    alive = moment_from(values.pop("alive"))
    wanted = {name: moment_from(one) for name, one in values.pop("wanted").items()}
    trying = {id_: RestartWish(**one) for id_, one in values.pop("trying").items()}
    return Incidents(
        all=found, trials=trials, under_way=under_way, trying=trying, alive=alive, wanted=wanted, **values
    )


class IncidentFold:
    """Groups events into incidents; changes the state that it is given. own: the names of Pulse's own rules; keeps_all:
    also those that a checkpoint leaves out."""

    def __init__(
        self, state: Incidents | None = None, own: Collection[str] = (), *, keeps_all: bool = False
    ) -> None:
        self.state, self.own, self.keeps_all = state or Incidents(), own, keeps_all

    def take(self, row: Event) -> None:
        """Take one event, in the order of the log."""
        kind = row.kind
        if kind == "effect":
            self._wished(row)
        elif kind in SETTLING:
            self._settled(row)
        elif kind == ATTEMPTED:
            if (answer := self.state.under_way.get(row.subject)) and '"sent_to"' in row.data:
                answer.arrived = answer.arrived or bool((decoded(row).get("result") or {}).get("sent_to"))
        elif about := BEGINS.get(kind):
            if kind == "error":
                self._erred(row)
            elif kind != "process-died" or self._is_incident(row):
                self._began(about, row).take_beginning(row)
        elif about := ENDS.get(kind):
            self._ended(about, row)
        elif about := DELAYED.get(kind):
            self._delayed(about, row)
        elif kind in REQUESTS:
            self._requested(row)
        elif kind in ENGINE:
            self._engine(row)
        elif kind == STARTED:
            self._started(row)
        elif kind == SETTINGS:
            data = decoded(row)
            self._guarded(row, frozenset(data.get("processes", ())))
            self._reloaded(str(data.get("digest", "")))
        if kind == STOPPED:
            self._end_holds(row.moment)
        is_alive = self.state.alive and not self.state.stopped and row.actor == PULSE
        if kind == RESTORED:  # while no daemon ran, and how the last one ended may be among what is missing
            data = decoded(row)
            self.state.stopped = self.state.stopped or not data.get("salvaged") or bool(data.get("lost"))
        elif kind in (STARTED, STOPPED) or is_alive:
            self.state.alive, self.state.stopped = row.moment, kind == STOPPED

    def _current(self, about: str, subject: str) -> Incident | None:
        id_ = self.state.current.get(f"{about} {subject}")
        return self.state.all.get(id_) if id_ else None

    def _newest(self) -> Iterable[Incident]:
        """The newest incident of everything that one was about."""
        return map(self.state.all.__getitem__, self.state.current.values())

    def _add(self, story: Incident) -> None:
        """One more; of very many, the oldest that are over are left out."""
        self.state.all[story.id] = story
        self.state.current[f"{story.about} {story.subject}"] = story.id
        if len(self.state.all) > MOST + SLACK and not self.keeps_all:
            self._leave_out(story.last)

    def _leave_out(self, now: Moment) -> None:
        state, known = self.state, self.state.all
        over = [one for one in known.values() if one.over or one.has_faded(now)]
        more = len(over) - MOST
        gone = over[:more] if more > 0 else []
        if len(known) - len(gone) > 2 * MOST:  # whatever they are
            gone = list(known.values())[: len(known) - MOST]
        for one in gone:
            del known[one.id]
            state.left_out = max(state.left_out, one.last.at)
        if gone:
            answered = {*known, *(one.id for one in state.trials.values())}
            state.current = {about: id_ for about, id_ in state.current.items() if id_ in known}
            state.causes = {event: id_ for event, id_ in state.causes.items() if id_ in known}
            state.under_way = {id_: one for id_, one in state.under_way.items() if one.incident in answered}

    def _began(self, about: str, row: Event, subject: str = "", words: str = "") -> Incident:
        now, subject = row.moment, subject or row.subject
        before = self._current(about, subject)
        number = occurrences(row) if about in FADED_US else 1
        # The same episode goes on if nothing has ended it, or this came soon.
        stands = before and not before.over and not before.has_faded(now)
        state = decoded(row).get("state", "") if about == "condition" else ""
        if before and stands and about == "condition" and before.state == state:
            before.see_again(now, words or evidence(row))  # it is no other time, and no other cause
            self._follow(before, row)
            return before
        if before and (stands or now.since(before.last) <= QUIET_US):
            before.come_again(now, number, state)
            self._answer_by_restarts(before, has_requests=True)
            if about != "log" or words or evidence(row):  # of a storm of lines, most are only counted
                self._see(before, row, words, number)
            return before
        if before:
            before.fade()
        story = Incident(row.id, about, subject, now, now, now, times=number, state=state)
        self._add(story)
        self._see(story, row, words, number)
        self._answer_by_restarts(story)
        return story

    def _answer_by_restarts(self, story: Incident, has_requests: bool = False) -> None:
        """A restart that was under way when the death of its process was seen, as one asked for while no daemon ran.

        And one after which it did not come up, whoever wished for it while nothing was wrong. has_requests: the incident
        has what people requested since it was over.
        """
        if story.about != "process":
            return
        for id_, wish in self.state.trying.items():
            if wish.process != story.subject or wish.is_told or id_ in self.state.under_way:
                continue
            wish.is_told = True
            measure = story.take_wish(RESTART_PROCESS, wish.key, id_, wish.reason)
            if wish.request:
                story.request(wish.request, has_requests)
            if wish.outcome:
                measure.settle(wish.outcome, "")
            else:
                self.state.under_way[id_] = UnderWay(story.id, measure.key, wish.is_own)
                story.by_person = story.by_person or bool(wish.request)

    def _see(self, story: Incident, row: Event, words: str, number: int) -> None:
        """What was seen of it last."""
        words, story.printed = words or evidence(row), printed(row)
        if story.about == "log":  # its lines are only counted
            story.evidence = words
        else:
            is_unknown = row.kind == "process-died" and is_unexplained(row)
            story.see(row.moment, words, number, is_unknown, failing_since(row))
        self._follow(story, row)

    def _follow(self, story: Incident, row: Event) -> None:
        """Effects that name this event as their cause answer the incident."""
        story.events.append(row.id)
        self.state.causes[row.id] = story.id
        gone = story.events[: -RECENT if story.about in FADED_US else -1]
        for id_ in gone:
            self.state.causes.pop(id_, None)
        del story.events[: len(gone)]

    def _ended(self, about: str, row: Event) -> None:
        is_stop = row.kind == "process-stopped"
        if about == "process":
            self._forget_restarts(row.subject)
            if is_stop:
                self._want(row)
            else:
                self.state.trials.pop(row.subject, None)
        if (story := self._current(about, row.subject)) and not story.over:
            by = evidence(row) if is_stop else ""
            wrong = int(decoded(row).get("wrong", 0)) if '"wrong"' in row.data else 0
            story.end(row.moment, why_unwatched(row) if about == "condition" else by, wrong)
            if is_stop:
                self._try(row.subject, row, story.evidence)

    # Processes: what is intended is no incident, unless it fails

    def _is_incident(self, row: Event) -> bool:
        """Whether this death is one; if not, it is what a start that fails will have begun with."""
        name, is_intended = row.subject, '"intended"' in row.data and bool(decoded(row).get("intended"))
        if (story := self._current("process", name)) and (not story.over or self._is_restarting(story)):
            return True
        self.state.trials.pop(name, None)
        if is_intended:
            self._try(name, row, evidence(row))
        return not is_intended

    def _is_restarting(self, story: Incident) -> bool:
        """Whether a restart that answers it is still under way: what came up meanwhile is ended by it."""
        key = f"{RESTART_PROCESS}:{story.subject}"
        return any(one.incident == story.id and one.key == key for one in self.state.under_way.values())

    def _try(self, name: str, row: Event, words: str) -> None:
        """From now on it is down on purpose: an incident if its next start fails."""
        now = row.moment
        self.state.trials[name] = Incident(row.id, "process", name, now, now, now, words)

    def _trial(self, id_: str) -> Incident | None:
        return next((one for one in self.state.trials.values() if one.id == id_), None)

    def _add_trial(self, trial: Incident, words: str) -> None:
        """A start of what was down on purpose failed: it has been wrong since it was to be up."""
        wanted = self.state.wanted.get(trial.subject)
        if wanted and wanted.since(trial.began) > 0:
            trial.began = trial.since = wanted
        trial.see(trial.began, words.removeprefix(f"{trial.subject}: "))
        self._add(trial)

    def _start_failed(self, name: str, failed: Sequence[RestartWish], reason: str) -> None:
        """What was started lives, but did not come up, and Pulse restarts it: no death says so."""
        if trial := self.state.trials.pop(name, None):
            for request in (one.request for one in failed if one.is_told and one.request):
                trial.request(request)
            _, _, words = reason.removeprefix(f"{name} is ").partition(": ")
            trial.worked = None
            self._add_trial(trial, words or reason)
            self._answer_by_restarts(trial)

    def _requested(self, row: Event) -> None:
        story = self._current("process", row.subject)
        verb, data = REQUESTS[row.kind], decoded(row)
        why = data.get("why")
        if verb == "start" and self._is_to_be_up(row):
            return  # it does nothing
        self._want(row)
        if verb == "stop":
            self._forget_restarts(row.subject)  # whatever is started after it is started anew
        because, restart = f": {why}" if why else "", f"{RESTART_PROCESS}:{row.subject}"
        words = f"{row.actor} requested a {verb}{because}"
        for answered in self._newest():
            name = answered.subject
            its = restart in answered.measures or name.startswith(f"usage:{row.subject}:")
            # What a check looks at may stand on any process: what Pulse did for it may not be what mended it then.
            perhaps = name.startswith(CHECK) and (answered.worked or answered.guess)
            if answered.about == "condition" and not answered.over and (its or perhaps):
                take = answered.request if its else answered.request_perhaps
                take(f"{row.actor} requested a {verb} of {row.subject}{because}")
                answered.worked = None
        if story:
            story.request(words)
        if story is None or story.over:
            self.state.asked[row.subject] = [row.id, words]
            return
        story.worked, story.by_person = None, True
        self._follow(story, row)
        if verb == "stop":
            story.end_hold(row.at)  # the row that says so follows the stop, and is no part of this
            story.end(row.moment, f"{row.actor} wanted it down")
            self._try(row.subject, row, story.evidence)

    def _is_to_be_up(self, row: Event) -> bool:
        """Whether its process was up, and nobody wanted it down."""
        story, wanted = self._current("process", row.subject), self.state.wanted.get(row.subject)
        is_down = row.subject in self.state.trials or bool(story and not story.over)
        return not is_down and not (wanted and wanted.since(row.moment) > 0)

    def _want(self, row: Event) -> None:
        """Whoever wants it down until then wants it up from then on."""
        self.state.wanted[row.subject] = row.moment.plus(int(decoded(row).get("expires_us") or 0))

    def _delayed(self, about: str, row: Event) -> None:
        trial = self.state.trials.get(row.subject) if about == "process" else None
        story = trial or self._current(about, row.subject)
        data = decoded(row)
        by, since, us = str(data.get("held_by", "")), int(data.get("since", 0)), int(data.get("held_us", 0))
        if story is None or since < story.began.at or (story.over and since > story.last.at):
            return  # it was not held back for this
        if since >= story.since.at:
            story.still_wrong()  # what is held back was looked at
        is_awaited = any(one.process == row.subject and one.has_started for one in self.state.trying.values())
        is_no_sign = story.over or (about == "process" and is_awaited)  # what was started may come up late
        if story.worked and since > story.worked.at and not is_no_sign:
            story.worked = None  # what was done did not help, or nothing would be due again
        if data.get("lasts"):
            story.held_by, story.held_since = by, since
        else:
            story.hold(by, us)

    def _end_holds(self, at: Moment) -> None:
        """The holds that were not said to be over have ended with the daemon."""
        for story in (*self._newest(), *self.state.trials.values()):
            story.end_hold(at.at)

    def _guarded(self, row: Event, names: frozenset[str]) -> None:
        """Settings are in force that guard these processes: what was wrong with others is over."""
        for kept in (self.state.trials, self.state.asked, self.state.wanted):
            for name in kept.keys() - names:
                del kept[name]
        for name in {wish.process for wish in self.state.trying.values()} - names:
            self._forget_restarts(name)
        for story in self._newest():
            if story.about == "process" and not story.over and story.subject not in names:
                story.end(row.moment, NOT_GUARDED)

    def _reloaded(self, digest: str) -> None:
        """Other settings are in force: what was well from then on may be so by them."""
        before, self.state.settings = self.state.settings, digest
        for story in self._newest() if before and before != digest else ():
            if not story.over and story.about in ("process", "condition"):
                if NEW_SETTINGS not in story.requests:
                    story.request(NEW_SETTINGS)
                story.worked = None

    # The daemon and the engine

    def _started(self, row: Event) -> None:
        for one in self._newest():
            if one.about == "error":  # a daemon that starts says anew what is still wrong
                one.fade()
        if (last := self.state.alive) is None:
            return
        seen = max(0, int(decoded(row).get("last_seen") or 0) - last.at)
        died = last.plus(min(seen, row.moment.since(last)))
        for one in self._newest():
            if one.about in ("condition", "process") and not one.over:
                one.pass_unseen(died, row.moment)
        if self.state.stopped:
            return
        words = f"the daemon ended without a stop: {death_words(last, row.moment)}"
        story = self._began(DAEMON, row, PULSE, words)
        self._end_holds(died)
        story.unsure_us += row.moment.since(died)
        if story.times == 1 and died.at < row.at:
            story.began_after = died.at
        story.end(row.moment)

    def _engine(self, row: Event) -> None:
        data = decoded(row)
        if row.kind == "rollback":
            self._gone(row, str(data.get("rejected", "")))
            asked = data.get("asked_by")
            if asked and asked != PULSE:
                return  # a person's own decision is no incident
            rejected = str(data.get("rejected", ""))[:12]
            words = f"{rejected} was rolled back: {data.get('why', '')}"
            self._began("engine", row, rejected, words).end(row.moment)
        elif row.kind == "safe-mode-entered":
            left_out = ", ".join(data.get("left_out", ())) or "nothing"
            words = f"{data.get('crashes')} starts in a row ended within a minute; left out: {left_out}"
            words = words if data else evidence(row)
            if (one := self._current(DAEMON, "safe mode")) and not one.over:
                one.causes.clear()  # it goes on, and another start tells what it leaves out by now
                self._see(one, row, words, 1)
            else:
                self._began(DAEMON, row, "safe mode", words)
        elif row.kind == "safe-mode-left":
            if story := self._current(DAEMON, "safe mode"):
                story.end(row.moment)
        elif row.kind == "rule-quarantined":
            self._began("rule", row, words=str(data.get("why", ""))).commit = str(data.get("commit", ""))
        else:
            self._loaded(row, frozenset(data.get("rules", ())))

    def _erred(self, row: Event) -> None:
        commit, story = str(decoded(row).get("commit", "")), self._current("error", row.subject)
        if story and story.ended_by == ROLLED_BACK and commit == story.commit:
            # Raised before that: errors are recorded with their number a second later.
            number = occurrences(row)
            story.times += number
            story.see(row.moment, evidence(row), number)
        else:
            self._began("error", row).commit = commit

    def _gone(self, row: Event, commit: str) -> None:
        """A commit was rolled back: what was wrong with its rules is over."""
        for story in self._newest():
            if commit and story.commit == commit and not story.over:
                story.end(row.moment, ROLLED_BACK)

    def _loaded(self, row: Event, rules: frozenset[str]) -> None:
        """Other rules run now: what was wrong with those that are gone is over."""
        for story in self._newest():
            kind, _, name = story.subject.partition(":")
            if story.over:
                continue
            if story.about == "rule" and story.commit != row.subject:
                story.end(row.moment, "other rules were loaded")
            elif story.about == "error" and kind == "rule" and name not in rules and name not in self.own:
                story.end(row.moment, "the rule is gone")

    # What was done

    def _wished(self, row: Event) -> None:
        # Most effects have to do with no incident, and need not be decoded.
        if (
            ":" not in row.subject
            and row.cause is None
            and '"process"' not in row.data
            and f'"{FOR}"' not in row.data
        ):
            return
        data = decoded(row)
        action, params = str(data.get("action") or row.subject.partition(":")[0]), data.get("params") or {}
        reason, _, _ = str(data.get("reason") or f"by {row.actor}").partition(HELD_BACK)
        if action == RESTART_PROCESS and isinstance(name := params.get("process"), str):
            asked, words = self.state.asked.pop(name, ("", ""))
            request = words if row.cause == asked else ""
            wish = RestartWish(name, row.subject, reason, row.actor == PULSE, request)
            known = self.state.trying.items()
            failed = [one for _, one in known if one.process == name and one.outcome]
            if failed and data.get("survival") and not request:
                self._start_failed(name, failed, reason)
            # One that is settled and followed by another one began nothing that is not told.
            self.state.trying = {id_: one for id_, one in known if one.process != name or not one.outcome}
            self.state.trying[row.id] = wish
        story = self._concerned(row, params)
        if (story is None or story.over) and row.id in self.state.trying:  # it is told of if that start fails
            story = self.state.trials.get(self.state.trying[row.id].process, story)
        if action == NOTIFY and (trial := self.state.trials.pop(row.subject.removeprefix(IS_DOWN), None)):
            self._add_trial(trial, str(data.get("reason", "")))  # Pulse may start it no more, or never
            story = trial
        if story is None or (story.over and action not in TOLD):
            return  # what is over needs nothing done but to be told of
        measure = story.take_wish(action, row.subject, row.id, reason)
        if action not in TOLD and data.get("survival"):
            story.still_wrong()  # nothing is done before it was looked at
        if row.id in self.state.trying:
            self.state.trying[row.id].is_told = story.about == "process"
        self.state.under_way[row.id] = UnderWay(story.id, measure.key, row.actor == PULSE)
        if row.actor != PULSE:
            story.worked = None
        if story.about in FADED_US and params.get("over"):
            story.end(row.moment)
            story.faded = False

    def _settled(self, row: Event) -> None:
        state = self.state
        if wish := state.trying.get(row.subject):
            wish.outcome, wish.has_started = outcome_of(row), has_started(row)
            if row.kind != "effect-acked" or is_idle(row):
                del state.trying[row.subject]
        if wish and row.kind in FAILED and (trial := state.trials.pop(wish.process, None)):
            self._add_trial(trial, f"its start failed: {said(row)}")
        answer = state.under_way.pop(row.subject, None)
        if answer and (story := state.all.get(answer.incident) or self._trial(answer.incident)):
            measure, outcome = story.measures[answer.key], outcome_of(row)
            if answer.arrived and row.kind != "effect-acked":
                outcome = SENT_TO_SOME
            measure.settle(outcome, said(row))
            if answer.is_own:
                story.take_outcome(row, measure.action)
            else:
                story.worked = None

    def _forget_restarts(self, name: str) -> None:
        """What was restarted is up, or is not guarded any more."""
        trying = self.state.trying
        self.state.trying = {id_: wish for id_, wish in trying.items() if wish.process != name}

    def _concerned(self, row: Event, params: Mapping[str, Any]) -> Incident | None:
        """The incident that an effect answers: the one of its cause; else by its params, or what its key ends with."""
        if row.cause and (story := self.state.all.get(self.state.causes.get(row.cause, row.cause))):
            return story
        current, key = self.state.current, row.subject
        named = (("condition", params.get(FOR)), ("process", params.get("process")))
        keys = [f"{about} {subject}" for about, subject in named if subject]
        for subject in subjects_of(key):  # a process may have the name of a condition
            is_process = subject == params.get("process") or is_of_process(key)
            keys += [f"{about} {subject}" for about in (ABOUTS[1:] if is_process else ABOUTS)]
        if begins := OF_PULSE.get(key):
            told = (self.state.all[id_] for about, id_ in current.items() if about.startswith(begins))
            return max(told, key=lambda one: one.last.at, default=None)
        over = None
        for id_ in (current[one] for one in keys if one in current):
            if not (story := self.state.all[id_]).over:
                return story
            over = over or story
        return over
