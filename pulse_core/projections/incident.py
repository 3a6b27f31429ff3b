"""One incident: what was seen of it, what was done about it, and whether that helped."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulse_core.model.durations import duration_text
from pulse_core.model.event import Event
from pulse_core.model.json_answers import CauseJson, IncidentJson, MeasureJson
from pulse_core.model.moment import Moment, iso
from pulse_core.model.names import ARCHIVE_SESSIONS, CLEAN_PATHS, ONLY_LOGGED, RESTART_PROCESS, RUN_COMMAND
from pulse_core.model.stored_data import REDACTED, damage_in, is_damaged
from pulse_core.model.text import freed_text, listed
from pulse_core.projections.conditions import failing_since

TOLD = frozenset({"notify", "note", "create-task"})
"""Actions that only tell people or agents: what these do then is no help of Pulse."""
EXCUSING = frozenset({RESTART_PROCESS, RUN_COMMAND})
"""Actions after which what is looked at counts for nothing for a while."""
QUIET_US = 300_000_000
"""What comes again within five minutes belongs to the same story."""
FADED_US = {"error": 1_200_000_000, "log": 600_000_000}
"""What nothing ends is over when it has not come again for so long: an error that comes again is recorded once in ten
minutes, so at least once in twenty; of a log nobody is told any more after ten."""
NO_DAEMON = "a missing daemon"
"""What holds a restart back that something else had held back when the daemon ended."""
AWAY_US = 10_000_000
"""For how long no daemon runs, or nothing that is seen counts, at least where that is more than a restart."""
UNSEEN_US = 120_000_000
"""How long before its end a condition must have been seen wrong last for nobody to know how long it was: looks are less far
apart as a rule, but the daemon, or the whole machine, may have been stopped meanwhile."""
MOST_REQUESTS = 20
"""How many requests of people are kept of one incident, and how many causes that held its answers back."""
MOST_CAUSES, OTHERS = 10, "other causes"
"""How many causes of one incident are told apart, and how those beyond are called."""
MOST_MEASURES, OTHER_NOTICES, OTHER_MEASURES = 100, "other notices", "other measures"
"""How many keys of what was done about one incident are told apart, which rules make up, and how those beyond are called."""
VARYING = re.compile(
    r"(?<=\bprocess )\d++|(?<!\d)\d++(?= questions? in a row)"
    r"|(?<!\d)\d++(?:(?:,\d{3})++(?:\.\d++)?|\.\d++|(?=%| ?(?:[KMGT]i?B|ms|s|min|h|days?)\b))"
)
"""Process ids, measured values, and how often an endpoint was asked: what was seen twice of one cause differs in them."""
NOT_BY = re.compile(r", not by \d+")
"""What is told of who holds a port only where a look finds them there after the death, which is no other cause."""
UNEXPLAINED = re.compile(r"^process \d+ (died(, and how is not known)?|is gone)(;|$)")
"""The evidence of a death of which nobody knows how it came in logs of before `ProcessDied.unexplained`."""


@dataclass(slots=True)
class IncidentCause:
    """What was seen of an incident, but for process ids and measured values: the newest words, and how often.

    varies: more than the id of the process differed; unexplained: a death of which nobody knows how it came.
    """

    evidence: str
    first: Moment
    last: Moment
    times: int = 0
    varies: bool = False
    unexplained: bool = False

    def spelled(self) -> CauseJson:
        """As JSON values."""
        return {
            "evidence": self.evidence, "times": self.times,
            "first": iso(self.first.at), "last": iso(self.last.at), "varies": self.varies,
            "unexplained": self.unexplained,
        }  # fmt: skip


@dataclass(slots=True)
class IncidentMeasure:
    """What was done about it under one key, however often: the newest wish, and how all of them ended.

    said: why the last one that is settled ended as it did.
    """

    action: str
    key: str
    effect: str = ""
    reason: str = ""
    times: int = 0
    said: str = ""
    outcomes: dict[str, int] = field(default_factory=dict)

    def settle(self, outcome: str, said: str) -> None:
        """One of them ended so."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.said = said

    def spelled(self) -> MeasureJson:
        """As JSON values; `open` are those that have not ended yet."""
        left = self.times - sum(self.outcomes.values())
        return {
            "action": self.action, "key": self.key, "effect": self.effect, "times": self.times,
            "outcomes": {**({"open": left} if left else {}), **self.outcomes},
            "reason": self.reason, "said": self.said,
        }  # fmt: skip


