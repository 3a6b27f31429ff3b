"""How the log of a while is told as stories: what belongs together, and when it is over."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from pulse_adapters.memory.clock import VirtualClock
from pulse_core.app.incidents import IncidentFold, incident
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    DaemonStarted,
    Effect,
    ErrorReported,
    LogMatched,
    ProcessDied,
    ProcessUp,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.model.stored_data import damage_marker
from tests.events import SECOND, event
from upulse_cli.views.incidents import lines

MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
LOG = "/srv/ok.log"
LINES = LogMatched(severity="error", lines=("ERROR no answer",), count=1)
COUNTED = LogMatched(severity="error", lines=(), count=900)
STARTED = DaemonStarted(version="1", pid=1)


def told(now: int, *said: tuple[int, Payload, str]) -> Sequence[dict[str, Any]]:
    chronicle = IncidentFold()
    for seq, (at, payload, subject) in enumerate(said, 1):
        chronicle.take(event(seq, payload, subject, at=at))
    return [one.spelled() for one in chronicle.at(Moment(10**15 + now, "boot", now))]


def error(at: int) -> tuple[int, Payload, str]:
    return at, ErrorReported(message="no such directory", repeats=1), "metrics"


def test_an_error_that_does_not_come_again_is_over_after_an_hour() -> None:
    (fresh,) = told(HOUR, error(SECOND))
    assert (fresh["ended"], fresh["faded"]) == (None, False)
    assert next(lines(fresh)).endswith("ongoing")
    (old,) = told(2 * HOUR, error(SECOND))
    assert old["faded"]
    assert ", not seen again since " in next(lines(old))


def test_an_error_that_comes_again_and_again_goes_on_or_is_another_one() -> None:
    (one,) = told(HOUR, error(0), error(MINUTE))
    assert (one["times"], one["ended"]) == (2, None)
    first, second = told(HOUR, error(0), error(40 * MINUTE))
    assert (first["faded"], second["ended"]) == (True, None)


def test_a_daemon_that_starts_forgets_the_errors_of_the_last_one_until_they_come_again() -> None:
    restart = (MINUTE, STARTED, "")
    assert told(2 * MINUTE, error(0), restart)[0]["faded"]
    (again,) = told(3 * MINUTE, error(0), restart, error(2 * MINUTE))
    assert (again["times"], again["ended"], again["faded"]) == (2, None, False)


def test_a_log_is_quiet_when_its_notice_is_called_off_or_after_an_hour_without_lines() -> None:
    key = f"notify:log:{LOG}"
    noticed = (SECOND, Effect(action="notify", key=key, params={"title": "x"}), key)
    over = (9 * MINUTE, Effect(action="notify", key=key, params={"title": "y", "over": True}), key)
    (one,) = told(30 * MINUTE, (0, LINES, LOG), noticed)
    assert one["ended"] is None
    (one,) = told(30 * MINUTE, (0, LINES, LOG), noticed, over)
    assert (one["lasted_ms"], one["faded"]) == (540_000, False)
    (one,) = told(2 * HOUR, (0, LINES, LOG), noticed)
    assert one["faded"]


def test_a_storm_is_told_by_a_line_of_it_though_most_are_only_counted() -> None:
    (one,) = told(MINUTE, (0, LINES, LOG), (SECOND, COUNTED, LOG), (2 * SECOND, COUNTED, LOG))
    assert (one["evidence"], one["times"]) == ("ERROR no answer", 3)


def test_evidence_that_was_altered_on_the_disk_is_said_to_be() -> None:
    chronicle = IncidentFold()
    row = event(1, LINES, LOG)
    chronicle.take(row._replace(data=damage_marker("it was altered")))
    assert chronicle.all[0].spelled()["evidence"] == "(damaged: it was altered)"


def test_what_has_an_end_is_one_story_until_then() -> None:
    network = [
        (0, ConditionRaised(evidence="nothing answers", state="down"), "network"),
        (HOUR, ConditionRaised(evidence="names do not resolve", state="dns-only"), "network"),
    ]
    (one,) = told(9 * HOUR, *network)
    assert (one["times"], one["ended"], one["evidence"]) == (2, None, "names do not resolve")
    (one,) = told(9 * HOUR, *network, (2 * HOUR, ConditionCleared(evidence="all answer"), "network"))
    assert one["lasted_ms"] == 7_200_000
    died = ProcessDied(pid=5, evidence="gone", healthy=True)
    up = ProcessUp(pid=6, started=1, evidence="there")
    first, second = told(9 * HOUR, (0, died, "web"), (SECOND, up, "web"), (HOUR, died, "web"))
    assert (first["lasted_ms"], second["ended"]) == (1_000, None)


class CountedRows:
    """A log, and how many of its rows were read one after the other."""

    def __init__(self, *said: tuple[int, Payload, str]) -> None:
        self.rows = [
            event(seq, payload, subject, at=at) for seq, (at, payload, subject) in enumerate(said, 1)
        ]
        self.read = 0

    def event(self, name: str) -> Event:
        return next(row for row in self.rows if row.id == name)

    def events(self, query: Any) -> Iterator[Event]:
        for row in self.rows[query.since_seq :]:
            self.read += 1
            yield row


def read_incident(log: CountedRows, row: int) -> dict[str, Any]:
    """The incident that began with this row."""

    class Context:
        clock, events = VirtualClock(lambda: 0.0), lambda: nullcontext(log)

    context: Any = Context
    return incident(context, log.rows[row].id).spelled()


DIED = ProcessDied(pid=7, healthy=True, evidence="killed")
UP = ProcessUp(pid=8, started=1, evidence="alive")


def test_one_incident_is_read_to_its_end_and_no_further() -> None:
    later = [(3 * HOUR + place * SECOND, LINES, LOG) for place in range(1_000)]
    log = CountedRows((0, DIED, "web"), (SECOND, UP, "web"), (2 * HOUR, LINES, LOG), *later)
    one = read_incident(log, 0)
    assert (one["about"], one["lasted_ms"], log.read) == ("process", 1_000, 3)
    key = "restart-process:web"
    wish = (SECOND, Effect(action="restart-process", key=key, params={"process": "web"}), key)
    log = CountedRows((0, DIED, "web"), wish, (2 * SECOND, UP, "web"), *later)
    read_incident(log, 0)
    assert log.read == 1_003, "what was done about it has not ended yet"


def test_what_began_no_incident_is_said_without_reading_on() -> None:
    log = CountedRows((0, UP, "web"), (SECOND, DIED, "web"), *[(2 * SECOND, LINES, LOG)] * 100)
    with pytest.raises(UnknownName, match="no incident"):
        read_incident(log, 0)
    assert log.read == 1
