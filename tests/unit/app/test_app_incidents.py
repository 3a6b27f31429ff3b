"""How the log of a while is told as stories: what belongs together, and when it is over."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse_adapters.memory.clock import VirtualClock
from pulse_core.app.incidents import incident, incidents, incidents_in, told_since
from pulse_core.composition import OWN_NAMES
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Checkpoint, Event, Head
from pulse_core.model.json_answers import IncidentJson
from pulse_core.model.kinds import (
    AnswerDelayed,
    ConditionCleared,
    ConditionRaised,
    DaemonStarted,
    DaemonStopped,
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectFailed,
    EffectUnknown,
    EngineDisabled,
    EngineLoaded,
    EngineRolledBack,
    ErrorReported,
    LogMatched,
    LogRestored,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    RestartDelayed,
    RuleQuarantined,
    SafeModeEntered,
    SafeModeLeft,
    SettingsLoaded,
)
from pulse_core.model.moment import Moment, iso
from pulse_core.model.payload import Payload
from pulse_core.model.stored_data import REDACTED, damage_marker
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.incident import MOST_MEASURES, OTHER_MEASURES, OTHER_NOTICES
from pulse_core.projections.incidents import (
    MOST,
    NAME,
    SLACK,
    VERSION,
    IncidentFold,
    Incidents,
    after,
    dump,
    load,
)
from tests.events import SECOND, event
from upulse_cli.views.incidents import lines, tree

MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
LOG = "/srv/ok.log"
LINES = LogMatched(severity="error", lines=("ERROR no answer",), count=1)
COUNTED = LogMatched(severity="error", lines=(), count=900)
STARTED = DaemonStarted(version="1", pid=1)
STOPPED = DaemonStopped(pid=1, reason="asked to stop")


def told(now: int, *said: tuple[int, Payload, str]) -> Sequence[IncidentJson]:
    chronicle = IncidentFold()
    for seq, (at, payload, subject) in enumerate(said, 1):
        chronicle.take(event(seq, payload, subject, at=at))
    return [one.spelled() for one in chronicle.state.at(Moment(10**15 + now, "boot", now))]


def error(at: int) -> tuple[int, Payload, str]:
    return at, ErrorReported(message="no such directory"), "metrics"


def rolled(letter: str) -> EngineRolledBack:
    return EngineRolledBack(rejected=letter * 40, why="it raised")


def test_an_error_that_does_not_come_again_is_over_after_twenty_minutes() -> None:
    (fresh,) = told(20 * MINUTE, error(SECOND))
    assert (fresh["ended"], fresh["faded"]) == (None, False)
    assert next(lines(fresh)).endswith(": no such directory")
    (often,) = told(20 * MINUTE, error(SECOND), error(MINUTE))
    assert re.search(r", 2 times, last at \d\d", next(lines(often)))
    (old,) = told(21 * MINUTE, error(SECOND))
    assert old["faded"]
    assert ", not seen again since " in next(lines(old))


@pytest.mark.parametrize(
    ("key", "about", "said"),
    [
        (
            "notify:network:quality", "network",
            [(SECOND, ConditionRaised(evidence="one does not answer", state="degraded"), "network")],
        ),
        ("notify:daemon", "pulse", [(0, STARTED, ""), (SECOND, STARTED, "")]),
        (
            "notify:safe-mode", "safe mode",
            [(SECOND, SafeModeEntered(crashes=3, left_out=("plugins",)), ""), (2 * SECOND, error(0)[1], "metrics")],
        ),
        ("notify:engine:rolled-back", "b" * 12, [(0, rolled("a"), "c"), (SECOND, rolled("b"), "c")]),
        ("notify:engine:quarantine", "slow", [(0, RuleQuarantined(commit="c", why="raises"), "slow")]),
    ],
)  # fmt: skip
def test_a_notice_belongs_to_the_incident_that_it_tells_of(
    key: str, about: str, said: list[tuple[int, Payload, str]]
) -> None:
    notice = (3 * SECOND, Effect(action="notify", key=key, reason="look"), key)
    assert [one["subject"] for one in told(MINUTE, *said, notice) if one["measures"]] == [about]


def test_a_process_may_have_the_name_of_a_condition() -> None:
    def wish(action: str, key: str, **params: str) -> tuple[int, Payload, str]:
        return 3 * SECOND, Effect(action=action, key=key, reason="look", params=params), key

    raised = ConditionRaised(evidence="nothing answers", state="down")
    for said in (
        [(0, DIED, "network"), (0, raised, "network")],
        [(0, raised, "network"), (0, DIED, "network")],
    ):
        restart = wish("restart-process", "restart-process:network", process="network")
        notices = [wish("notify", key) for key in ("notify:flapping:network", "notify:network")]
        known = {
            one["about"]: [what["key"] for what in one["measures"]]
            for one in told(MINUTE, *said, restart, *notices)
        }
        assert known == {
            "process": ["restart-process:network", "notify:flapping:network"],
            "condition": ["notify:network"],
        }


def test_an_error_that_comes_again_and_again_goes_on_or_is_another_one() -> None:
    (one,) = told(30 * MINUTE, error(0), error(18 * MINUTE))
    assert (one["times"], one["ended"]) == (2, None)
    first, second = told(HOUR, error(0), error(40 * MINUTE))
    assert (first["faded"], second["ended"]) == (True, None)


def test_a_daemon_that_starts_forgets_the_errors_of_the_last_one_until_they_come_again() -> None:
    restart = (MINUTE, STARTED, "")
    assert told(2 * MINUTE, error(0), restart)[0]["faded"]
    (again,) = told(3 * MINUTE, error(0), restart, error(2 * MINUTE))
    assert (again["times"], again["ended"], again["faded"]) == (2, None, False)


def test_a_log_is_quiet_when_its_notice_is_called_off_or_after_ten_minutes_without_lines() -> None:
    key = f"notify:log:{LOG}"
    noticed = (SECOND, Effect(action="notify", key=key, params={"title": "x"}), key)
    over = (9 * MINUTE, Effect(action="notify", key=key, params={"title": "y", "over": True}), key)
    (one,) = told(10 * MINUTE, (0, LINES, LOG), noticed)
    assert one["ended"] is None
    (one,) = told(30 * MINUTE, (0, LINES, LOG), noticed, over)
    assert (one["lasted_ms"], one["faded"]) == (540_000, False)
    (one,) = told(11 * MINUTE, (0, LINES, LOG))
    assert one["faded"], "lines that a check counts are told of by no notice"


def test_a_storm_is_told_by_a_line_of_it_though_most_are_only_counted() -> None:
    (one,) = told(MINUTE, (0, LINES, LOG), (SECOND, COUNTED, LOG), (2 * SECOND, COUNTED, LOG))
    assert re.search(r", one of 1,801 lines, the last by ", next(lines(one)))
    assert (one["evidence"], one["times"]) == ("ERROR no answer", 1_801)


def test_evidence_that_was_altered_on_the_disk_is_said_to_be() -> None:
    chronicle = IncidentFold()
    row = event(1, LINES, LOG)
    chronicle.take(row._replace(data=damage_marker("it was altered")))
    assert chronicle.state.at(row.moment)[0].spelled()["evidence"] == "(damaged: it was altered)"


def test_what_has_an_end_is_one_story_until_then() -> None:
    network = [
        (0, ConditionRaised(evidence="nothing answers", state="down"), "network"),
        (HOUR, ConditionRaised(evidence="names do not resolve", state="dns-only"), "network"),
    ]
    (one,) = told(9 * HOUR, *network)
    assert (one["times"], one["ended"], one["evidence"]) == (1, None, "names do not resolve")
    assert next(lines(one)) == "condition network: names do not resolve, ongoing"
    assert [cause["evidence"] for cause in one["causes"]] == ["nothing answers", "names do not resolve"]
    (one,) = told(9 * HOUR, *network, (2 * HOUR, ConditionCleared(evidence="all answer"), "network"))
    assert one["lasted_ms"] == 7_200_000
    died = ProcessDied(pid=5, evidence="gone", healthy=True)
    up = ProcessUp(pid=6, started=1, evidence="there")
    first, second = told(9 * HOUR, (0, died, "web"), (SECOND, up, "web"), (HOUR, died, "web"))
    assert (first["lasted_ms"], second["ended"]) == (1_000, None)


class RecordedRows:
    """A log that can be read."""

    def __init__(self, rows: Sequence[Event]) -> None:
        self.rows = rows

    def event(self, name: str) -> Event:
        return next(row for row in self.rows if row.id == name)

    def events(self, query: Any, limit: int | None = None) -> Iterator[Event]:
        return iter([one for one in self.rows[query.since_seq :] if one.kind in query.kinds][:limit])

    def chain_at(self, seq: int) -> bytes:
        return b""


def context_of(rows: Sequence[Event], kept: Mapping[str, Checkpoint] = MappingProxyType({})) -> Any:
    """A home with this log and these checkpoints."""
    log, clock = RecordedRows(rows), VirtualClock(lambda: 0.0)
    return SimpleNamespace(clock=clock, events=lambda: nullcontext(log), checkpoints=lambda: kept)


DIED = ProcessDied(pid=7, healthy=True, evidence="killed")
UP = ProcessUp(pid=8, started=1, evidence="alive")
PERSON = "ada"
OWN = ProcessDied(pid=7, healthy=True, evidence="killed by SIGTERM", intended=True)
NEVER = ProcessDied(pid=None, healthy=True, evidence="not running yet", intended=True)
RESTART = Effect(
    action="restart-process", key="restart-process:web", params={"process": "web"}, reason="dead"
)


def log_of(*said: tuple[int, Payload, str] | tuple[int, Payload, str, str]) -> list[Event]:
    """Rows; a fourth part is the actor. The subject of an effect's outcome is the row of the effect, as `#3`."""
    rows = list[Event]()
    for seq, (at, payload, subject, *actor) in enumerate(said, 1):
        about = rows[int(subject[1:]) - 1].id if subject.startswith("#") else subject
        rows.append(event(seq, payload, about, at=at)._replace(actor=actor[0] if actor else "pulse"))
    return rows