@dataclass(slots=True)
class Incident:
    """One episode of one thing: when it began and ended, what was seen last, and what was done about it.

    id: of the event that began it; since: when it was last well, and began again, or a daemon did; wrong_us: for how long it
    was wrong before that; began_after: when it may have been well last, if it began while no daemon ran (UTC microseconds;
    else 0); unsure_us: for how long it may have been wrong besides, while none ran; evidence: what was seen, in words;
    causes: what was seen each time, by its words; printed: what a process had printed last, which are not Pulse's words;
    events: the newest that belong to it; commit: of the rule that is quarantined; faded: nobody said that it is over,
    but it did not come again; ended_by: why it is over, if it did not recover; requests: what people requested meanwhile;
    held: what held back restarts or other answers to it, and for how many microseconds; held_by: what still does, as far as
    is known, and held_since when (UTC microseconds);
    requests_since: what they requested since it is over, which belongs to it if it comes again;
    worked: when something that Pulse did had last worked, with nothing done by a person since;
    excused: when its process was last restarted for it, or a command run; outlived: it was seen wrong after that, too;
    may_have_helped: what Pulse ran to restart its process may have brought it up after that was given up;
    unseen: for how many microseconds no daemon ran before `since`, if nothing has shown yet that it was still wrong then;
    by_person: a person requested the start that comes next; state: in which a condition was raised last;
    requested: a person requested something since it was last well; guess: of these, the newest that may have been about
    something else.
    """

    id: str
    about: str
    subject: str
    began: Moment
    since: Moment
    last: Moment
    evidence: str = ""
    causes: dict[str, IncidentCause] = field(default_factory=dict)
    printed: str = ""
    events: list[str] = field(default_factory=list)
    commit: str = ""
    over: bool = False
    faded: bool = False
    times: int = 1
    wrong_us: int = 0
    began_after: int = 0
    unsure_us: int = 0
    measures: dict[str, IncidentMeasure] = field(default_factory=dict)
    ended_by: str = ""
    requests: list[str] = field(default_factory=list)
    requests_since: list[str] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)
    held_by: str = ""
    held_since: int = 0
    worked: Moment | None = None
    excused: Moment | None = None
    outlived: bool = False
    may_have_helped: bool = False
    unseen: int = 0
    by_person: bool = False
    state: str = ""
    requested: bool = False
    guess: str = ""

    def has_faded(self, now: Moment) -> bool:
        """Whether nothing has ended it, and it did not come again."""
        return not self.over and self.about in FADED_US and now.since(self.last) > FADED_US[self.about]

    def see(
        self,
        at: Moment,
        words: str,
        times: int = 1,
        unexplained: bool = False,
        first: Moment | None = None,
    ) -> None:
        """It was seen so, so often; first: since when, if once was not enough."""
        self.evidence, name = words, cause_name(words)
        if name not in self.causes and len(self.causes) >= MOST_CAUSES:
            name, words, unexplained = OTHERS, OTHERS, False
        cause = self.causes.setdefault(name, IncidentCause(words, first or at, at, unexplained=unexplained))
        cause.varies = cause.varies or without_id(cause.evidence) != without_id(words)
        cause.evidence, cause.last, cause.times = words, at, cause.times + times

    def see_again(self, at: Moment, words: str) -> None:
        """It still stands, and this is what is seen of it now."""
        name = max(self.causes, key=lambda name: self.causes[name].last.at)
        cause = self.causes.pop(name)
        self.evidence, self.last, self.unseen = words, max(self.last, at), 0
        cause.evidence, cause.last = words, at
        self.causes[name if name == OTHERS else cause_name(words)] = cause

    def come_again(self, at: Moment, times: int, state: str) -> None:
        """It is wrong once more, and no other episode. A condition that stands has only changed its state."""
        times = 0 if self.about == "condition" and not self.over else times
        if self.over:
            self.since, self.requested, self.excused = at, False, None
        if self.over or self.about == "process":
            self.worked, self.by_person, self.may_have_helped = None, False, False
        self.times, self.over, self.faded = self.times + times, False, False
        self.last = max(self.last, at)  # what was counted is recorded later
        self.ended_by, self.unseen, self.state = "", 0, state
        self.requests = [*self.requests, *self.requests_since][-MOST_REQUESTS:]
        self.requests_since = []

    def take_beginning(self, row: Event) -> None:
        """When it began, if it was well until now: what does not serve when its probes began to fail; what died while no
        daemon ran perhaps some time before it was found."""
        if self.since != row.moment:
            return
        if since := failing_since(row):
            self.began = since if self.began == row.moment else self.began
            self.since = since
        last_seen = int(decoded(row).get("last_seen", 0)) if '"last_seen"' in row.data else 0
        if 0 < last_seen < row.at:
            self.unsure_us += row.at - last_seen
            if self.began == row.moment:
                self.began_after = last_seen

    def take_wish(self, action: str, key: str, effect: str, reason: str) -> IncidentMeasure:
        """An effect was requested that answers it."""
        if key not in self.measures and len(self.measures) >= MOST_MEASURES:
            key = OTHER_NOTICES if action in TOLD else OTHER_MEASURES
        measure = self.measures.setdefault(key, IncidentMeasure(action, key))
        measure.action, measure.effect, measure.reason = action, effect, reason
        measure.times += 1
        return measure

    def request(self, words: str, is_known: bool = False) -> None:
        """A person requested something; is_known: that is among its requests already."""
        self.requested = self.requested or not self.over
        kept = self.requests_since if self.over else self.requests
        kept[:] = kept if is_known else [*kept[1 - MOST_REQUESTS :], words]

    def request_perhaps(self, words: str) -> None:
        """A person requested something that may have to do with it: it replaces what has not mended it before."""
        self.requests = [one for one in self.requests if one != self.guess]
        self.request(words)
        self.guess = words

    def hold(self, by: str, us: int) -> None:
        """Answers to it were held back for so long; what holds them back now is another hold."""
        if by not in self.held and len(self.held) >= MOST_REQUESTS:
            by = OTHERS
        self.held[by] = self.held.get(by, 0) + us
        self.held_by, self.held_since = "", 0

    def end_hold(self, at: int) -> None:
        """What holds answers to it back has ended at this time (UTC microseconds), if anything does."""
        if self.held_by:
            self.hold(self.held_by, max(0, at - self.held_since))

    def end(self, at: Moment, by: str = "", wrong: int = 0) -> None:
        """It is over; by: why, if it did not recover; wrong: when it was last seen wrong, where that is known."""
        lasted = 0 if self.over else at.since(self.since)
        self.outlived = self.excused is not None and wrong > self.excused.at
        if self.unseen and lasted <= QUIET_US:  # it may have been well when the daemon began
            self.unsure_us += lasted
        else:
            unseen, least = (min(at.at - wrong, lasted) if wrong else 0), UNSEEN_US
            if self.excused is not None:
                unseen, least = min(at.since(self.excused), unseen or lasted), AWAY_US
            unsure = unseen if unseen >= least else 0
            self.wrong_us, self.unsure_us = self.wrong_us + lasted - unsure, self.unsure_us + unsure
        self.last, self.over, self.ended_by = at, True, by

    def pass_unseen(self, died: Moment, now: Moment) -> None:
        """No daemon ran from one moment to the other, so nobody knows whether it was wrong meanwhile."""
        if (away := now.since(died)) >= AWAY_US:
            self.wrong_us += died.since(self.since)
            self.unsure_us += away
            self.since, self.unseen = now, self.unseen + away
            if self.about == "process" and (self.held or self.held_by):
                self.end_hold(died.at)
                self.hold(NO_DAEMON, away)

    def still_wrong(self) -> None:
        """It was looked at since no daemon ran. Who is down then was so all the time; a condition may have come again."""
        if self.about == "process":
            self.wrong_us, self.unsure_us = self.wrong_us + self.unseen, self.unsure_us - self.unseen
        self.unseen = 0

    def fade(self) -> None:
        """It did not come again."""
        self.faded = self.faded or not self.over
        self.over = True

    @property
    def helped(self) -> bool | None:
        """Whether something that Pulse did worked before it was over; None while nothing was done but telling people.

        And where nobody knows: of errors and lines that do not come again, of a condition that may have become well while no
        daemon ran, and of a process that may have come up late by what Pulse had run.
        """
        if self.about in FADED_US or all(measure.action in TOLD for measure in self.measures.values()):
            return None
        if not self.over or self.ended_by or self.worked is None:
            return None if self.doubt else False
        if self.about != "condition":
            return True
        is_soon = self.last.since(self.worked) <= QUIET_US
        return None if is_soon and self.doubt else is_soon

    @property
    def doubt(self) -> str:
        """Why nobody knows whether something that Pulse did helped, in words; empty if that is known."""
        if self.about == "process" and self.over and self.worked is None:
            is_unknown = self.may_have_helped and not (self.ended_by or self.requested)
            return "since what Pulse ran to restart it may have brought it up late" if is_unknown else ""
        if self.about != "condition" or not self.over or self.worked is None:
            return ""
        if self.unseen:
            return "since no daemon ran for a while"
        return "since it was seen wrong after that, too" if self.outlived else ""

    def take_outcome(self, row: Event, action: str) -> None:
        """Take the outcome of an effect that Pulse wished for this."""
        # A restart that finds its process up does nothing: one that did something may be known to be up before it is acked.
        # So does what frees a disk, which is sensed while it is still at work.
        in_time = not self.over or action in (RESTART_PROCESS, CLEAN_PATHS, ARCHIVE_SESSIONS)
        has_worked = row.kind == "effect-acked" and action not in TOLD and not is_idle(row)
        self.may_have_helped = self.may_have_helped or (action == RESTART_PROCESS and may_be_late(row))
        if has_worked and self.about == "condition" and action in EXCUSING:
            self.excused = row.moment
        if in_time and has_worked and not self.by_person:
            self.worked = row.moment
            self.still_wrong()

    def spelled(self) -> IncidentJson:
        """The incident as JSON values; `wrong_ms` is `lasted_ms` without the times at which it was well in between."""
        lasted = self.last.since(self.began) / 1000 if self.over else None
        return {
            "id": self.id,
            "about": self.about,
            "subject": self.subject,
            "began": iso(self.began.at),
            "began_after": iso(self.began_after) if self.began_after else None,
            "ended": iso(self.last.at) if self.over else None,
            "lasted_ms": lasted,
            "wrong_ms": lasted if self.about in FADED_US or lasted is None else self.wrong_us / 1000,
            "unsure_ms": self.unsure_us / 1000,
            "faded": self.faded,
            "last_seen": iso(self.last.at) if self.about in FADED_US and not self.over else None,
            "times": self.times,
            "evidence": self.evidence,
            "causes": [cause.spelled() for cause in self.causes.values()],
            "printed": self.printed,
            "measures": [measure.spelled() for measure in self.measures.values()],
            "requests": self.requests,
            "requested": self.requested,
            "delays": [f"held back for {duration_text(us)} by {by}" for by, us in self.held.items()],
            "held": {"by": self.held_by, "since": iso(self.held_since)}
            if self.held_by and not self.over
            else None,
            "helped": self.helped,
            "doubt": self.doubt if self.helped is None else "",
            "ended_by": self.ended_by,
        }


