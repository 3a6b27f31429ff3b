"""How a guarded process is judged, from its history alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.moment import Moment
from pulse_core.projections.processes import Intent, Processes, ProcessHistory, Restart, Stage
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.process_watchdog import (
    ProcessState,
    ProcessStatus,
    attempts_at_exhaustion,
    evaluate_status,
)
from pulse_core.settings.processes import RARELY_US, ProcessSettings, RestartSettings
from pulse_core.settings.settings import Settings

SECOND = 1_000_000


def at(seconds: float) -> Moment:
    return Moment(10**15 + round(seconds * SECOND), "boot", round(seconds * SECOND))


def judged(history: ProcessHistory, now: float, **restart: object) -> ProcessStatus:
    if not history.recent:
        history = history._replace(recent=tuple(Restart(moment, 0) for moment in history.charged))
    process = ProcessSettings(name="p", start=("p",), restart=RestartSettings.model_validate(restart))
    facts = State(processes=Processes({"p": history}))
    return evaluate_status(process, Snapshot(1, at(now), Settings(process=(process,)), {}, facts))


DEAD = ProcessHistory(pid=1, started=1, down=at(100), evidence="gone")


def test_before_the_first_look_nothing_is_known() -> None:
    assert judged(ProcessHistory(), 1).state is ProcessState.UNKNOWN


def test_a_live_process_is_up_however_often_it_was_restarted() -> None:
    busy = ProcessHistory(up=at(1), attempts=tuple(at(second) for second in range(50)))
    assert judged(busy, 60).state is ProcessState.UP


def test_the_first_restart_is_due_at_once() -> None:
    assert judged(DEAD, 100).state is ProcessState.DUE


@pytest.mark.parametrize(("tried", "pause"), [(1, 1), (2, 2), (3, 4), (4, 8)])
def test_each_further_restart_waits_twice_as_long(tried: int, pause: int) -> None:
    history = DEAD._replace(attempts=tuple(at(100 - number) for number in range(tried)))
    assert judged(history, 100 + pause - 0.01).state is ProcessState.BACKING_OFF
    assert judged(history, 100 + pause).state is ProcessState.DUE


def test_backoff_never_exceeds_its_maximum() -> None:
    history = DEAD._replace(attempts=tuple(at(number) for number in range(-10_000, 0, 1_000)))
    assert judged(history, 100.5, backoff_max="3s").wait_us == 2.5 * SECOND


def test_no_backoff_means_a_moment() -> None:
    history = DEAD._replace(attempts=(at(99), at(98)))
    assert judged(history, 100, backoff="0s").wait_us == 20_000


def test_a_spent_budget_is_flapping_and_stays_so_until_it_is_healthy() -> None:
    history = DEAD._replace(attempts=tuple(at(90 + number) for number in range(5)))
    for later in (101, 200, 399):
        assert judged(history, later) == judged(history, later)._replace(
            state=ProcessState.FLAPPING, tell=True
        )
    assert judged(history, 400).state is ProcessState.DUE
    assert judged(history, 400).tell


def test_deaths_spend_the_budget_however_healthy_it_was_between_them() -> None:
    history = DEAD._replace(recent=tuple(Restart(at(number * 20), 19 * SECOND) for number in range(5)))
    assert judged(history, 101).state is ProcessState.FLAPPING
    assert judged(history, 101).tell
    assert judged(history._replace(recent=history.recent[1:]), 101).state is ProcessState.DUE


def test_a_life_as_long_as_the_window_makes_the_budget_new() -> None:
    lives = (0, 0, 0, 0, 600, 0, 0, 0)
    history = DEAD._replace(recent=tuple(Restart(at(90 + n), life * SECOND) for n, life in enumerate(lives)))
    assert judged(history, 100).state is not ProcessState.FLAPPING
    more = history._replace(recent=(*history.recent, Restart(at(99), 0)))
    assert judged(more, 100).state is ProcessState.FLAPPING
    spent = DEAD._replace(recent=tuple(Restart(at(90 + n), 599 * SECOND) for n in range(5)))
    assert judged(spent, 100).state is ProcessState.FLAPPING
    assert judged(spent._replace(lived_us=600 * SECOND), 100).state is ProcessState.DUE


def test_slow_deaths_do_not_spend_the_budget_but_are_told_when_nothing_helps() -> None:
    history = DEAD._replace(attempts=tuple(at(-number * 500) for number in range(5, 0, -1)))
    assert judged(history, 100).state is not ProcessState.FLAPPING
    assert judged(history, 100).tell
    assert not judged(history._replace(attempts=history.attempts[1:]), 100).tell


@pytest.mark.parametrize(("attempts", "minutes"), [(5, 5), (6, 10), (7, 20), (8, 40), (9, 60), (30, 60)])
def test_each_half_open_try_waits_twice_as_long_up_to_an_hour(attempts: int, minutes: int) -> None:
    history = DEAD._replace(attempts=tuple(at(90 + number / 100) for number in range(attempts)))
    assert judged(history, 100).wait_us == minutes * 60 * SECOND


def test_a_try_is_not_a_microsecond_early() -> None:
    history = DEAD._replace(attempts=(at(99),))
    assert judged(history, 101 - 1 / SECOND).wait_us == 1
    assert judged(history, 101).state is ProcessState.DUE


def test_a_pause_begins_with_the_last_try_if_that_was_after_its_death() -> None:
    condition = judged(DEAD._replace(attempts=(at(105),)), 105.25)
    assert (condition.state, condition.wait_us) == (ProcessState.BACKING_OFF, 0.75 * SECOND)


def test_what_lies_a_whole_window_back_spends_no_budget() -> None:
    restart = RestartSettings.model_validate({"max": 2, "within": "10m"})
    assert attempts_at_exhaustion(restart, [at(0), at(600)]) is None
    assert attempts_at_exhaustion(restart, [at(0), at(599.999999)]) == 2
    assert attempts_at_exhaustion(RestartSettings.model_validate({"max": 0}), []) == 0


@given(st.integers(0, 60))
def test_half_open_tries_come_less_often_but_never_stop(extra: int) -> None:
    attempts = tuple(at(90 + number / 100) for number in range(5 + extra))
    left = judged(DEAD._replace(attempts=attempts), 100).wait_us
    assert left is not None
    assert 0 < left <= RARELY_US


@given(st.lists(st.integers(0, 2_000), max_size=30), st.integers(1, 10))
def test_a_budget_is_spent_by_max_attempts_within_its_window_and_not_before(
    gaps: list[int], most: int
) -> None:
    moments, second = [], 0
    for gap in gaps:
        second += gap
        moments.append(at(second))
    restart = RestartSettings.model_validate({"max": most, "within": "10m"})
    windows = [
        moments[last].since(moments[last - most + 1]) < 600 * SECOND for last in range(most - 1, len(moments))
    ]
    expected = windows.index(True) + most if True in windows else None
    assert attempts_at_exhaustion(restart, moments) == expected


def test_a_started_process_has_its_grace() -> None:
    history = DEAD._replace(attempts=(at(101),), starting=at(101))
    assert judged(history, 110.9).state is ProcessState.STARTING
    assert judged(history, 111).state is ProcessState.DUE


def test_a_grace_lasts_to_the_microsecond() -> None:
    history = DEAD._replace(attempts=(at(101),), starting=at(101))
    assert judged(history, 111 - 1 / SECOND).wait_us == 1


def test_a_stop_outlasts_everything_but_its_expiry() -> None:
    stopped = DEAD._replace(stop=Intent(at(100), 50 * SECOND, "ada"))
    assert judged(stopped, 149).state is ProcessState.STOPPED
    assert "ada" in judged(stopped, 149).why
    assert judged(stopped, 150).state is ProcessState.DUE


FIRST = DEAD._replace(attempts=(at(99),), free=True)
"""Dead after its first start."""


@pytest.mark.parametrize("stage", [Stage.WISHED, Stage.STARTED])
def test_a_first_start_that_did_not_bring_it_up_is_followed_by_a_pause(stage: Stage) -> None:
    history = FIRST._replace(stage=stage)
    assert judged(history, 100.9).state is ProcessState.BACKING_OFF
    assert judged(history, 101).why == "dead after its first start: gone"


def test_what_never_ran_is_not_told_as_dead() -> None:
    history = FIRST._replace(pid=None, started=None, stage=Stage.WISHED, error="no such program")
    assert judged(history, 101).why == "not started after 1 try: no such program"
    history = history._replace(attempts=(at(98), at(99)))
    assert judged(history, 120).why == "not started after 2 tries: no such program"


def test_the_first_restart_of_what_its_first_start_brought_up_is_due_at_once() -> None:
    assert judged(FIRST._replace(stage=Stage.UP), 100) == ProcessStatus(ProcessState.DUE, why="dead: gone")


@pytest.mark.parametrize(
    ("charged", "words", "tries"), [(1, "1 restart", "1 try"), (2, "2 restarts", "2 tries")]
)
def test_what_did_not_help_is_counted_in_words(charged: int, words: str, tries: str) -> None:
    attempts = tuple(at(50 + number) for number in range(charged))
    history = DEAD._replace(attempts=attempts, stage=Stage.UP, restarts=charged)
    assert judged(history, 200).why == f"dead after {words}: gone"
    failed = judged(history._replace(error="no such program"), 200).why
    assert failed == f"still dead after {tries} to restart it: no such program"


@pytest.mark.parametrize("stage", [Stage.STARTED, Stage.UP])
def test_a_first_start_is_not_charged_to_the_budget(stage: Stage) -> None:
    for charged, state in ((1, ProcessState.BACKING_OFF), (2, ProcessState.FLAPPING)):
        attempts = (at(90), *(at(99.5) for _ in range(charged)))
        history = DEAD._replace(attempts=attempts, free=True, stage=stage)
        condition = judged(history, 100, max=2)
        assert (condition.state, condition.tell) == (state, charged == 2)