def told_of(*said: tuple[int, Payload, str] | tuple[int, Payload, str, str]) -> Sequence[IncidentJson]:
    fold = IncidentFold(own=OWN_NAMES)
    for row in log_of(*said):
        fold.take(row)
    return [one.spelled() for one in fold.state.at(Moment(10**15 + MINUTE, "boot", MINUTE))]


STOP, START, AGAIN = ProcessStopRequested(expires_us=HOUR), ProcessStartRequested(), ProcessRestartRequested()
ACKED, FAILED = EffectAcked(took_us=1, result={"pid": 8}), EffectFailed(error="no such program")
WISH = (2, RESTART, "restart-process:web")
SAID: Sequence[tuple[Payload, str]] = (
    (DIED, "web"), (OWN, "web"), (UP, "web"), (STOP, "web"), (AGAIN, "web"), (RESTART, RESTART.key), (ACKED, "#1"),
    (FAILED, "#1"), (LINES, LOG), (ErrorReported(message="no", repeats=2), "rule:mine"), (STARTED, ""),
    (ConditionRaised(evidence="full", state="high"), "disk:/"), (ConditionCleared(evidence="room"), "disk:/"),
    (SettingsLoaded(digest="e" * 64, processes=("other",)), ""),
    (RuleQuarantined(commit="c" * 40, why="it errs"), "mine"), (EngineLoaded(rules=("other",)), "d" * 40),
)  # fmt: skip
"""What may happen to incidents, in any order."""


@pytest.mark.parametrize(
    "said",
    [
        ((0, NEVER, "web"), WISH, (3, ACKED, "#2"), (4, UP, "web")),
        ((0, AGAIN, "web", PERSON), WISH, (3, OWN, "web"), (4, ACKED, "#2"), (5, UP, "web")),
        ((0, STOP, "web", PERSON), (1, OWN, "web"), (2, START, "web", PERSON), WISH, (3, ACKED, "#4"), (4, UP, "web")),
        ((0, EngineRolledBack(rejected="a" * 40, why="w", asked_by=PERSON), "b"),),
        ((0, STARTED, ""), (1, DaemonStopped(pid=1, reason="asked to stop"), ""), (2, STARTED, "")),
    ],
    ids=["first start", "restart by a person", "stop and start by a person", "rollback by a person", "daemon's stop"],
)  # fmt: skip
def test_what_is_intended_is_no_incident(said: Any) -> None:
    assert told_of(*said) == []


@pytest.mark.parametrize("began", [NEVER, OWN])
def test_a_start_that_fails_is_an_incident_from_where_it_began(began: ProcessDied) -> None:
    rows = ((0, began, "web"), WISH, (3, FAILED, "#2"), (4, RESTART, "restart-process:web"))
    (one,) = told_of(*rows)
    assert (one["evidence"], one["ended"], one["helped"]) == (
        "its start failed: no such program",
        None,
        False,
    )
    assert one["measures"][0]["times"] == 2, "the start that failed is one of them"
    (one,) = told_of(*rows, (5, ACKED, "#4"), (6, UP, "web"))
    assert (one["lasted_ms"], one["helped"]) == (0.006, True)
    (one,) = told_of((0, began, "web"), WISH, (3, ACKED, "#2"), (4, DIED, "web"))
    assert one["evidence"] == "killed"


@pytest.mark.parametrize(
    "said",
    [
        ((0, STOP, "web", PERSON), (1, OWN, "web")),
        ((0, DIED, "web"), (1, STOP, "web", PERSON)),
        ((0, DIED, "web"), (1, STOP, "web", PERSON), (2, OWN, "web")),
    ],
    ids=["while it was up", "while it was down", "while it did not serve"],
)
def test_a_start_at_the_end_of_a_stop_that_fails_is_an_incident_from_that_end_on(said: Any) -> None:
    """Nobody wanted it up before."""
    end = said[0][0] + 10 if said[0][1] is STOP else said[1][0] + 10
    stop = ProcessStopRequested(expires_us=10)
    rows = tuple((at, stop if one is STOP else one, *more) for at, one, *more in said)
    rows = (*rows, (end, RESTART, "restart-process:web"))
    (one,) = told_of(*rows, (end + 3, FAILED, f"#{len(rows)}"), (end + 9, UP, "web"))[-1:]
    assert (one["evidence"], one["lasted_ms"]) == ("its start failed: no such program", 0.009)
    well = told_of(*rows, (end + 3, ACKED, f"#{len(rows)}"), (end + 5, UP, "web"))
    assert all(one["ended_by"] == "ada wanted it down" for one in well)


@pytest.mark.parametrize("death", [NEVER, OWN, DIED], ids=["never started", "stopped", "died and stopped"])
def test_a_start_of_an_inactive_unit_that_fails_is_an_incident_from_its_request_on(
    death: ProcessDied,
) -> None:
    inactive = ((0, death, "web"), (1, ProcessStopped(evidence="unit is inactive", expires_us=HOUR), "web"))
    start = (5, START, "web", PERSON)
    *ended, one = told_of(*inactive, start, (6, RESTART, "restart-process:web"), (9, FAILED, "#4"))
    assert (one["evidence"], one["ended"]) == ("its start failed: no such program", None)
    assert one["began"] == iso(10**15 + 5)
    assert [before["ended_by"] for before in ended] == ["unit is inactive"] * (death is DIED)
    *_, one = told_of(*inactive, (HOUR + 2, RESTART, "restart-process:web"), (HOUR + 9, FAILED, "#3"))
    assert one["began"] == iso(10**15 + HOUR + 1), "the intent has ended"
    well = told_of(*inactive, start, (6, RESTART, "restart-process:web"), (9, ACKED, "#4"), (9, UP, "web"))
    assert all(one["ended"] for one in well)


def test_a_start_at_the_end_of_a_stop_is_no_incident_though_one_before_the_stop_had_failed() -> None:
    over = "web is to be started: the stop that ada requested is over"
    start = RESTART.model_copy(update={"survival": True, "reason": over})
    (one,) = told_of(
        (0, DIED, "web"), WISH, (3, ACKED, "#2"), (4, DIED, "web"), (5, STOP, "web", PERSON),
        (6, start, start.key), (7, ACKED, "#6"), (8, UP, "web"),
    )  # fmt: skip
    assert (one["times"], one["ended_by"]) == (2, "ada wanted it down")
    late = (
        (0, AGAIN, "web", PERSON), (1, RESTART, RESTART.key), (2, OWN, "web"), (3, ACKED, "#2"),
        (5, STOP, "web", PERSON), (7, start, start.key), (8, ACKED, "#6"), (9, UP, "web"),
    )  # fmt: skip
    assert told_of(*late) == [], (
        "what was restarted by request, and had not come up by the stop, did not fail"
    )


def test_what_healed_by_itself_or_by_a_person_was_not_helped() -> None:
    died = (0, DIED, "web")
    (one,) = told_of(died, WISH, (3, FAILED, "#2"), (4, UP, "web"))
    assert one["helped"] is False
    assert [*lines(one)][-1] == "recovered, not by what Pulse did"
    already = EffectAcked(took_us=1, result={"already": True})
    (one,) = told_of(died, WISH, (3, already, "#2"), (4, UP, "web"))
    assert one["helped"] is False
    (one,) = told_of(died, (1, STOP, "web", PERSON))
    assert (one["ended_by"], one["requests"]) == ("ada wanted it down", ["ada requested a stop"])
    (one,) = told_of(died, WISH, (3, ACKED, "#2"), (4, UP, "web"))
    assert one["helped"]


@pytest.mark.parametrize(
    "ended",
    [
        EffectFailed(error="'sh' took longer than 55 s and was ended", result={"exit": None}),
        EffectFailed(error="'sh' ended with 1: it failed", result={"exit": 1}),
        EffectUnknown(why="interrupted, and nobody can tell whether it happened"),
    ],
)
def test_a_command_that_failed_may_have_brought_its_process_up_all_the_same(ended: Payload) -> None:
    died, up, over = (0, DIED, "web"), (9, UP, "web"), (10, ended, "#2")
    for rows in ((died, WISH, (3, ended, "#2"), up), (died, WISH, up, over)):
        (one,) = told_of(*rows)
        assert (one["helped"], [*lines(one)][-1]) == (None, LATE)
    asked = (4, AGAIN, "web", PERSON)
    (one,) = told_of(died, WISH, (3, ended, "#2"), asked, up)
    assert [*lines(one)][-1] == "recovered after a request"
    again = ((4, DIED, "web"), (5, RESTART, RESTART.key), (6, FAILED, "#5"))
    (one,) = told_of(died, WISH, (3, ended, "#2"), *again, up)
    assert [*lines(one)][-1] == "recovered, not by what Pulse did", "what had come up has died since"


def test_what_was_well_after_a_request_and_came_again_recovered_without_one() -> None:
    failed, later = ((0, DIED, "web"), WISH, (3, FAILED, "#2")), ((6, DIED, "web"), (7, UP, "web"))
    asked = (*failed, (4, AGAIN, "web", PERSON), (5, UP, "web"))
    (one,) = told_of(*asked)
    assert [*lines(one)][-1] == "recovered after a request"
    (one,) = told_of(*asked, *later)
    assert (one["times"], one["requests"]) == (2, ["ada requested a restart"])
    assert [*lines(one)][-1] == "recovered, not by what Pulse did"
    (one,) = told_of(*failed, (4, UP, "web"), (5, STOP, "web", PERSON), *later)
    assert [*lines(one)][-2:] == ["ada requested a stop", "recovered, not by what Pulse did"]


