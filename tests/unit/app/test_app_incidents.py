"""How the log of a while is told as stories: what belongs together, and when it is over."""

from collections.abc import Sequence
from typing import Any

from pulse_core.app.incidents import IncidentFold
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
    assert next(lines(fresh)).endswith("still so")
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