@dataclass(slots=True)
class UnderWay:
    """An effect that answers an incident, by its id: under which key, whether Pulse wished it, and whether it is a notice
    that some of its addresses have."""

    incident: str
    key: str
    is_own: bool
    arrived: bool = False


@dataclass(slots=True)
class RestartWish:
    """A restart that did not bring its process up yet: of which process, under which key, why, whether Pulse wished it, and
    the request of a person that it answers, in words.

    is_told: an incident has it, or will have if the start fails; outcome: empty until it is settled; has_started: it began
    a process, which may come up late, and whose death would be told."""

    process: str
    key: str
    reason: str
    is_own: bool
    request: str = ""
    is_told: bool = False
    outcome: str = ""
    has_started: bool = False


def incident_from(values: dict[str, Any]) -> Incident:
    """The incident from its fields, as JSON values; raises TypeError or KeyError if these are not they."""
    causes = {
        name: IncidentCause(
            one.pop("evidence"), *(moment_from(one.pop(end)) for end in ("first", "last")), **one
        )
        for name, one in values.pop("causes").items()
    }
    measures = {key: IncidentMeasure(**one) for key, one in values.pop("measures").items()}
    moments = {
        name: moment_from(values.pop(name)) for name in ("began", "since", "last", "worked", "excused")
    }
    return Incident(**values, **moments, causes=causes, measures=measures)