@pytest.mark.parametrize("about", ["process", "condition"])
@pytest.mark.parametrize(("digest", "helped"), [("d", True), ("e", False)])
def test_what_is_well_once_other_settings_are_loaded_is_not_said_to_be_so_by_what_pulse_did_before(
    about: str, digest: str, helped: bool
) -> None:
    def loaded(letter: str) -> SettingsLoaded:
        return SettingsLoaded(digest=letter * 64, processes=("web",))

    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "usage:web:memory"}})
    began, over, name = (
        (DIED, UP, "web")
        if about == "process"
        else (ConditionRaised(evidence="much"), ConditionCleared(evidence="less"), "usage:web:memory")
    )
    (one,) = told_of(
        (0, loaded("d"), ""), (1, began, name), (2, restart, RESTART.key), (3, ACKED, "#3"),
        (4, loaded(digest), ""), (5, over, name),
    )  # fmt: skip
    assert (one["helped"], one["requests"]) == (helped, [] if helped else ["new settings were loaded"])
    assert helped or list(lines(one))[-1].startswith("recovered after a request")


def test_a_condition_that_nothing_was_done_about_says_that_other_settings_were_loaded() -> None:
    """They may have raised its bound: nothing else says that what was seen is as it was."""
    name = "check:size"
    (one,) = told_of(
        (0, SettingsLoaded(digest="d" * 64), ""), (1, ConditionRaised(evidence="it has 365 B (good: under 100)"), name),
        (2, SettingsLoaded(digest="e" * 64), ""), (3, ConditionCleared(evidence="it has 365 B (good: under 1000)"), name),
    )  # fmt: skip
    assert [*lines(one)][1:] == ["new settings were loaded"]


LATE = "recovered; it is not known by what, since what Pulse ran to restart it may have brought it up late"


def test_what_comes_up_once_another_restart_was_held_back_came_up_late_by_the_one_before() -> None:
    """Of a command's restart nobody knows: it names no process."""
    held = RestartDelayed(held_by="its own budget of restarts", since=10**15 + 5, held_us=SECOND, lasts=True)
    command = EffectAcked(took_us=1, result={"exit": 0})
    rows = ((0, DIED, "web"), WISH, (3, command, "#2"), (4, held, "web"))
    (one,) = told_of(*rows, (9, UP, "web"))
    assert (one["helped"], [*lines(one)][-1]) == (None, LATE)
    late = ((0, DIED, "web"), WISH, (3, ACKED, "#2"), (4, held, "web"))
    assert [*lines(told_of(*late, (9, UP, "web"))[0])][-1] == "recovered"
    short = RestartDelayed(held_by=held.held_by, since=held.since, held_us=4)  # which is told once it is over
    (one,) = told_of(*late[:-1], (9, UP, "web"), (10, short, "web"))
    assert [*lines(one)][-1] == "recovered"
    (one,) = told_of(*late, (5, DIED.model_copy(update={"pid": 8}), "web"), (9, UP, "web"))
    assert [*lines(one)][-1] == "recovered, not by what Pulse did", "what it had started has died"
    (one,) = told_of(*rows, (6, RESTART, RESTART.key), (7, ACKED, "#5"), (9, UP, "web"))
    assert one["helped"]
    before = held.model_copy(update={"since": 10**15})
    (one,) = told_of((0, DIED, "web"), WISH, (3, ACKED, "#2"), (4, before, "web"), (9, UP, "web"))
    assert one["helped"], "what it was held back for before that restart says nothing about it"


def test_a_restart_that_was_asked_for_before_the_death_was_seen_is_told_in_its_incident() -> None:
    """As where both were while no daemon ran: the next one restarts it at once, and looks."""
    unseen = DIED.model_copy(update={"last_seen": 10**15})
    rows = (
        (1, AGAIN, "web", PERSON),
        (2, RESTART, RESTART.key),
        (3, unseen, "web"),
        (4, ACKED, "#2"),
        (5, UP, "web"),
    )
    (one,) = told_of(*rows)
    assert (one["requests"], one["measures"][0]["outcomes"], one["helped"]) == ([], {"acked": 1}, True)
    fold, (asked, wish, *later) = IncidentFold(own=OWN_NAMES), log_of(*rows)
    for row in (asked, wish._replace(cause=asked.id), *later):
        fold.take(row)
    (told,) = fold.state.all.values()
    assert told.requests == ["ada requested a restart"]
    assert [*lines(told.spelled())][-1] == "recovered after a request"
    assert load(dump(fold.state)) == fold.state


FULL = ConditionRaised(evidence="/x is full", state="high")
CLEAN = Effect(action="clean-paths", key="clean-paths:/x", params={"for_condition": "disk:/x"}, reason="full")
FREE = ConditionCleared(evidence="/x has room")


def freed(size: int) -> EffectAcked:
    return EffectAcked(took_us=1, result={"bytes": size})


@pytest.mark.parametrize(
    ("helped", "steps"),
    [
        (True, [(2, CLEAN, CLEAN.key), (3, freed(9), "#2"), (4, FREE, "disk:/x")]),
        (False, [(2, CLEAN, CLEAN.key), (3, freed(0), "#2"), (4, FREE, "disk:/x")]),
        (True, [(2, CLEAN, CLEAN.key), (3, FREE, "disk:/x"), (4, freed(9), "#2")]),
        (False, [(2, CLEAN, CLEAN.key), (3, freed(9), "#2"), (HOUR, FREE, "disk:/x")]),
        (False, [(2, CLEAN, CLEAN.key, PERSON), (3, freed(9), "#2"), (4, FREE, "disk:/x")]),
        (
            False,
            [
                (2, CLEAN, CLEAN.key),
                (3, freed(9), "#2"),
                (4, CLEAN, CLEAN.key, PERSON),
                (5, FREE, "disk:/x"),
            ],
        ),
    ],
    ids=[
        "freed",
        "freed nothing",
        "sensed before it was done",
        "freed long before",
        "by a person",
        "and then by a person",
    ],
)
def test_a_measure_helped_if_it_was_begun_before_the_end_and_changed_something_and_no_person_did(
    helped: bool, steps: list[Any]
) -> None:
    (one,) = told_of((0, FULL, "disk:/x"), *steps)
    assert (one["ended"] is not None, one["helped"]) == (True, helped)


def test_a_restart_beside_what_hangs_in_the_kernel_says_so() -> None:
    wish = Effect(action="restart-process", key="restart-process:w", params={"process": "w"}, survival=True)
    acked = EffectAcked(took_us=1, result={"pid": 8, "started": 9, "beside": [7]})
    (one,) = told_of((0, DIED, "w"), (1, wish, wish.key), (2, acked, "#2"), (3, UP, "w"))
    assert one["measures"][0]["said"] == "beside 7 of an earlier life, which SIGKILL did not end"


@pytest.mark.parametrize(
    "odd", ["12 MB", [], {}, -1, 1 << 5_000, [1 << 5_000, "7"]],
    ids=["text", "list", "object", "negative", "huge", "of odd ones"],
)  # fmt: skip
def test_whatever_an_executor_of_an_author_says_of_its_bytes_the_incidents_are_told(odd: Any) -> None:
    mend = Effect(action="mend", key="mend:disk:/x", params={"for_condition": "disk:/x"}, reason="full")
    acked = EffectAcked(took_us=1, result={"bytes": odd, "beside": odd})
    (one,) = told_of((0, FULL, "disk:/x"), (1, mend, mend.key), (2, acked, "#2"), (3, FREE, "disk:/x"))
    assert [(each["outcomes"], each["said"]) for each in one["measures"]] == [({"acked": 1}, "")]


def test_a_task_that_was_made_of_a_condition_is_not_what_ended_it() -> None:
    key = "create-task:condition:disk:/x"
    task = Effect(action="create-task", key=key, params={"project": "ops"}, reason="full", because="disk:/x")
    task = task.model_copy(update={"params": {"project": "ops", "for_condition": "disk:/x"}})
    (one,) = told_of((0, FULL, "disk:/x"), (1, task, key), (2, ACKED, "#2"), (3, FREE, "disk:/x"))
    assert (one["ended"] is not None, one["helped"]) == (True, None)
    assert [*lines(one)][-1] == "create-task acked: full"


def test_what_was_seen_and_is_redacted_is_said_to_be() -> None:
    def redacted(*said: tuple[int, Payload, str]) -> Sequence[IncidentJson]:
        """The incidents of these, of which all but the last are redacted."""
        rows = [event(seq, payload, subject, at=at) for seq, (at, payload, subject) in enumerate(said, 1)]
        chronicle = IncidentFold()
        for row in rows:
            chronicle.take(row if row is rows[-1] else row._replace(data=REDACTED))
        return [one.spelled() for one in chronicle.state.at(rows[-1].moment)]

    (one,) = redacted((0, FULL, "disk:/x"), (3, FREE, "disk:/x"))
    assert next(lines(one)) == "condition disk:/x: (redacted), resolved after 3 us"
    (one,) = redacted((0, DIED, "web"), (1, RESTART, RESTART.key), (3, UP, "web"))
    assert next(lines(one)) == "process web: (redacted), resolved after 3 us"
    assert [measure["action"] for measure in one["measures"]] == ["restart-process"]
    (one,) = redacted((0, SafeModeEntered(crashes=3, left_out=("engine",)), ""), (3, UP, "web"))
    assert next(lines(one)) == "daemon safe mode: (redacted), ongoing"


