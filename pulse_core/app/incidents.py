"""What happened, what was done because of it, and did it help: the log of a while as incidents.

An incident begins with the first death, condition, error or log line, and ends when that is well again. What is intended
is none: the first start of a process, and what people or Pulse itself end to restart or stop it. Such a start or restart
becomes one when it fails.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.composition import OWN_NAMES
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment, iso
from pulse_core.model.names import RESTART_PROCESS, SETTLING
from pulse_core.model.stored_data import damage_in, is_damaged
from pulse_core.ports.readers import EventQuery, EventReader

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
ABOUTS = ("process", "condition", "log", "error")
STARTED, STOPPED = "daemon-started", "daemon-stopped"
DAEMON = "daemon"
PULSE = "pulse"
"""Who writes what the daemon decides."""
RARE = (*BEGINS, *ENDS, *ENGINE, *REQUESTS, STARTED, STOPPED)
"""What begins and ends incidents."""
KINDS = (*RARE, *SETTLING, "effect")
TOLD = frozenset({"notify", "note"})
"""Actions that only tell people: they help nobody."""
FAILED = frozenset({"effect-failed", "effect-unknown"})
LEAD_US = 60_000_000
"""How long before an incident effects may have begun that are under way in it."""
LOOK_BACK = 50_000
"""Events before a time among which incidents may have begun that are told with those since then."""
QUIET_US = 300_000_000
"""What comes again within five minutes belongs to the same story."""

FADING = frozenset({"error", "log"})
"""What nothing ends: it is over when it has not come again for long enough."""

FADED_US = 3_600_000_000


@dataclass
class Incident:
    """One episode of one thing: when it began and ended, what was seen last, and what was done about it.

    id: of the event that began it; faded: nobody said that it is over, but it did not come again; words: what was seen,
    where the event does not say it; ended_by: why it is over, if it did not recover; requests: what people requested
    meanwhile, in words; worked: when something that Pulse did had last worked, with nothing done by a person since;
    by_person: a person requested the start that comes next.
    """

    id: str
    about: str
    subject: str
    began: Moment
    last: Moment
    seen: Event
    over: bool = False
    faded: bool = False
    times: int = 1
    measures: dict[str, "IncidentMeasure"] = field(default_factory=dict)
    words: str = ""
    ended_by: str = ""
    requests: list[str] = field(default_factory=list)
    worked: Moment | None = None
    by_person: bool = False

    def is_history(self, now: Moment) -> bool:
        """Whether nothing that happens now belongs to it any more."""
        settled = all(one.outcomes.total() == one.times for one in self.measures.values())
        return settled and (self.over or self.about in FADING) and now.since(self.last) > FADED_US

    def goes_on(self, now: Moment) -> bool:
        """Whether something that happens now may belong to it."""
        return not self.over or now.since(self.last) <= QUIET_US

    def end(self, at: Moment, by: str = "") -> None:
        """It is over; by: why, if it did not recover."""
        self.last, self.over, self.ended_by = at, True, by

    @property
    def helped(self) -> bool | None:
        """Whether something that Pulse did worked before it was over; None while nothing was done but telling people."""
        acted = [measure for measure in self.measures.values() if measure.action not in TOLD]
        if not acted:
            return None
        if not self.over or self.ended_by or self.worked is None:
            return False
        return self.about != "condition" or self.last.since(self.worked) <= QUIET_US

    def take_outcome(self, row: Event, action: str) -> None:
        """Take the outcome of an effect that Pulse wished for this."""
        # A restart that finds its process up does nothing: one that did something may be known to be up before it is acked.
        in_time = not self.over or action == RESTART_PROCESS
        has_worked = row.kind == "effect-acked" and action not in TOLD and not is_idle(row)
        if in_time and has_worked and not self.by_person:
            self.worked = row.moment

    def spelled(self) -> dict[str, Any]:
        """The incident as JSON values."""
        return {
            "id": self.id,
            "about": self.about,
            "subject": self.subject,
            "began": iso(self.began.at),
            "ended": iso(self.last.at) if self.over else None,
            "lasted_ms": self.last.since(self.began) / 1000 if self.over else None,
            "faded": self.faded,
            "times": self.times,
            "evidence": self.words or evidence(self.seen),
            "printed": printed(self.seen),
            "measures": [measure.spelled() for measure in self.measures.values()],
            "requests": self.requests,
            "helped": self.helped,
            "ended_by": self.ended_by,
        }


@dataclass
class IncidentMeasure:
    """What was done about it under one key, however often: the newest wish, and how all of them ended."""

    action: str
    key: str
    effect: str = ""
    reason: str = ""
    times: int = 0
    end: Event | None = None
    outcomes: Counter[str] = field(default_factory=Counter)

    def spelled(self) -> dict[str, Any]:
        """As JSON values; `open` are those that have not ended yet."""
        left = self.times - self.outcomes.total()
        return {
            "action": self.action, "key": self.key, "effect": self.effect, "times": self.times,
            "outcomes": {**({"open": left} if left else {}), **self.outcomes},
            "reason": self.reason, "said": said(self.end) if self.end else "",
        }  # fmt: skip


class IncidentFold:
    """Groups events into incidents."""

    def __init__(self) -> None:
        self.all: list[Incident] = []
        self._open: dict[tuple[str, str], Incident] = {}
        self._under_way: dict[str, tuple[Incident, IncidentMeasure, bool]] = {}
        """By the effect's id: what it answers, under which key, and whether Pulse wished it."""
        self._trials: dict[str, Incident] = {}
        """By process: what will have begun an incident if its start fails."""
        self._trying: dict[str, str] = {}
        """By the restart's id: the process that is tried."""
        self._alive: Event | None = None
        """The last sign of a daemon that has not been stopped."""

    def take(self, row: Event) -> None:
        """Take one event, in the order of the log."""
        kind = row.kind
        if kind == "effect":
            self._wished(row)
        elif kind in SETTLING:
            self._settled(row)
        elif about := BEGINS.get(kind):
            if kind != "process-died" or self._is_incident(row):
                self._began(about, row)
        elif about := ENDS.get(kind):
            self._ended(about, row)
        elif kind in REQUESTS:
            self._requested(row)
        elif kind in ENGINE:
            self._engine(row)
        elif kind == STARTED:
            self._started(row)
        if kind == STOPPED:
            self._alive = None
        elif kind == STARTED or (row.actor == PULSE and self._alive):
            self._alive = row

    def at(self, now: Moment) -> Sequence[Incident]:
        """The incidents, after the last event: what did not come again for long is over."""
        for story in self._open.values():
            if story.about in FADING and now.since(story.last) > FADED_US:
                self._fade(story)
        return self.all

    def _began(self, about: str, row: Event, subject: str = "", words: str = "", number: int = 1) -> None:
        now, subject = row.moment, subject or row.subject
        before = self._open.get((about, subject))
        # The same episode goes on if this came soon, or nothing has ended what has an end.
        stands = before and not before.over and about not in FADING
        number = occurrences(row) if about in FADING else number
        if before and (stands or now.since(before.last) <= QUIET_US):
            if before.over or about == "process":
                before.worked, before.by_person = None, False
            before.times, before.last, before.over, before.faded = before.times + number, now, False, False
            before.ended_by, before.words = "", words
            if about != "log" or evidence(row):  # of a storm of lines, most are only counted
                before.seen = row
            return
        if before:
            self._fade(before)
        story = Incident(row.id, about, subject, now, now, row, times=number, words=words)
        self._open[about, subject] = story
        self.all.append(story)

    def _ended(self, about: str, row: Event) -> None:
        if about == "process":
            self._trials.pop(row.subject, None)
        if (story := self._open.get((about, row.subject))) and not story.over:
            story.end(row.moment, "its own manager stopped it" if row.kind == "process-stopped" else "")

    # Processes: what is intended is no incident, unless it fails

    def _is_incident(self, row: Event) -> bool:
        """Whether this death is one; if not, it is what a start that fails will have begun with."""
        data, name = decoded(row), row.subject
        if (story := self._open.get(("process", name))) and not story.over:
            return True
        if self._trials.pop(name, None):  # it was started, and was not up before it died
            return not data.get("intended")
        if data.get("intended"):
            self._trials[name] = Incident(row.id, "process", name, row.moment, row.moment, row)
            return False
        return True

    def _requested(self, row: Event) -> None:
        story = self._open.get(("process", row.subject))
        if story is None or story.over:
            return
        verb, why = REQUESTS[row.kind], decoded(row).get("why")
        story.worked, story.by_person = None, True
        story.requests.append(f"{row.actor} requested a {verb}{f': {why}' if why else ''}")
        if verb == "stop":
            story.end(row.moment, f"{row.actor} wants it down")

    # The daemon and the engine

    def _started(self, row: Event) -> None:
        for one in self._open.values():
            if one.about == "error":  # a daemon that starts says anew what is still wrong
                self._fade(one)
        if (last := self._alive) is None:
            return
        who = "the machine was restarted" if last.boot != row.boot else "it was killed, or it crashed"
        self._began(DAEMON, row, PULSE, f"the daemon ended without a stop: {who}")
        story = self._open[DAEMON, PULSE]
        if story.times == 1:
            seen = max(0, int(decoded(row).get("last_seen") or 0) - last.at)
            story.began = last.moment.plus(min(seen, row.moment.since(last.moment)))
        story.end(row.moment)

    def _engine(self, row: Event) -> None:
        data = decoded(row)
        if row.kind == "rollback":
            asked = data.get("asked_by")
            if asked and asked != PULSE:
                return  # a person's own decision is no incident
            rejected = str(data.get("rejected", ""))[:12]
            self._began("engine", row, rejected, f"{rejected} was rolled back: {data.get('why', '')}")
            self._open["engine", rejected].end(row.moment)
        elif row.kind == "safe-mode-entered":
            left_out = ", ".join(data.get("left_out", ())) or "nothing"
            words = f"{data.get('crashes')} starts in a row ended within a minute; left out: {left_out}"
            self._began(DAEMON, row, "safe mode", words)
        elif row.kind == "safe-mode-left":
            if story := self._open.get((DAEMON, "safe mode")):
                story.end(row.moment)
        elif row.kind == "rule-quarantined":
            self._began("rule", row, words=str(data.get("why", "")))
        else:
            self._loaded(row, frozenset(data.get("rules", ())))

    def _loaded(self, row: Event, rules: frozenset[str]) -> None:
        """Other rules run now: what was wrong with those that are gone is over."""
        for (about, subject), story in self._open.items():
            kind, _, name = subject.partition(":")
            if about == "rule":
                is_over = not story.over and decoded(story.seen).get("commit") != row.subject
            else:
                is_gone = kind == "rule" and name not in rules and name not in OWN_NAMES
                is_over = about == "error" and not story.over and is_gone
            if is_over:
                story.end(row.moment, "other rules were loaded" if about == "rule" else "the rule is gone")

    # What was done

    def _wished(self, row: Event) -> None:
        data = decoded(row)
        action, params = str(data.get("action", "")), data.get("params", {})
        name = params.get("process")
        if action == RESTART_PROCESS and isinstance(name, str):
            self._trying[row.id] = name
        if story := self._concerned(row.subject, action, params):
            measure = story.measures.setdefault(row.subject, IncidentMeasure(action, row.subject))
            measure.effect, measure.reason = row.id, str(data.get("reason", ""))
            measure.times += 1
            self._under_way[row.id] = story, measure, row.actor == PULSE
            if row.actor != PULSE:
                story.worked = None
            if story.about in FADING and params.get("over"):
                story.end(row.moment)
                story.faded = False

    def _settled(self, row: Event) -> None:
        name = self._trying.pop(row.subject, None)
        if name and row.kind in FAILED and (trial := self._trials.pop(name, None)):
            trial.words = f"its start failed: {said(row)}"
            self._open["process", name] = trial
            self.all.append(trial)
        if answer := self._under_way.pop(row.subject, None):
            story, measure, is_own = answer
            measure.outcomes[row.kind.removeprefix("effect-")] += 1
            measure.end = row
            if is_own:
                story.take_outcome(row, measure.action)
            else:
                story.worked = None

    def _concerned(self, key: str, action: str, params: Mapping[str, Any]) -> Incident | None:
        """The incident that an effect answers: by its params if they say so, else by what its key ends with.

        What is over needs nothing done but to be told of.
        """
        named = (("condition", params.get("for_condition")), ("process", params.get("process")))
        ends = [key.split(":", cuts)[-1] for cuts in range(1, key.count(":") + 1)]
        keys = [(about, str(subject)) for about, subject in named if subject]
        keys += [(about, end) for end in ends for about in ABOUTS]
        found = (self._open.get(one) for one in keys)
        return next((one for one in found if one and (not one.over or action in TOLD)), None)

    @staticmethod
    def _fade(story: Incident) -> None:
        story.faded = story.faded or not story.over
        story.over = True