def moment_from(values: Any) -> Any:
    """A moment from its parts, or None from nothing."""
    return Moment(*values) if values is not None else None


def decoded(row: Event) -> Mapping[str, Any]:
    """The row's data; empty where it was redacted."""
    return json.loads(row.data) or {}


def is_idle(row: Event) -> bool:
    """Whether an effect was done and changed nothing: there was nothing to do any more, or nothing was freed."""
    result = decoded(row).get("result") or {}
    return "already" in result or result.get("bytes") == 0


def has_started(row: Event) -> bool:
    """Whether an effect was done and has begun a process of its own."""
    return row.kind == "effect-acked" and not is_idle(row) and "pid" in (decoded(row).get("result") or {})


def may_be_late(row: Event) -> bool:
    """Whether a restart that is settled may bring its process up later, and nobody would know that it did: of what a command
    or a unit starts no process is known, and of what was interrupted nothing is."""
    result = decoded(row).get("result") or {}
    return row.kind == "effect-unknown" or (not is_idle(row) and ("exit" in result or "unit" in result))


def cause_name(words: str) -> str:
    """By what one cause is known from others, whatever differs from one time to the next."""
    return VARYING.sub("N", NOT_BY.sub("", words))


def without_id(words: str) -> str:
    """What was seen of a process, whichever it was."""
    return re.sub(r"^process \d+ ", "it ", words)