def test_what_a_person_requested_of_another_process_is_part_of_a_check_where_pulse_may_not_have_mended_it() -> (
    None
):
    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "check:page"}})
    failing = ConditionRaised(evidence="it answers 500", state="failing")
    rows = ((0, failing, "check:page"), (1, restart, restart.key), (2, ACKED, "#2"))
    over = (SECOND, ConditionCleared(evidence="it answers"), "check:page")
    (one,) = told_of(*rows, over)
    assert [*lines(one)][-1] == "recovered"
    stop = STOP.model_copy(update={"why": "disks"})
    unknown = "recovered after a request; whether that helped is not known"
    (one,) = told_of(*rows, (4, AGAIN, "other", PERSON), over)
    assert [*lines(one)][-2:] == ["ada requested a restart of other", unknown]
    (one,) = told_of(*rows, (3, stop, "web", PERSON), (4, AGAIN, "other", PERSON), over)
    assert [*lines(one)][-2:] == ["ada requested a stop of web: disks", unknown]
    (one,) = told_of(rows[0], (4, AGAIN, "other", PERSON), over)
    assert len([*lines(one)]) == 1, "Pulse claims nothing"
    for name, told in (("disk:/x", 0), ("usage:web:memory", 0), ("usage:other:memory", 1)):
        (one,) = told_of((0, FULL, name), (1, AGAIN, "other", PERSON), (2, FREE, name))
        assert len(one["requests"]) == told
    (one,) = told_of(*rows, (3, stop, "web", PERSON), (4, restart, restart.key), (5, ACKED, "#5"), over)
    assert [*lines(one)][-1] == "recovered"


def test_of_what_was_requested_of_other_processes_a_check_that_fails_on_tells_the_newest_alone() -> None:
    failing = ConditionRaised(evidence="it answers 500", state="failing")
    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "check:page"}})
    (one,) = told_of(
        (0, failing, "check:page"), (1, restart, restart.key), (2, ACKED, "#2"),
        (3, AGAIN, "other", PERSON), (4, STOP, "db", PERSON), (5, AGAIN, "db", PERSON),
    )  # fmt: skip
    assert one["requests"] == ["ada requested a restart of db"]


def test_a_start_of_what_is_up_does_nothing_and_is_part_of_no_incident() -> None:
    start, failing = ProcessStartRequested(), ConditionRaised(evidence="it answers 500", state="failing")
    up = ((0, DIED, "web"), (1, UP, "web"))
    (one,) = told_of(*up, (2, start, "web", PERSON), (3, DIED, "web"))
    assert one["requests"] == []
    _, check = told_of(*up, (2, failing, "check:page"), (3, start, "web", PERSON))
    assert check["requests"] == []
    (one,) = told_of(*up[:1], (1, start, "web", PERSON), (2, UP, "web"))
    assert one["requests"] == ["ada requested a start"]
    (one,) = told_of(*up, (2, STOP, "web", PERSON), (3, start, "web", PERSON), (4, DIED, "web"))
    assert one["requests"] == ["ada requested a stop", "ada requested a start"], "it was to be stopped"


def test_what_was_seen_wrong_after_a_restart_is_not_said_to_have_been_mended_by_it() -> None:
    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "usage:web:memory"}})
    high = ConditionRaised(evidence="web takes 300 MiB", state="high")
    rows = ((0, high, "usage:web:memory"), (SECOND, restart, restart.key), (2 * SECOND, ACKED, "#2"))

    def end(seen_us: int) -> IncidentJson:
        over = ConditionCleared(evidence="web takes 10 MiB", wrong=10**15 + seen_us)
        return told_of(*rows, (9 * SECOND, over, "usage:web:memory"))[0]

    assert [*lines(end(SECOND))][-1] == "recovered"
    assert end(SECOND)["doubt"] == ""
    late = end(4 * SECOND)
    assert (late["helped"], late["wrong_ms"], late["unsure_ms"]) == (None, 9_000, 0)
    assert [*lines(late)][-1] == "recovered; it is not known by what, since it was seen wrong after that, too"


@pytest.mark.parametrize(("wrong", "least_ms"), [(0, 2_000), (30 * SECOND, 30_000), (55 * SECOND, 60_000)])
def test_looks_that_counted_for_nothing_since_it_was_restarted_say_nothing_of_how_long_it_was_wrong(
    wrong: int, least_ms: int
) -> None:
    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "check:page"}})
    failing = ConditionRaised(evidence="it answers 500", state="failing")
    over = ConditionCleared(evidence="it answers", wrong=wrong and 10**15 + wrong)
    (one,) = told_of(
        (0, failing, "check:page"), (1, restart, restart.key), (2 * SECOND, ACKED, "#2"),
        (60 * SECOND, over, "check:page"),
    )  # fmt: skip
    assert (one["lasted_ms"], one["wrong_ms"], one["unsure_ms"]) == (60_000, least_ms, 60_000 - least_ms)
    (one,) = told_of(
        (0, failing, "check:page"), (1, restart, restart.key), (2 * SECOND, ACKED, "#2"),
        (9 * SECOND, AGAIN, "other", PERSON), (60 * SECOND, over, "check:page"),
    )  # fmt: skip
    assert (one["wrong_ms"], one["helped"]) == (least_ms, False)


def test_a_restart_of_the_time_before_makes_nothing_unknown_of_a_condition_that_came_again() -> None:
    restart = RESTART.model_copy(update={"params": {"process": "web", "for_condition": "check:page"}})
    failing = ConditionRaised(evidence="it answers 500", state="failing")
    seen = ConditionCleared(evidence="it answers", wrong=10**15 + SECOND)
    (one,) = told_of(
        (0, failing, "check:page"), (SECOND, restart, restart.key), (2 * SECOND, ACKED, "#2"),
        (3 * SECOND, seen, "check:page"), (60 * SECOND, failing, "check:page"),
        (120 * SECOND, ConditionCleared(evidence="it answers"), "check:page"),
    )  # fmt: skip
    assert (one["times"], one["wrong_ms"], one["unsure_ms"]) == (2, 63_000, 0)


@pytest.mark.parametrize(("wrong", "least_ms"), [(0, 1_800_000), (1_795, 1_800_000), (30, 30_000)])
def test_how_long_it_was_wrong_is_not_known_for_the_time_in_which_nobody_looked(
    wrong: int, least_ms: int
) -> None:
    """The daemon was stopped by SIGSTOP, or the machine suspended: what stood before is well at the first look after it."""
    over = ConditionCleared(evidence="it is 40% full", wrong=wrong and 10**15 + wrong * SECOND)
    (one,) = told_of((0, FULL, "disk:/x"), (30 * MINUTE, over, "disk:/x"))
    assert (one["lasted_ms"], one["wrong_ms"], one["unsure_ms"]) == (
        1_800_000,
        least_ms,
        1_800_000 - least_ms,
    )
    told = next(lines(one)).endswith(", wrong for 30 s to 30 min of it")
    assert told is (wrong == 30)


def test_of_an_effect_that_a_person_added_it_is_said_by_whom() -> None:
    added = Effect(action="restart-process", key="mine", params={"process": "web"})
    (one,) = told_of((0, DIED, "web"), (1, added, "mine", PERSON), (2, ACKED, "#2"), (3, UP, "web"))
    assert [*lines(one)][1:] == ["restart-process acked: by ada", "recovered, not by what Pulse did"]


def test_of_a_restart_that_answers_a_condition_it_is_said_of_which_process() -> None:
    params = {"process": "web", "for_condition": "check:queue"}
    wish = Effect(action="restart-process", key="restart-process:web", params=params, reason="letters wait")
    raised = ConditionRaised(evidence="letters wait", state="failing")
    (one,) = told_of((0, raised, "check:queue"), (1, wish, wish.key), (2, ACKED, "#2"))
    assert "restart-process:web acked: letters wait" in lines(one)


def test_the_heading_says_that_an_error_of_before_is_among_what_may_not_be_over() -> None:
    told = told_of((0, ErrorReported(message="no"), "rule:mine"))
    assert str(tree(told, "in the last 30s", 10**15).label).startswith(
        "1 incident in the last 30s, times in "
    )
    label = str(tree(told, "in the last 30s", 10**15 + SECOND).label)
    assert label.startswith(
        "1 incident in the last 30s, or last seen before and not known to be over, times in "
    )


def test_a_line_of_before_is_not_told_as_of_now() -> None:
    fold = IncidentFold()
    for row in log_of((0, LINES, LOG), (0, ErrorReported(message="no"), "rule:mine")):
        fold.take(row)
    now = Moment(10**15 + 2 * MINUTE, "boot", 2 * MINUTE)
    assert [one.about for one in told_since(fold.state, 10**15 + MINUTE, now)] == ["error"]
    assert [one.about for one in told_since(fold.state, 10**15, now)] == ["log", "error"]


def test_an_incident_of_a_condition_begins_when_it_was_first_seen_not_when_that_was_enough() -> None:
    late = FULL.model_copy(update={"failing": 10**15 + SECOND})
    (one,) = told_of((5 * SECOND, late, "disk:/x"), (7 * SECOND, FREE, "disk:/x"))
    assert (one["began"], one["lasted_ms"], one["wrong_ms"]) == (iso(10**15 + SECOND), 6_000, 6_000)


def test_they_are_told_by_when_they_began_which_may_be_before_others_that_were_found_earlier() -> None:
    late = FULL.model_copy(update={"failing": 10**15 + SECOND})
    rows = ((2 * SECOND, DIED, "web"), (5 * SECOND, late, "disk:/x"))
    fold = IncidentFold(own=OWN_NAMES)
    for row in log_of(*rows):
        fold.take(row)
    told = told_since(fold.state, None, Moment(10**15 + MINUTE, "boot", MINUTE))
    assert [one.subject for one in told] == ["disk:/x", "web"]