def occurrences(row: Event) -> int:
    """How often what this row tells of has happened: repeated errors and lines of a storm are only counted."""
    data = decoded(row)
    return max(1, int(data.get("count", 1))) + int(data.get("repeats", 0))


def decoded(row: Event) -> Mapping[str, Any]:
    """The row's data; empty where it was redacted."""
    return json.loads(row.data) or {}


def is_idle(row: Event) -> bool:
    """Whether an effect was done and changed nothing: there was nothing to do any more, or nothing was freed."""
    result = decoded(row).get("result") or {}
    return "already" in result or result.get("bytes") == 0


def evidence(row: Event) -> str:
    """What was seen, in words."""
    if is_damaged(row.data):
        return f"(damaged: {damage_in(row.data)})"
    data = decoded(row)
    return str(data.get("evidence") or data.get("message") or (data.get("lines") or [""])[0])


def printed(row: Event) -> str:
    """What the process that died had printed last; these are not Pulse's words."""
    return "" if is_damaged(row.data) else str(decoded(row).get("printed", ""))


def said(row: Event) -> str:
    """Why an effect ended as it did; nothing if it was done."""
    data = decoded(row)
    return str(data.get("error") or data.get("why") or "")


def incidents(home: HomeContext, since: int | None) -> Sequence[Incident]:
    """The incidents since then (UTC microseconds), oldest first, as they stand now; also those that had begun before."""
    with home.events() as log:
        return incidents_in(log, since, home.clock.now())


