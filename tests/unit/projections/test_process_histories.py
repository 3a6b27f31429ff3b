"""What a log says of a process: starts and restarts, stops that help and stops that do not."""

import pytest

from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectCancelled,
    EffectFailed,
    EffectUnknown,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    SettingsLoaded,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.model.stored_data import REDACTED
from pulse_core.projections.processes import (
    ATTEMPTS,
    STAYED_US,
    Intent,
    LastStart,
    Processes,
    ProcessHistory,
    Stage,
    after,
)
from tests.events import SECOND, event

HOUR = 3_600 * SECOND
START = Effect(action="restart-process", key="restart-process:p", params={"process": "p"})
OF_A_RULE = START.model_copy(update={"key": "mine", "rule": "mine", "tick": 1})
STOP = Effect(action="stop-process", key="stop-process:p", params={"process": "p"})
ACKED, ALREADY = EffectAcked(took_us=1, result={"pid": 5}), EffectAcked(took_us=1, result={"already": True})
FAILED = EffectFailed(error="no")
UP = ProcessUp(pid=5, started=50, evidence="there")
ABSENT = ProcessDied(pid=None, evidence="not there", healthy=True)
DIED = ProcessDied(pid=5, evidence="gone", healthy=False)
DIED_OLD = ProcessDied(pid=5, evidence="gone", healthy=True)
WANTED = ProcessStopRequested(expires_us=HOUR)
GONE = SettingsLoaded(digest="", gone=("p",))


def told(*said: Payload | tuple[Payload, int]) -> ProcessHistory:
    """The history of `p` after these, a second apart or at the second given; an outcome is the last wish's."""
    state, wish = Processes(), ""
    for seq, one in enumerate(said, 1):
        payload, second = one if isinstance(one, tuple) else (one, seq)
        if isinstance(payload, Effect):
            wish = f"id-{seq}"
        subject = payload.key if isinstance(payload, Effect) else "p"
        if payload.kind.startswith("effect-"):
            subject = wish
        state = after(state, [event(seq, payload, subject, at=second * SECOND)])
    return state["p"]