def test_what_may_have_become_well_while_no_daemon_ran_is_not_known_to_be_helped() -> None:
    begun = ((0, STARTED, ""), (1, FULL, "disk:/x"), (2, CLEAN, CLEAN.key), (3, freed(9), "#3"))
    tried = (*begun, (4, STOPPED, ""), (MINUTE, STARTED, ""))
    (one,) = told_of(*tried, (MINUTE + 1, FREE, "disk:/x"))
    assert one["helped"] is None
    assert [*lines(one)][-1] == "recovered; it is not known by what, since no daemon ran for a while"
    (one,) = told_of(*tried)
    assert [*lines(one)][-1] == "not recovered yet"
    again = ((MINUTE + 1, CLEAN, CLEAN.key), (MINUTE + 2, freed(9), "#7"))
    (one,) = told_of(*tried, *again, (MINUTE + 3, FREE, "disk:/x"))
    assert one["helped"]
    (one,) = told_of(*tried, (HOUR, FREE, "disk:/x"))
    assert one["helped"] is False
    (one,) = told_of(*begun, (4, STOPPED, ""), (SECOND, STARTED, ""), (2 * SECOND, FREE, "disk:/x"))
    assert (one["helped"], one["unsure_ms"]) == (True, 0)  # it was only restarted
    told = ((0, FULL, "disk:/x"), (1, STARTED, ""), (2, FREE, "disk:/x"))
    assert [one["helped"] for one in told_of(*told)] == [None]


@pytest.mark.parametrize("is_stopped", [False, True], ids=["it was killed", "it was stopped"])
def test_how_long_a_condition_stood_while_no_daemon_ran_is_told_with_its_bounds(is_stopped: bool) -> None:
    stopped = ((2 * SECOND, STOPPED, ""),) if is_stopped else ()
    lasting = STARTED.model_copy(update={"last_seen": 0 if is_stopped else 10**15 + 2 * SECOND})
    rows = ((0, STARTED, ""), (SECOND, FULL, "disk:/x"), *stopped, (HOUR, lasting, ""))
    told = told_of(*rows, (HOUR + SECOND, FREE, "disk:/x"))
    assert next(lines(told[0])).endswith(", resolved after 1 h, wrong for 1 s to 1 h of it")
    assert (told[0]["wrong_ms"], told[0]["unsure_ms"]) == (1_000, 3_599_000)
    held = AnswerDelayed(held_by="a pause of ada", since=10**15 + HOUR, held_us=SECOND, lasts=True)
    own = CLEAN.model_copy(update={"survival": True})
    for seen, subject in ((held, "disk:/x"), (own, own.key)):  # which begin when it was looked at
        told = told_of(*rows, (HOUR + SECOND, seen, subject), (HOUR + 10 * SECOND, FREE, "disk:/x"))
        assert (told[0]["wrong_ms"], told[0]["unsure_ms"]) == (11_000, 3_598_000)
    told = told_of(*rows, (2 * HOUR, FREE, "disk:/x"))  # an hour after the start it still stood
    assert (told[0]["wrong_ms"], told[0]["unsure_ms"]) == (3_601_000, 3_598_000)


def test_a_process_that_somebody_started_while_no_daemon_ran_was_down_for_at_most_so_long() -> None:
    down = ((0, STARTED, ""), (SECOND, DIED, "web"), (2 * SECOND, STOPPED, ""), (HOUR, STARTED, ""))
    (one,) = told_of(*down, (HOUR + SECOND, UP, "web"))
    assert next(lines(one)).endswith(", resolved after 1 h, wrong for 1 s to 1 h of it")
    restart = RESTART.model_copy(update={"survival": True})
    (one,) = told_of(*down, (HOUR + SECOND, restart, restart.key), (HOUR + 2 * SECOND, UP, "web"))
    assert next(lines(one)).endswith(", resolved after 60 min")  # it was down when Pulse looked
    assert one["unsure_ms"] == 0


@pytest.mark.parametrize(
    ("result", "outcome", "words"),
    [
        ({"only": "logged: [notify] has no urls"}, "only logged", ""),
        ({"sent_to": ["json://***"]}, "acked", ""),
        ({"bytes": 0}, "acked", "freed nothing"),
        ({"bytes": 1 << 20}, "acked", "freed 1.0 MiB"),
    ],
)
def test_a_measure_says_what_it_changed_and_a_notice_whether_it_reached_anybody(
    result: IncidentJson, outcome: str, words: str
) -> None:
    key = "notify:resource:disk:/x"
    (found,) = told_of(
        (0, FULL, "disk:/x"),
        (1, Effect(action="notify", key=key, params={"title": "x"}), key),
        (2, EffectAcked(took_us=1, result=result), "#2"),
    )
    (measure,) = found["measures"]
    assert (measure["outcomes"], measure["said"]) == ({outcome: 1}, words)


def test_a_restart_that_a_person_requests_is_no_help_of_pulse() -> None:
    rows = ((0, DIED, "web"), WISH, (3, FAILED, "#2"), (4, AGAIN, "web", PERSON))
    (one,) = told_of(*rows, (5, RESTART, RESTART.key), (6, ACKED, "#5"), (7, UP, "web"))
    assert (one["helped"], one["requests"]) == (False, ["ada requested a restart"])
    assert any(line.startswith("restart-process 1 failed, 1 acked: ") for line in lines(one))
    (one,) = told_of(*rows, (5, DIED, "web"), (6, RESTART, RESTART.key), (7, ACKED, "#6"), (8, UP, "web"))
    assert one["helped"]


OWN_RESTART = Effect(
    action="restart-process",
    key="cache:web",
    params={"process": "web"},
    reason="the cache is full",
    rule="mine",
)


@pytest.mark.parametrize(
    "steps",
    [
        [(2, OWN, "web"), (3, ACKED, "#1")],
        [(2, ACKED, "#1"), (3, OWN, "web")],
        [(2, DIED, "other"), (3, ACKED, "#1")],
    ],
)
def test_a_restart_by_a_users_rule_that_failed_is_told_in_the_incident_that_it_began(
    steps: list[Any],
) -> None:
    failed = [(1, OWN_RESTART, "cache:web"), *steps, (4, DIED, "web")]
    *_, one = told_of(*failed, (5, RESTART, RESTART.key), (6, ACKED, "#5"), (7, UP, "web"))
    assert [(each["reason"], each["outcomes"]) for each in one["measures"]] == [
        ("the cache is full", {"acked": 1}),
        ("dead", {"acked": 1}),
    ]
    assert one["helped"]
    (*_, one) = told_of(*failed)
    assert one["helped"] is False, "what began it is no help"


def test_a_restart_that_a_person_requested_and_that_failed_is_told_in_the_incident_that_it_began() -> None:
    asked, *later = log_of(
        (0, AGAIN, "web", PERSON), WISH, (3, OWN, "web"), (4, ACKED, "#2"), (5, DIED, "web")
    )
    fold = IncidentFold()
    for row in (asked, later[0]._replace(cause=asked.id), *later[1:]):
        fold.take(row)
    (one,) = fold.state.all.values()
    assert (one.requests, one.by_person) == (["ada requested a restart"], False)


def test_a_restart_that_ends_what_has_come_up_meanwhile_is_part_of_the_incident_that_it_answers() -> None:
    rows = ((1, DIED, "web"), WISH, (3, UP, "web"), (4, OWN, "web"), (5, ACKED, "#2"), (9, UP, "web"))
    (one,) = told_of(*rows)
    assert (one["times"], one["lasted_ms"], one["wrong_ms"], one["helped"]) == (2, 0.008, 0.007, True)


def test_a_restart_that_a_person_requested_soon_after_an_incident_and_that_failed_is_told_once_in_it() -> (
    None
):
    rows = log_of(
        (0, DIED, "web"), (1, UP, "web"), (2, AGAIN, "web", PERSON), WISH, (3, OWN, "web"), (4, ACKED, "#4"),
        (5, DIED, "web"),
    )  # fmt: skip
    fold = IncidentFold()
    for row in rows:
        fold.take(row._replace(cause=rows[2].id) if row.subject == RESTART.key else row)
    (one,) = fold.state.all.values()
    assert (one.requests, one.by_person) == (["ada requested a restart"], False)


@pytest.mark.parametrize("is_wished_first", [True, False])
@pytest.mark.parametrize("began", [NEVER, OWN], ids=["first start", "restart by a person"])
def test_a_start_that_lives_but_does_not_come_up_is_an_incident_from_where_it_began(
    began: ProcessDied, is_wished_first: bool
) -> None:
    probe = "its probe failed 20 times since its start: http://web/ answers 500"
    again = RESTART.model_copy(update={"reason": f"web is dead after 1 restart: {probe}", "survival": True})
    down = [(1, RESTART, RESTART.key), (1, began, "web")]
    asked, *rows = log_of(
        (0, AGAIN, "web", PERSON), *(down if is_wished_first else down[::-1]),
        (3, ACKED, "#2" if is_wished_first else "#3"), (9, again, again.key),
        (10, ACKED, "#5"), (20, again, again.key), (21, ACKED, "#7"), (22, UP, "web"),
    )  # fmt: skip
    fold = IncidentFold()
    for row in (asked, *rows):
        fold.take(
            row._replace(cause=asked.id) if row.subject == RESTART.key and row.at == 10**15 + 1 else row
        )
    (one,) = (one.spelled() for one in fold.state.all.values())
    assert (one["evidence"], one["began"], one["lasted_ms"]) == (probe, iso(10**15 + 1), 0.021)
    assert (one["measures"][0]["outcomes"], one["requests"], one["helped"]) == (
        {"acked": 3},
        ["ada requested a restart"],
        True,
    )