def occurrences(row: Event) -> int:
    """How often what this row tells of has happened: repeated errors and lines of a storm are only counted."""
    if '"count"' not in row.data and '"repeats"' not in row.data:
        return 1
    data = decoded(row)
    return max(1, int(data.get("count", 1))) + int(data.get("repeats", 0))


def outcome_of(row: Event) -> str:
    """What became of an effect: the kind that settled it, or that a notice reached nobody."""
    is_only_logged = row.kind == "effect-acked" and (decoded(row).get("result") or {}).get("only")
    return ONLY_LOGGED if is_only_logged else row.kind.removeprefix("effect-")


def evidence(row: Event) -> str:
    """What was seen, in words."""
    if row.data == REDACTED:
        return "(redacted)"
    if is_damaged(row.data):
        return f"(damaged: {damage_in(row.data)})"
    data = decoded(row)
    return str(data.get("evidence") or data.get("message") or (data.get("lines") or [""])[0])


def is_unexplained(died: Event) -> bool:
    """Whether nobody knows how this death came."""
    return bool(decoded(died).get("unexplained")) or UNEXPLAINED.search(evidence(died)) is not None


def printed(row: Event) -> str:
    """What the process that died had printed last; these are not Pulse's words."""
    if '"printed"' not in row.data or is_damaged(row.data):
        return ""
    return str(decoded(row).get("printed", ""))


def said(row: Event) -> str:
    """Why an effect ended as it did, what it freed, or what of an earlier life goes on; nothing if it was just done."""
    data = decoded(row)
    if row.kind == "effect-acked":
        result = data.get("result") or {}
        beside = pids if isinstance(pids := result.get("beside"), list) else ()
        if known := [str(pid) for pid in beside if isinstance(pid, int) and 0 < pid < 1 << 22]:
            return f"beside {listed(known, 3)} of an earlier life, which SIGKILL did not end"
        return freed_text(result.get("bytes"))
    return str(data.get("error") or data.get("why") or "")
