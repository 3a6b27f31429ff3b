"""How a process that somebody wants down is judged, from its history alone."""

from collections.abc import Sequence

import pytest

from pulse_core.model.moment import Moment
from pulse_core.projections.control import Control
from pulse_core.projections.processes import Intent, Processes, ProcessHistory
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.process_watchdog import (
    STOP_TRIES,
    ProcessState,
    ProcessStatus,
    evaluate_status,
)
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

SECOND = 1_000_000
DAY = 86_400


def at(seconds: float) -> Moment:
    return Moment(10**15 + round(seconds * SECOND), "boot", round(seconds * SECOND))


WANTED = Intent(at(100), DAY * SECOND, "ada")
UP = ProcessHistory(pid=1, started=1, up=at(1), evidence="process 1 is alive", stop=WANTED)
DOWN = UP._replace(up=None, down=at(105), stop=WANTED._replace(tries=1, tried=at(105)))


def judged(
    history: ProcessHistory,
    now: float,
    paused: bool = False,
    under_way: bool = False,
    look: str = "5s",
    left: Sequence[int] = (),
    kill: str = "tree",
) -> ProcessStatus:
    settings = Settings.model_validate(
        {"process": [{"name": "p", "start": ["p"], "kill": kill}], "watch": {"process_interval": look}}
    )
    facts = State(
        processes=Processes({"p": history}, stopping={"effect": "p"} if under_way else {}),
        control=Control(paused=at(1), by="bob") if paused else Control(),
    )
    process: ProcessSettings = settings.process[0]
    return evaluate_status(process, Snapshot(1, at(now), settings, {}, facts), {"leftovers": [*left]})


def tried(tries: int, error: str = "") -> ProcessHistory:
    return UP._replace(stop=WANTED._replace(tries=tries, tried=at(200), error=error))


def test_what_is_wanted_down_and_up_is_stopped() -> None:
    condition = judged(UP, 100)
    assert (condition.state, condition.stop) == (ProcessState.STOPPING, True)


def test_a_stop_under_way_is_waited_for() -> None:
    assert judged(tried(1), 300, under_way=True) == ProcessStatus(
        ProcessState.STOPPING, why="ada wants it down; its stop is under way"
    )


@pytest.mark.parametrize(("tries", "pause"), [(1, 10), (2, 20), (3, 40), (4, 80)])
def test_each_further_stop_waits_twice_as_long(tries: int, pause: int) -> None:
    waiting = judged(tried(tries), 200 + pause - 0.5)
    assert (waiting.state, waiting.stop, waiting.wait_us) == (ProcessState.STOPPING, False, SECOND // 2)
    assert judged(tried(tries), 200 + pause)[3:5] == (False, True)


def test_a_stop_is_not_a_microsecond_early() -> None:
    waiting = judged(tried(1), 210 - 1 / SECOND)
    assert (waiting.wait_us, waiting.stop) == (1, False)
    assert waiting.why == ("ada wants it down, and it is still up after 1 stop; looked at again in 1 us")
    assert judged(tried(2), 220).why == "ada wants it down, and it is still up after 2 stops"


def test_the_look_that_follows_a_stop_has_its_turn() -> None:
    assert not judged(tried(1), 260, look="1m").stop
    assert judged(tried(1), 265, look="1m").stop


def test_the_last_stop_is_looked_after_before_a_person_is_told() -> None:
    assert judged(tried(STOP_TRIES), 200 + 159.9)[3:5] == (False, False)
    told = judged(tried(STOP_TRIES, "no permission"), 200 + 160)
    assert (told.state, told.tell, told.stop) == (ProcessState.STOPPING, True, False)
    assert told.why == "ada wants it down, and it is still up after 5 stops (no permission); not tried again"


def test_a_paused_pulse_stops_nothing_and_says_so() -> None:
    assert judged(UP, 101, paused=True) == ProcessStatus(
        ProcessState.STOPPING, why="ada wants it down, and Pulse is paused by bob"
    )


def test_what_was_started_and_has_not_come_up_is_stopped_too() -> None:
    starting = DOWN._replace(starting=at(99), stop=WANTED)
    assert judged(starting, 101).stop


def test_what_is_down_is_stopped_however_often_that_was_tried() -> None:
    for tries in range(STOP_TRIES + 1):
        history = DOWN._replace(stop=WANTED._replace(tries=tries, tried=at(105), error="no"))
        assert judged(history, 110).state is ProcessState.STOPPED


def test_what_somebody_starts_while_it_is_wanted_down_is_let_live_and_told() -> None:
    back = UP._replace(up=at(4000), stop=WANTED._replace(tries=1, worked=True))
    condition = judged(back, 5000)
    assert (condition.state, condition.tell, condition.stop) == (ProcessState.UP, True, False)
    assert "ada wants it down for another 22.6 h" in condition.why


def test_with_its_expiry_all_of_it_is_over() -> None:
    for history in (tried(STOP_TRIES), UP._replace(stop=WANTED._replace(worked=True))):
        assert judged(history, 100 + DAY) == ProcessStatus(ProcessState.UP, why="process 1 is alive")


def test_what_was_down_and_is_being_started_by_somebody_is_not_stopped_in_advance() -> None:
    stopped = DOWN._replace(starting=at(4000), stop=WANTED._replace(tries=1, tried=at(105), worked=True))
    condition = judged(stopped, 4001)
    assert (condition.state, condition.stop) == (ProcessState.STOPPED, False)


def test_what_is_left_of_a_process_that_was_dead_before_the_stop_is_ended_once() -> None:
    dead = DOWN._replace(down=at(99), stop=WANTED)
    assert judged(dead, 101).state is ProcessState.STOPPED
    assert judged(dead, 101, left=[7], kill="main").state is ProcessState.STOPPED
    status = judged(dead, 101, left=[7])
    assert (status.state, status.stop, status.why) == (ProcessState.STOPPING, True, "ada wants it down")
    assert judged(DOWN, 300, left=[7]).state is ProcessState.STOPPED


def test_what_a_failed_stop_has_left_is_stopped_again_and_not_for_ever() -> None:
    failed = WANTED._replace(tries=1, tried=at(200), error="refused")
    status = judged(DOWN._replace(stop=failed), 300, left=[7])
    words = "ada wants it down, and what is left of it is not ended after 1 stop (refused)"
    assert (status.state, status.stop, status.why) == (ProcessState.STOPPING, True, words)
    last = failed._replace(tries=STOP_TRIES)
    assert judged(DOWN._replace(stop=last), 9_000, left=[7]).state is ProcessState.STOPPED