@pytest.mark.parametrize(
    "between", [(4, UP, "web"), (4, SettingsLoaded(digest="e" * 64, processes=("other",)), "")]
)
def test_a_restart_that_came_up_is_none_of_a_later_death(between: tuple[int, Payload, str]) -> None:
    (one,) = told_of(
        (1, OWN_RESTART, "cache:web"), (2, OWN, "web"), (3, ACKED, "#1"), between, (5, DIED, "web")
    )
    assert one["measures"] == []
    already = EffectAcked(took_us=1, result={"already": True})
    (one,) = told_of((1, OWN_RESTART, "cache:web"), (2, already, "#1"), (5, DIED, "web"))
    assert one["measures"] == []


@pytest.mark.parametrize(
    ("about", "said", "number"),
    [(LOG, LINES, 1), (LOG, LINES, 3), ("metrics", ErrorReported(message="no such directory"), 2)],
)
def test_what_a_rule_requests_for_a_line_or_an_error_that_it_names_is_in_its_incident(
    about: str, said: Payload, number: int
) -> None:
    rows = log_of(*((turn, said, about) for turn in range(number)), (9, OWN_RESTART, "cache:web"))
    for cause in rows[:-1]:
        fold = IncidentFold()
        for row in (*rows[:-1], rows[-1]._replace(cause=cause.id)):
            fold.take(row)
        (one,) = fold.state.at(rows[-1].moment)
        assert ([*one.measures], one.helped) == (["cache:web"], None)
        assert load(dump(fold.state)) == fold.state


def test_a_restart_that_is_known_to_be_up_before_it_is_acked_helped() -> None:
    (one,) = told_of((0, DIED, "web"), WISH, (3, UP, "web"), (4, ACKED, "#2"))
    assert one["helped"]


def test_what_holds_back_an_answer_to_a_condition_is_told_with_its_time_also_while_it_lasts() -> None:
    reason = "/x is full; held back until now: Pulse was paused by ada"
    clean = Effect(action="clean-paths", key="clean-paths:disk:/x", params={}, reason=reason)
    lasts = AnswerDelayed(held_by="a pause of ada", since=10**15, held_us=2 * SECOND, lasts=True)
    rows = ((0, FULL, "disk:/x"), (2 * SECOND, lasts, "disk:/x"))
    (one,) = told_of(*rows)
    assert (one["delays"], one["held"]) == ([], {"by": "a pause of ada", "since": iso(10**15)})
    assert [*lines(one)][1].endswith(" by a pause of ada")
    over = AnswerDelayed(held_by="a pause of ada", since=10**15, held_us=50 * SECOND)
    (one,) = told_of(*rows, (50 * SECOND, over, "disk:/x"), (52 * SECOND, clean, clean.key))
    assert (one["delays"], one["held"]) == (["held back for 50 s by a pause of ada"], None)
    assert one["delays"][0] in lines(one)


def test_what_held_something_back_when_the_daemon_was_killed_is_told_up_to_its_last_sign_of_life() -> None:
    started = DaemonStarted(pid=1, version="1")
    again = DaemonStarted(pid=2, version="1", last_seen=10**15 + 30 * SECOND)
    lasts = RestartDelayed(held_by="a pause of ada", since=10**15 + SECOND, held_us=SECOND, lasts=True)
    ended = lasts.model_copy(update={"since": 10**15 + 40 * SECOND, "held_us": 20 * SECOND, "lasts": False})
    rows = ((0, started, ""), (SECOND, DIED, "web"), (2 * SECOND, lasts, "web"), (40 * SECOND, again, ""))
    one = next(told for told in told_of(*rows) if told["subject"] == "web")
    missing = "held back for 10 s by a missing daemon"
    assert (one["delays"], one["held"]) == (["held back for 29 s by a pause of ada", missing], None)
    one = next(told for told in told_of(*rows, (60 * SECOND, ended, "web")) if told["subject"] == "web")
    assert one["delays"] == ["held back for 49 s by a pause of ada", missing]


def test_what_held_a_restart_back_is_told_up_to_the_stop_that_a_person_requested() -> None:
    lasts = RestartDelayed(held_by="its own budget", since=10**15 + SECOND, held_us=SECOND, lasts=True)
    ended = lasts.model_copy(update={"held_us": 11 * SECOND, "lasts": False})
    stopped = ((12 * SECOND, STOP, "web", PERSON), (12 * SECOND, ended, "web"), (HOUR, STOPPED, ""))
    begun = ((0, STARTED, ""), (SECOND, DIED, "web"), (2 * SECOND, lasts, "web"))
    one = told_of(*begun, *stopped)[0]
    assert one["delays"] == ["held back for 11 s by its own budget"]
    start = ((MINUTE, ProcessStartRequested(), "web", PERSON), (MINUTE, RESTART, RESTART.key))
    failed = told_of(*begun, *stopped[:2], *start, (MINUTE + 1, EffectFailed(error="no program"), "#7"))[1]
    assert (failed["began"], failed["delays"]) == (iso(10**15 + MINUTE), [])  # it was held back before that


def test_each_cause_that_held_a_restart_back_is_told_with_its_time_also_if_it_healed_by_itself() -> None:
    def delayed(by: str, began: int, ended: int) -> tuple[int, Payload, str]:
        since, held_us = 10**15 + began * SECOND, (ended - began) * SECOND
        return ended * SECOND, RestartDelayed(held_by=by, since=since, held_us=held_us), "web"

    held = RESTART.model_copy(update={"reason": "web is dead; held back until now: Pulse was paused by ada"})
    rows = (
        (0, DIED, "web"),
        delayed("a pause of ada", 0, 40),
        delayed("the budget of 2 a minute", 40, 50),
        delayed("a pause of ada", 50, 52),
    )
    delays = ["held back for 42 s by a pause of ada", "held back for 10 s by the budget of 2 a minute"]
    (one,) = told_of(*rows, (52 * SECOND, held, held.key), (53 * SECOND, UP, "web"))
    assert one["delays"] == delays
    assert delays[1] in lines(one)
    (one,) = told_of(rows[0], (52 * SECOND, UP, "web"), *rows[1:])
    assert (one["delays"], one["ended"] is None) == (delays, False)
    (one,) = told_of(rows[0], (SECOND, UP, "web"), delayed("a pause of ada", 2, 9))
    assert one["delays"] == []


def test_a_death_while_no_daemon_ran_is_told_with_the_bounds_of_its_time() -> None:
    unseen = DIED.model_copy(update={"last_seen": 10**15 + 20 * SECOND})
    (one,) = told_of((HOUR, unseen, "web"), (HOUR + SECOND, UP, "web"))
    assert datetime.fromisoformat(one["began"]) - datetime.fromisoformat(one["began_after"] or "") == (
        timedelta(minutes=59, seconds=40)
    )
    assert (one["lasted_ms"], one["wrong_ms"], one["unsure_ms"]) == (1_000, 1_000, 3_580_000)
    assert next(lines(one)).endswith(", resolved after 1 s to 59.7 min")
    again = DIED.model_copy(update={"last_seen": 10**15 + 20 * SECOND})
    (one,) = told_of((0, DIED, "web"), (SECOND, UP, "web"), (MINUTE, again, "web"), (2 * MINUTE, UP, "web"))
    assert (one["began_after"], one["unsure_ms"]) == (None, 40_000)
    assert next(lines(one)).endswith(", resolved after 2 min, wrong for 61 s to 101 s of it")


def test_a_restart_that_a_person_wants_later_is_none_of_what_was_done_about_it() -> None:
    rows = ((0, DIED, "web"), WISH, (3, ACKED, "#2"), (4, UP, "web"), (5, AGAIN, "web", PERSON))
    (one,) = told_of(*rows, (6, RESTART, "restart-process:web"), (7, OWN, "web"), (8, UP, "web"))
    assert (one["times"], one["measures"][0]["times"], one["lasted_ms"]) == (1, 1, 0.004)


def test_the_death_of_the_daemon_a_rollback_a_quarantine_and_safe_mode_are_incidents() -> None:
    dead, safe, back, quarantined = told_of(
        (0, STARTED, ""),
        (5, UP, "web"),
        (9, STARTED, ""),
        (9, SafeModeEntered(crashes=3, left_out=("plugins",)), ""),
        (10, EngineRolledBack(rejected="a" * 40, why="3 errors"), "b" * 40),
        (11, RuleQuarantined(commit="c" * 40, why="it errs"), "mine"),
        (12, SafeModeLeft(), "", PERSON),
        (13, EngineLoaded(rules=("other",)), "d" * 40),
    )
    assert dead["evidence"] == "the daemon ended without a stop: it was killed, or it crashed"
    assert (dead["lasted_ms"], dead["wrong_ms"], dead["unsure_ms"]) == (0, 0, 0.004)
    assert next(lines(dead)).rpartition(" it crashed, ")[2].startswith("last sign of life ")
    assert (safe["evidence"], safe["lasted_ms"]) == (
        "3 starts in a row ended within a minute; left out: plugins",
        0.003,
    )
    assert next(lines(back)) == "engine aaaaaaaaaaaa: aaaaaaaaaaaa was rolled back: 3 errors"
    assert (quarantined["subject"], quarantined["ended_by"]) == ("mine", "other rules were loaded")