@pytest.mark.parametrize(
    ("said", "restarts", "charged", "stage"),
    [
        ((ABSENT, START), 0, 0, Stage.WISHED),
        ((ABSENT, START, ACKED), 0, 0, Stage.STARTED),
        ((ABSENT, START, ACKED, UP), 0, 0, Stage.UP),
        ((ABSENT, START, UP, ACKED), 0, 0, Stage.UP),
        ((ABSENT, START, ACKED, UP, DIED, START, ACKED), 1, 1, Stage.UP),
        ((ABSENT, START, ACKED, UP, DIED_OLD, START, ACKED), 1, 1, Stage.UP),
        ((ABSENT, START, ACKED, DIED, START, ACKED, DIED, START, ACKED), 2, 2, Stage.STARTED),
        ((ABSENT, START, FAILED, START, FAILED), 0, 1, Stage.WISHED),
        ((ABSENT, START, FAILED, START, FAILED, START, ACKED, UP), 0, 2, Stage.UP),
        ((ABSENT, START, ACKED, DIED, ProcessStartRequested(), START, ACKED), 0, 0, Stage.STARTED),
        ((UP, DIED, START, ACKED), 1, 1, Stage.UP),
        ((UP, DIED, ProcessStartRequested(), START, ACKED), 1, 1, Stage.UP),
        ((UP, WANTED, DIED, (START, HOUR // SECOND + 9), ACKED), 1, 0, Stage.UP),
        ((UP, WANTED, (DIED, HOUR // SECOND + 8), (START, HOUR // SECOND + 9), ACKED), 1, 1, Stage.UP),
        ((ABSENT, UP, DIED, START, ACKED, DIED, START, ALREADY), 1, 2, Stage.UP),
    ],
    ids=str,
)
def test_only_what_follows_the_first_start_is_a_restart(
    said: tuple[Payload | tuple[Payload, int], ...], restarts: int, charged: int, stage: Stage
) -> None:
    history = told(*said)
    assert (history.restarts, len(history.charged), history.stage) == (restarts, charged, stage)


@pytest.mark.parametrize("outcome", [ALREADY, ACKED, FAILED], ids=["already", "acked", "failed"])
def test_restarts_that_a_rule_wishes_for_cost_none_of_the_starts_after_a_death(outcome: Payload) -> None:
    history = told(UP, *[OF_A_RULE, outcome] * 20, DIED)
    assert (history.attempts, history.charged, history.recent) == ((), (), ())
    assert history.restarts == (20 if outcome is ACKED else 0)


def test_a_restart_that_a_rule_wishes_for_is_not_the_one_that_a_person_waits_for() -> None:
    assert told(UP, ProcessRestartRequested(), OF_A_RULE, ALREADY).request
    assert told(UP, ProcessRestartRequested(), START, ACKED).request is None


def test_a_healthy_life_after_the_first_start_clears_what_was_free() -> None:
    history = told(ABSENT, START, ACKED, UP, DIED_OLD)
    assert (history.attempts, history.free) == ((), False)


@pytest.mark.parametrize(
    ("before", "charged"),
    [((START,), 1), ((START, FAILED, START), 1), ((ProcessRestartRequested(), START), 0)],
)
def test_the_restart_that_replaces_a_healthy_life_is_charged(
    before: tuple[Payload, ...], charged: int
) -> None:
    replaced = DIED_OLD.model_copy(update={"intended": True})
    history = told(ABSENT, START, ACKED, UP, *before, replaced, ACKED)
    assert (len(history.attempts), len(history.charged)) == (1, charged)


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize(
    "news", [UP, EffectAcked(took_us=1, result={"already": True, "pid": 5, "started": 50})]
)
def test_a_process_stands_for_one_name_with_the_life_that_it_came_out_of(news: Payload, batch: int) -> None:
    begun = EffectAcked(took_us=1, result={"pid": 5, "started": 50})
    other = Effect(action="restart-process", key="restart-process:q", params={"process": "q"})
    subject = "q" if news is UP else "id-4"
    rows = [event(1, START, START.key), event(2, begun, "id-1"), event(3, UP, "p")]
    rows += [event(4, other, other.key), event(5, news, subject), event(6, UP, "q")]
    state = Processes()
    for at in range(0, len(rows), batch):
        state = after(state, rows[at : at + batch])
    assert (state["p"].pid, state["p"].start, state["p"].up, state["p"].down) == (None, None, None, None)
    assert (state["q"].pid, state["q"].start) == (5, LastStart("id-1", 5, 50))
    assert state["q"].up is not None


@pytest.mark.parametrize("batch", [1, 7, 4 * ATTEMPTS])
def test_the_last_restarts_are_kept_however_the_log_is_cut(batch: int) -> None:
    starts = range(2, ATTEMPTS + 50)
    rows = [event(1, UP, "p"), *(event(seq, START, START.key) for seq in starts)]
    state = Processes()
    for first in range(0, len(rows), batch):
        state = after(state, rows[first : first + batch])
    assert [one.moment for one in state["p"].recent] == [row.moment for row in rows[-ATTEMPTS:]]


def intent(*said: Payload | tuple[Payload, int]) -> Intent:
    stop = told(*said).stop
    assert stop is not None
    return stop


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (ACKED, ""),
        (FAILED, "no"),
        (EffectUnknown(why="dark"), "dark"),
        (EffectCancelled(why="by ada"), "by ada"),
    ],
    ids=lambda one: str(one),
)
def test_a_stop_is_counted_when_wished_and_timed_when_settled(outcome: Payload, error: str) -> None:
    stop = intent(UP, WANTED, STOP, (outcome, 40))
    assert (stop.tries, stop.error, stop.worked) == (1, error, False)
    assert stop.tried is not None
    assert stop.tried.mono == 40 * SECOND


def test_a_stop_of_an_earlier_intent_is_not_counted_to_the_next() -> None:
    assert intent(UP, WANTED, STOP, WANTED, ACKED).tries == 0


def test_why_an_output_is_not_in_its_log_is_known_of_the_process_that_it_is_true_of() -> None:
    unlogged = EffectAcked(took_us=1, result={"pid": 5, "started": 50, "unlogged": "the disk is full"})
    assert told(START, unlogged, UP).unlogged == "the disk is full"
    found = UP.model_copy(update={"pid": 6, "unlogged": "it was read-only"})
    assert told(START, unlogged, UP, found, found).unlogged == "it was read-only"
    assert told(START, unlogged, UP, UP.model_copy(update={"pid": 6})).unlogged == ""


def test_a_stop_is_to_be_tried_anew_once_a_restart_that_was_under_way_has_started_something() -> None:
    state, restart, stop = Processes(), START, STOP
    rows = [
        event(1, UP, "p"), event(2, restart, "restart"), event(3, WANTED, "p"), event(4, stop, "stop"),
        event(5, ACKED, "id-4"), event(6, ACKED, "id-2"),
    ]  # fmt: skip
    tried = after(state, rows[:5])["p"].stop
    anew = after(state, rows)["p"].stop
    assert tried is not None
    assert anew is not None
    assert (tried.tries, anew.tries, anew.tried) == (1, 0, None)
    already = after(state, [*rows[:5], event(6, ALREADY, "id-2")])["p"].stop
    assert already == tried


def test_a_stop_that_nobody_wants_is_a_deed_without_an_intent() -> None:
    assert told(UP, STOP, ACKED).stop is None


def test_an_acked_stop_leaves_nothing_starting() -> None:
    assert told(ABSENT, START, ACKED, WANTED, STOP, ACKED).starting is None
    assert told(ABSENT, START, ACKED, WANTED, STOP, FAILED).starting is not None


@pytest.mark.parametrize(
    ("down_for", "worked"), [(1, False), (STAYED_US // SECOND - 1, False), (STAYED_US // SECOND, True)]
)
def test_a_stop_has_worked_if_it_stayed_down_for_a_while(down_for: int, worked: bool) -> None:
    assert intent(UP, WANTED, STOP, ACKED, (DIED, 5), (UP, 5 + down_for)).worked is worked


def test_what_was_down_long_before_it_was_wanted_so_is_not_taken_for_stopped() -> None:
    assert not intent(ABSENT, (WANTED, 5_000), (UP, 5_001)).worked


def test_a_managers_stop_is_its_own_business_until_it_is_up_again() -> None:
    stopped = ProcessStopped(evidence="inactive", expires_us=HOUR)
    assert intent(UP, DIED, stopped).worked
    assert told(UP, DIED, stopped, UP).stop is None


REPLACED = EffectAcked(took_us=1, result={"pid": 6, "started": 60})


def test_the_death_of_one_that_was_replaced_leaves_its_replacement_the_grace() -> None:
    history = told(ABSENT, START, ACKED, UP, START, REPLACED, DIED_OLD)
    assert (history.pid, history.up) == (6, None)
    assert history.starting == history.down is not None


def test_the_death_of_the_one_that_is_known_gives_no_grace() -> None:
    assert told(ABSENT, START, ACKED, UP, DIED_OLD).starting is None


def test_the_newest_start_stays_known_whoever_stands_for_it() -> None:
    started = EffectAcked(took_us=1, result={"pid": 5, "started": 50, "logged": 7})
    there = EffectAcked(took_us=1, result={"already": True, "pid": 7, "started": 70})
    background = ProcessUp(pid=6, started=60, evidence="left in the background by 5")
    assert told(START, started, background, START, there).start == LastStart("id-1", 5, 50, 7)


BY_PERSON = ProcessStartRequested(why="surgery is over")


def test_a_start_that_a_person_requests_is_kept_until_it_is_wished_for_or_not_needed() -> None:
    request = told(UP, WANTED, DIED, BY_PERSON).request
    assert request
    assert (request.by, request.why, request.is_start) == ("pulse", "surgery is over", True)
    for said in ((BY_PERSON, START), (BY_PERSON, UP), (BY_PERSON, WANTED), (UP, BY_PERSON)):
        assert told(UP, DIED, *said).request is None


def test_what_was_up_before_it_was_known_is_up_since_it_was_started_itself() -> None:
    assert told((UP, 60)).up == Moment(10**15 + SECOND // 2, "boot", SECOND // 2)  # 50 ticks after the boot
    later = told((UP, 60), (DIED, 70), (UP.model_copy(update={"pid": 6, "started": 60}), 80)).up
    assert later is not None
    assert later.mono == 80 * SECOND  # nobody knows since when it has served
    unit = told((ProcessUp(pid=None, started=None, evidence="active"), 60)).up
    assert unit is not None
    assert unit.mono == 60 * SECOND


def test_a_restart_that_failed_once_it_was_up_is_not_what_it_died_of() -> None:
    assert told(UP, DIED, START, FAILED).error == "no"
    assert told(UP, DIED, START, FAILED, DIED).error == "no", "it has not come up since"
    assert told(UP, DIED, START, UP, FAILED, DIED).error == ""


def test_a_restart_counts_though_its_wish_was_redacted() -> None:
    said = [event(1, UP, "p"), event(2, DIED, "p"), event(3, START, START.key), event(4, ACKED, "id-3")]
    said[2] = said[2]._replace(data=REDACTED)
    history = after(Processes(), said)["p"]
    assert (history.restarts, len(history.attempts)) == (1, 1)


def test_of_who_is_guarded_no_more_it_is_known_who_it_is_and_that_a_person_has_stopped_it() -> None:
    living = told(ABSENT, START, ACKED, UP, DIED, START, ACKED, UP, GONE)
    assert (living.pid, living.up is None, living.stage, living.charged) == (5, False, Stage.UP, ())
    dead = told(ABSENT, START, ACKED, UP, DIED, START, FAILED, WANTED, GONE)
    assert (dead.pid, dead.down, dead.stage, dead.error) == (5, None, Stage.NEW, "")
    assert dead.down_for(event(10, UP, "p", at=10 * SECOND).moment)
