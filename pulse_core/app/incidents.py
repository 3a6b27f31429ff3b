"""What happened, what was done, and did it help: the log of a while as a few stories, one an episode."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment, iso
from pulse_core.model.names import SETTLING
from pulse_core.model.stored_data import damage_in, is_damaged
from pulse_core.ports.readers import EventQuery, EventReader

BEGINS = {"process-died": "process", "condition-raised": "condition", "log-matched": "log", "error": "error"}
ENDS = {"process-up": "process", "condition-cleared": "condition"}
ABOUTS = ("process", "condition", "log", "error")
STARTED = "daemon-started"
KINDS = (*BEGINS, *ENDS, *SETTLING, "effect", STARTED)
QUIET_US = 300_000_000
"""What comes again within five minutes belongs to the same story."""

FADING = frozenset({"error", "log"})
"""What nothing ends: it is over when it has not come again for long enough."""

FADED_US = 3_600_000_000


@dataclass
class Incident:
    """One episode of one thing: when it began and ended, what was seen last, and what was done about it.

    id: of the event that began it; faded: nobody said that it is over, but it did not come again.
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

    def is_history(self, now: Moment) -> bool:
        """Whether nothing that happens now belongs to it any more."""
        settled = all(one.outcomes.total() == one.times for one in self.measures.values())
        return settled and (self.over or self.about in FADING) and now.since(self.last) > FADED_US

    def spelled(self) -> dict[str, Any]:
        """The story as JSON values; `helped`: None while nothing was done but telling people."""
        acted = any(measure.action != "notify" for measure in self.measures.values())
        return {
            "id": self.id,
            "about": self.about,
            "subject": self.subject,
            "began": iso(self.began.at),
            "ended": iso(self.last.at) if self.over else None,
            "lasted_ms": self.last.since(self.began) / 1000 if self.over else None,
            "faded": self.faded,
            "times": self.times,
            "evidence": evidence(self.seen),
            "printed": printed(self.seen),
            "measures": [measure.spelled() for measure in self.measures.values()],
            "helped": self.over if acted else None,
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
        self._under_way: dict[str, IncidentMeasure] = {}

    def take(self, row: Event) -> None:
        """Take one event, in the order of the log."""
        if row.kind == "effect":
            self._wished(row)
        elif measure := self._under_way.pop(row.subject, None):
            measure.outcomes[row.kind.removeprefix("effect-")] += 1
            measure.end = row
        elif about := BEGINS.get(row.kind):
            self._began(about, row)
        elif row.kind == STARTED:
            for one in self._open.values():
                if one.about == "error":  # a daemon that starts says anew what is still wrong
                    self._fade(one)
        elif (about := ENDS.get(row.kind)) and (story := self._open.get((about, row.subject))):
            story.last, story.over = row.moment, True

    def at(self, now: Moment) -> Sequence[Incident]:
        """The incidents, after the last event: what did not come again for long is over."""
        for story in self._open.values():
            if story.about in FADING and now.since(story.last) > FADED_US:
                self._fade(story)
        return self.all

    def _began(self, about: str, row: Event) -> None:
        now = row.moment
        before = self._open.get((about, row.subject))
        # The same episode goes on if this came soon, or nothing has ended what has an end.
        stands = before and not before.over and about not in FADING
        if before and (stands or now.since(before.last) <= QUIET_US):
            before.times, before.last, before.over, before.faded = before.times + 1, now, False, False
            if about != "log" or evidence(row):  # of a storm of lines, most are only counted
                before.seen = row
            return
        if before:
            self._fade(before)
        story = Incident(row.id, about, row.subject, now, now, row)
        self._open[about, row.subject] = story
        self.all.append(story)

    @staticmethod
    def _fade(story: Incident) -> None:
        story.faded = story.faded or not story.over
        story.over = True

    def _wished(self, row: Event) -> None:
        data = decoded(row)
        if story := self._concerned(row.subject, data.get("params", {})):
            action = str(data.get("action", ""))
            measure = story.measures.setdefault(row.subject, IncidentMeasure(action, row.subject))
            measure.effect, measure.reason = row.id, str(data.get("reason", ""))
            measure.times += 1
            self._under_way[row.id] = measure
            if story.about in FADING and data.get("params", {}).get("over"):
                story.last, story.over, story.faded = row.moment, True, False

    def _concerned(self, key: str, params: Mapping[str, Any]) -> Incident | None:
        """The incident that an effect answers: by its params if they say so, else by what its key ends with."""
        named = (("condition", params.get("for_condition")), ("process", params.get("process")))
        for about, subject in named:
            if subject and (story := self._open.get((about, str(subject)))):
                return story
        ends = [key.split(":", cuts)[-1] for cuts in range(1, key.count(":") + 1)]
        found = (self._open.get((about, end)) for end in ends for about in ABOUTS)
        return next((story for story in found if story), None)


def decoded(row: Event) -> Mapping[str, Any]:
    """The row's data; empty where it was redacted."""
    return json.loads(row.data) or {}


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
    """The incidents since then (UTC microseconds), oldest first, as they stand now."""
    with home.events() as log:
        return incidents_in(log, events_since(log, since), home.clock.now())


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


def incidents_in(log: EventReader, wanted: EventQuery, now: Moment) -> Sequence[Incident]:
    """The incidents in these rows, oldest first, as they stand now."""
    fold = IncidentFold()
    for row in log.events(wanted._replace(kinds=KINDS)):
        fold.take(row)
    return fold.at(now)


def events_since(log: EventReader, at: int | None) -> EventQuery:
    """The rows from a time on, found without reading those before it."""
    if at is None:
        return EventQuery()
    before = log.last_before(at)
    return EventQuery(since_seq=before.seq if before else 0)