def test_a_daemon_whose_end_is_not_in_a_log_that_was_put_back_did_not_die() -> None:
    def restored(salvaged: int, lost: int) -> int:
        back = LogRestored(source="/b", made_at=10**15 + 5, rows=2, salvaged=salvaged, lost=lost)
        return len(told_of((0, STARTED, ""), (5, UP, "web"), (30, back, ""), (40, STARTED, "")))

    assert restored(0, 0) == 0, "a backup of a daemon that ran, on another machine"
    assert restored(3, 2) == 0
    assert restored(3, 0) == 1, "all that it recorded is there, and no stop"


def test_several_deaths_of_the_daemon_lasted_at_most_as_long_as_it_was_not_seen() -> None:
    again = DaemonStarted(version="1", pid=2)
    (one,) = told_of(
        (0, STARTED, ""), (10 * SECOND, again, ""), (11 * SECOND, UP, "web"), (31 * SECOND, again, "")
    )
    assert next(lines(one)).endswith(", 2 times, resolved after 21 s to 31 s, wrong for at most 30 s of it")


def test_safe_mode_that_leaves_out_more_is_one_incident_of_one_cause() -> None:
    less, more = (
        SafeModeEntered(crashes=crashes, left_out=("plugins", "engine")[: crashes - 2]) for crashes in (3, 4)
    )
    (one,) = told_of((0, less, ""), (1, more, ""))
    assert next(lines(one)) == (
        "daemon safe mode: 4 starts in a row ended within a minute; left out: plugins, engine, ongoing"
    )


@pytest.mark.parametrize(
    ("evidence", "is_said"),
    [
        ("process 7 is not there", True),
        ("process 7 died", False),
        ("process 7 is gone", False),
    ],  # as logs of before
)
def test_a_death_of_which_nothing_else_is_known_is_no_cause_of_its_own(evidence: str, is_said: bool) -> None:
    unknown = DIED.model_copy(update={"evidence": evidence, "unexplained": is_said})
    killed = DIED.model_copy(update={"evidence": "process 8 was killed by SIGKILL"})
    (one,) = told_of((0, unknown, "web"), (1, UP, "web"), (2, killed, "web"))
    assert next(lines(one)) == (
        "process web: 2 times, 1 of them of unknown cause, the last: process 8 was killed by SIGKILL, ongoing"
    )


def test_a_notice_that_one_of_two_addresses_has_is_none_of_which_nobody_was_told() -> None:
    notice = Effect(action="notify", key="notify:flapping:web", reason="it stays down")
    partly = EffectAttemptFailed(attempt=1, error="two: no", retry_us=1, result={"sent_to": ["one"]})
    (one,) = told_of(
        (0, DIED, "web"),
        (1, notice, notice.key),
        (2, partly, "#2"),
        (3, EffectCancelled(why="there is a newer one"), "#2"),
    )
    assert one["measures"][0]["outcomes"] == {"sent-to-some": 1}
    words = "notify sent to some of its addresses only (there is a newer one): it stays down"
    assert words in list(lines(one))


def test_a_process_of_which_people_are_told_that_it_is_down_is_an_incident_though_it_never_ran() -> None:
    absent = DIED.model_copy(update={"evidence": "it does not run yet", "intended": True})
    key, words = "notify:flapping:web", "web: not started (max = 0)"
    rows = ((0, absent, "web"), (1, Effect(action="notify", key=key, reason=words), key))
    (one,) = told_of(*rows)
    assert (one["evidence"], one["ended"], [measure["key"] for measure in one["measures"]]) == (
        "not started (max = 0)",
        None,
        [key],
    )
    (one,) = told_of(*rows, (SECOND, UP, "web"))
    assert one["lasted_ms"] == 1_000
    assert told_of(*rows[:1], (SECOND, UP, "web")) == []


def test_errors_of_a_commit_end_when_that_is_rolled_back() -> None:
    fault = ErrorReported(message="KeyError: 'x'", commit="a" * 40)
    raised, _, others = told_of(
        (0, fault, "rule:bad"),
        (1, EngineRolledBack(rejected="a" * 40, to="b" * 40, why="3 errors", asked_by="pulse"), "c" * 40),
        (2, fault.model_copy(update={"commit": "d" * 40}), "rule:other"),
        (3, fault.model_copy(update={"repeats": 2}), "rule:bad"),
    )
    assert raised["times"] == 4
    assert (raised["ended_by"], raised["lasted_ms"]) == ("its commit was rolled back", 0.001)
    assert others["ended"] is None


@pytest.mark.parametrize(
    ("last_seen", "unsure_ms"),
    [(0, 90_000), (10**15 + 70 * SECOND, 20_000), (1, 90_000), (10**15 + HOUR, 0)],
    ids=[
        "not known",
        "later than its last event",
        "before it",
        "after the start, by a clock that was set back",
    ],
)
def test_a_daemon_has_died_at_most_since_it_was_last_seen(last_seen: int, unsure_ms: int) -> None:
    again = DaemonStarted(version="1", pid=2, last_seen=last_seen)
    (one,) = told_of((-9, STARTED, ""), (0, UP, "web"), (90 * SECOND, again, ""))
    assert (one["lasted_ms"], one["wrong_ms"], one["unsure_ms"]) == (0, 0, unsure_ms)
    assert (one["began_after"] is None) == (unsure_ms == 0)


def test_errors_of_a_rule_end_when_it_is_gone() -> None:
    mine = (0, ErrorReported(message="ZeroDivisionError", repeats=4), "rule:mine")
    own = (0, ErrorReported(message="odd"), "rule:process_watchdog")
    (one,) = told_of(mine, (1, EngineLoaded(rules=("mine",)), "a" * 40))
    assert (one["ended"], one["times"]) == (None, 5)
    one, other = told_of(mine, own, (1, EngineLoaded(rules=("other",)), "a" * 40))
    assert (one["ended_by"], other["ended"]) == ("the rule is gone", None)
    (one,) = told_of(mine, (1, EngineDisabled(), "", PERSON))
    assert one["ended_by"] == "the rule is gone"


def test_what_is_no_longer_in_the_settings_is_not_ongoing() -> None:
    fewer = SettingsLoaded(digest="d" * 64, processes=("web",))
    died, other = (0, DIED, "old"), (1, DIED, "web")
    gone, left = told_of(died, other, (2, fewer, ""))
    assert (gone["ended_by"], gone["lasted_ms"], left["ended"]) == ("no longer guarded", 0.002, None)
    (gone,) = told_of(
        (0, STARTED, ""), died, (1, DaemonStopped(pid=1, reason="x"), ""), (2, STARTED, ""), (3, fewer, "")
    )
    assert gone["ended_by"] == "no longer guarded"
    cleared = ConditionCleared(evidence="it is not checked any more")
    (check,) = told_of((0, FULL, "check:x"), (1, cleared, "check:x"))
    assert [*lines(check)][-1] == "it is not checked any more"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(SAID) - 1), max_size=40), st.integers(0, 40))
def test_a_fold_of_incidents_resumes_from_its_checkpoint(places: list[int], cut: int) -> None:
    wish = (0, RESTART, RESTART.key)
    rows = log_of(wish, *((20 * SECOND * turn, *SAID[place]) for turn, place in enumerate(places, 1)))
    early = after(Incidents(), rows[:cut])
    whole = after(Incidents(), rows)
    assert after(load(dump(early)), rows[cut:]) == whole
    assert load(dump(whole)) == whole


def test_of_very_many_incidents_the_newest_that_are_over_are_kept_and_all_that_are_not() -> None:
    standing = (0, ConditionRaised(evidence="full", state="high"), "disk:/")
    many = (
        (HOUR * turn + second, payload, f"web{turn}")
        for turn in range(MOST + 2 * SLACK)
        for second, payload in ((0, DIED), (SECOND, UP))
    )
    fold = IncidentFold()
    for row in log_of(standing, *many):
        fold.take(row)
    told = [one.spelled() for one in fold.state.at(row.moment)]
    assert MOST < len(told) <= MOST + SLACK + 1
    assert (told[0]["subject"], told[-1]["subject"]) == ("disk:/", f"web{MOST + 2 * SLACK - 1}")
    assert 0 < fold.state.left_out < min(one.began.at for one in list(fold.state.all.values())[1:])
    assert len(fold.state.current) == len(told)


def test_a_restart_that_is_under_way_while_incidents_are_left_out_is_settled_though_none_began_yet() -> None:
    restart = RESTART.model_copy(update={"survival": True})
    many = (
        (HOUR * turn + second, payload, f"other{turn}")
        for turn in range(MOST + SLACK + 1)
        for second, payload in ((1, DIED), (2, UP))
    )
    rows = ((0, OWN, "web"), (0, restart, restart.key), *many, (HOUR, ACKED, "#2"))
    told = told_of(*rows, (HOUR, restart, restart.key))[-1]
    assert (told["subject"], told["measures"][0]["outcomes"]) == ("web", {"open": 1, "acked": 1})


def test_those_that_the_checkpoint_has_left_out_are_told_from_the_whole_log() -> None:
    many = (
        (HOUR * turn + second, payload, f"web{turn}")
        for turn in range(MOST + 2 * SLACK)
        for second, payload in ((0, DIED), (SECOND, UP))
    )
    rows = log_of(*many)
    kept = Checkpoint(VERSION, Head(len(rows), b""), dump(after(Incidents(), rows)))
    first, last = rows[0], rows[-1]
    for checkpoints in ({}, {NAME: kept}):
        context = context_of(rows, checkpoints)
        for since in (None, first.at):
            assert len(incidents(context, since)) == MOST + 2 * SLACK
        assert [one.subject for one in incidents(context, last.at)] == [last.subject]
        assert incident(context, first.id).subject == first.subject