def incident(home: HomeContext, id_: str) -> Incident:
    """The incident that began with the event of this id. Raises UnknownName if none did."""
    fold = IncidentFold()
    with home.events() as log:
        began = log.event(id_)
        for row in log.events(EventQuery(since_seq=began.seq - 1, kinds=KINDS)):
            fold.take(row)
            if not fold.all or fold.all[0].id != began.id or fold.all[0].is_history(row.moment):
                break
    found = fold.at(home.clock.now())
    if not found or found[0].id != began.id:
        raise UnknownName("incident", id_, [one.id for one in found])
    return found[0]


def incidents_in(log: EventReader, since: int | None, now: Moment) -> Sequence[Incident]:
    """The incidents since then that this log tells of: each the same, whatever the time, unless it began long before."""
    fold, first = IncidentFold(), 0
    if since is not None and (before := log.last_before(since)):
        earlier = list(_rare(log, before.seq - LOOK_BACK, before.seq))
        look = IncidentFold()
        for row in earlier:
            look.take(row)
        began = [one.began.at for one in look.at(before.moment) if one.goes_on(before.moment)]
        first = events_since(log, min(began, default=since) - LEAD_US).since_seq
        for row in earlier:
            if row.seq <= first:
                fold.take(row)
    for row in log.events(EventQuery(since_seq=first, kinds=KINDS)):
        fold.take(row)
    return [one for one in fold.at(now) if since is None or one.last.at >= since or not one.over]


def _rare(log: EventReader, after: int, last: int) -> Iterator[Event]:
    rows = log.events(EventQuery(since_seq=max(0, after), kinds=RARE))
    return takewhile(lambda row: row.seq <= last, rows)


def events_since(log: EventReader, at: int | None) -> EventQuery:
    """The rows from a time on, found without reading those before it."""
    if at is None:
        return EventQuery()
    before = log.last_before(at)
    return EventQuery(since_seq=before.seq if before else 0)