def test_of_one_incident_no_more_is_kept_however_many_keys_a_rule_makes_up_for_it() -> None:
    many = MOST_MEASURES + 50

    def rows(action: str) -> Iterator[tuple[int, Payload, str]]:
        for number in range(many):
            key = f"{action}:{number}:disk:/x"
            yield number, Effect(action=action, key=key, reason=f"{number}"), key

    wishes = [*rows("note"), *rows("run-command")]
    fold = IncidentFold()
    for row in log_of((0, FULL, "disk:/x"), *wishes, *((many, ACKED, f"#{n + 2}") for n in range(2 * many))):
        fold.take(row)
    (one,) = fold.state.all.values()
    assert [*one.measures][-2:] == [OTHER_NOTICES, OTHER_MEASURES]
    assert len(one.measures) == MOST_MEASURES + 2
    assert sum(sum(measure.outcomes.values()) for measure in one.measures.values()) == 2 * many
    assert (fold.state.under_way, one.worked is not None) == ({}, True)


@pytest.mark.parametrize(
    "said",
    [
        ((0, OWN, "web"), WISH, (3, FAILED, "#2")),
        ((0, DIED, "web"), (1, STOP, "web", PERSON), (2, START, "web", PERSON), WISH, (3, FAILED, "#4")),
        ((0, WISH[1], WISH[2]), (1, DIED, "web"), (2, ACKED, "#1")),
        ((0, STARTED, ""), (SECOND, STARTED, "")),
    ],
    ids=["a start that fails", "a start after a stop", "a restart before the death", "a daemon's death"],
)
def test_one_incident_is_told_by_its_id_as_it_is_told_with_all(said: Any) -> None:
    rows = log_of(*said)
    context = context_of(rows)
    told = {one.id: one for one in incidents(context, None)}
    assert {id_: incident(context, id_) for id_ in told} == told
    with pytest.raises(UnknownName, match="no incident"):
        incident(context, next(row.id for row in rows if row.id not in told))


def test_what_was_well_in_between_is_not_told_as_wrong() -> None:
    rows = (
        (0, DIED, "web"),
        (5 * SECOND, UP, "web"),
        (4 * MINUTE, DIED, "web"),
        (4 * MINUTE + SECOND, UP, "web"),
    )
    (one,) = told_of(*rows)
    assert (one["times"], one["lasted_ms"], one["wrong_ms"]) == (2, 241_000, 6_000)
    assert ": killed, 2 times, resolved after 4 min, wrong for 6 s of it" in next(lines(one))


def test_a_cause_that_must_be_seen_several_times_is_told_from_the_first_of_them() -> None:
    def lost(second: int, words: str) -> tuple[int, Payload, str]:
        since = 10**15 + (second - 10) * SECOND
        return second * SECOND, ConditionRaised(evidence=words, state=words, failing=since), "network"

    over = (20 * SECOND, ConditionCleared(evidence="all answer"), "network")
    (one,) = told_of(lost(15, "no name resolves"), over, lost(100, "no page answers"))
    begins = [iso(10**15 + 5 * SECOND), iso(10**15 + 90 * SECOND)]
    assert [cause["first"] for cause in one["causes"]] == begins
    assert one["began"] == begins[0]


def test_each_cause_of_an_incident_is_told_with_its_count_and_time() -> None:
    def died(words: str) -> ProcessDied:
        return ProcessDied(pid=7, healthy=False, evidence=words)

    held = "process {} exited with status 1; 127.0.0.1:80 is held by process {} (python3), not by {}"
    rows = (
        (0, died("process 1 was killed by SIGSEGV"), "web"),
        (SECOND, UP, "web"),
        (2 * SECOND, died("process 2 was killed by SIGTERM"), "web"),
        (3 * SECOND, UP, "web"),
        (4 * SECOND, STOP, "web", PERSON),
        (4 * SECOND, OWN, "web"),
        (5 * SECOND, START, "web", PERSON),
        (6 * SECOND, died(held.format(3, 4, 3)), "web"),
        (7 * SECOND, died(held.format(5, 6, 5)), "web"),
    )
    (one,) = told_of(*rows)
    assert [(cause["evidence"], cause["times"]) for cause in one["causes"]] == [
        ("process 1 was killed by SIGSEGV", 1),
        ("process 2 was killed by SIGTERM", 1),
        (held.format(5, 6, 5), 2),
    ]
    assert one["requests"] == ["ada requested a stop", "ada requested a start"]
    head, *more = lines(one)
    assert head == f"process web: 4 times, of 3 causes, the last: {held.format(5, 6, 5)}, ongoing"
    assert more[1].endswith("  process 2 was killed by SIGTERM")
    (one,) = told_of(*rows[:4], (4 * SECOND, died("process 9 was killed by SIGSEGV"), "web"))
    assert [*lines(one)][1].endswith("  it was killed by SIGSEGV, 2 times")
    (one,) = told_of(*rows[:2], (2 * SECOND, died("process 2 was killed by SIGSEGV"), "web"))
    assert next(lines(one)) == "process web: it was killed by SIGSEGV, 2 times, ongoing"
    (one,) = told_of(rows[-1], (8 * SECOND, died(held.format(7, 6, 0).removesuffix(", not by 0")), "web"))
    assert [cause["times"] for cause in one["causes"]] == [2], (
        "whether its holder was looked at is no other cause"
    )


def test_of_very_many_causes_the_last_are_counted_together() -> None:
    said = [
        (turn * SECOND, DIED.model_copy(update={"evidence": f"status {turn}"}), "web") for turn in range(99)
    ]
    (one,) = told_of(*said)
    assert [cause["times"] for cause in one["causes"]] == [1] * 10 + [89]
    assert (one["causes"][-1]["evidence"], one["evidence"]) == ("other causes", "status 98")


def test_a_measured_value_makes_no_other_cause_and_only_the_last_one_is_told_as_such() -> None:
    sizes = ("98.7 MiB", "67,674,112", "1,234.5", "128 MiB")
    first, *more, last = [ConditionRaised(evidence=f"web takes {size}, for 5 s") for size in sizes]
    (one,) = told_of(*((at, said, "usage:web:memory") for at, said in enumerate((more[0], FREE, more[1]))))
    assert len(one["causes"]) == 1
    (one,) = told_of(*((at, said, "usage:web:memory") for at, said in enumerate((first, FREE, last))))
    assert (
        next(lines(one))
        == "condition usage:web:memory: web takes 128 MiB, for 5 s, the last of 2 times, ongoing"
    )


def test_what_is_raised_again_while_it_stands_is_told_as_it_is_now_and_counts_as_once() -> None:
    """As an agent that fails once more."""
    words = [
        "3 failures in a row, which set it aside for 30 s",
        "4 failures in a row, which set it aside for 1 min",
    ]
    three, four = [ConditionRaised(evidence=said, state="failing") for said in words]
    (one,) = told_of((0, three, "agent:ada"), (MINUTE // 2, four, "agent:ada"))
    assert [*lines(one)] == [f"condition agent:ada: {words[1]}, ongoing"]
    assert (one["times"], one["causes"][0]["first"]) == (1, one["began"])
    gone = four.model_copy(update={"state": "gone"})
    (one,) = told_of((0, three, "agent:ada"), (1, gone, "agent:ada"))
    assert next(lines(one)) == f"condition agent:ada: {words[1]}, ongoing"
    asked = [f"it did not answer; {number} questions in a row failed" for number in (3, 12)]
    down, late = [ConditionRaised(evidence=said) for said in asked]
    (one,) = told_of((0, down, "llm:x"), (1, FREE, "llm:x"), (2, late, "llm:x"))
    assert next(lines(one)) == f"condition llm:x: {asked[1]}, the last of 2 times, ongoing"
    refused = ConditionRaised(evidence="it answered 401; 3 questions in a row failed", state="refuses")
    broken = down.model_copy(update={"evidence": "it answered 500; 3 questions in a row failed"})
    said = ((0, down), (1, refused), (2, broken), (3, FREE), (4, down))
    (one,) = told_of(*((at, payload, "llm:x") for at, payload in said))
    assert next(lines(one)) == f"condition llm:x: 2 times, the last: {asked[0]}, ongoing", "not of 3 causes"
    assert len([*lines(one)]) == 4


def test_an_effect_is_part_of_the_incident_that_caused_it() -> None:
    wish = Effect(action="run-command", key="mine", params={}, reason="tidy")
    died, wished = log_of((0, DIED, "web"), (2, wish, "mine"))
    fold = IncidentFold()
    fold.take(died)
    fold.take(wished._replace(cause=died.id))
    assert fold.state.at(wished.moment)[0].measures["mine"].times == 1


def test_an_incident_reads_the_same_whatever_the_time_that_is_told() -> None:
    rows = log_of(
        (0, STARTED, ""),
        (0, STOP, "old", PERSON),
        (SECOND, DIED, "web"),
        (2 * SECOND, RESTART, "restart-process:web"),
        (3 * SECOND, FAILED, "#4"),
        (9 * SECOND, OWN, "old"),
        (20 * SECOND, RESTART, "restart-process:web"),
        (21 * SECOND, ACKED, "#7"),
        (22 * SECOND, UP, "web"),
    )

    class Log:
        def events(self, query: EventQuery) -> Iterator[Event]:
            return (row for row in rows[query.since_seq :] if row.kind in query.kinds)

        def last_before(self, at: int) -> Event | None:
            return next((row for row in reversed(rows) if row.at <= at), None)

    log: Any = Log()
    now = Moment(rows[-1].at + MINUTE, "boot", 2 * MINUTE)
    whole = [one.spelled() for one in incidents_in(log, None, now)]
    assert [one["subject"] for one in whole] == ["web"]
    for row in rows:
        assert [one.spelled() for one in incidents_in(log, row.at, now)] == whole
    assert incidents_in(log, now.at, now) == []
