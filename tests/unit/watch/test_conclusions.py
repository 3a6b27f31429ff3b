"""What follows from one look at a process."""

from typing import Any

from pulse_core.model.kinds import ProcessDied, ProcessStopped, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.ports import Found, Sight
from pulse_core.projections import Intent, ProcessHistory
from pulse_core.settings import ProcessSettings
from pulse_core.watch.conclusion import Conclusion, Look, conclude

MINUTE = 60_000_000
OLD, NEW = Found(5, 50), Found(6, 60)
LONG_AGO, NOW = Moment(0, "boot", 0), Moment(10 * MINUTE, "boot", 10 * MINUTE)
UP = ProcessHistory(pid=5, started=50, boot="boot", up=LONG_AGO)
DOWN = ProcessHistory(pid=5, started=50, boot="boot", down=LONG_AGO)
STARTING = DOWN._replace(pid=6, started=60, starting=NOW)


def look(sight: Sight, history: ProcessHistory, **more: Any) -> Conclusion:
    process = ProcessSettings(name="p", start=("p",), evidence=more.pop("evidence", 3))
    return conclude(Look(process, sight, history, more.pop("streak", 0), NOW, 7, **more))


def said(conclusion: Conclusion) -> list[Payload]:
    assert {draft.subject for draft in conclusion.drafts} <= {"p"}
    return [draft.payload for draft in conclusion.drafts]


def kinds(conclusion: Conclusion) -> list[str]:
    return [payload.kind for payload in said(conclusion)]


def test_alive_as_before_is_no_news() -> None:
    assert look(Sight((OLD,), None, True), UP) == Conclusion()


def test_dead_as_before_is_no_news() -> None:
    assert look(Sight(), DOWN) == Conclusion()


def test_what_is_alive_now_is_up() -> None:
    (up,) = said(look(Sight((NEW,)), DOWN))
    assert isinstance(up, ProcessUp)
    assert (up.pid, up.started) == NEW


def test_what_is_gone_is_dead_without_further_probes() -> None:
    assert kinds(look(Sight(), UP)) == ["process-died"]


def test_a_death_seen_by_pidfd_is_proof_even_if_its_pid_file_still_names_it() -> None:
    assert kinds(look(Sight(known=True), UP, proven=True)) == ["process-died"]


def test_a_probe_that_fails_counts_and_kills_nothing() -> None:
    deaf = Sight((OLD,), answering=False, known=True)
    assert look(deaf, UP) == Conclusion((), 1)
    assert look(deaf, UP, streak=1) == Conclusion((), 2)
    assert kinds(look(deaf, UP, streak=2)) == ["process-died"]


def test_a_recovery_resets_the_streak() -> None:
    assert look(Sight((OLD,), answering=True, known=True), UP, streak=2) == Conclusion((), 0)


def test_evidence_can_be_asked_for_more_or_less() -> None:
    deaf = Sight((OLD,), answering=False, known=True)
    assert kinds(look(deaf, UP, evidence=1)) == ["process-died"]
    assert kinds(look(deaf, UP, streak=8, evidence=10)) == []


def test_another_process_in_its_place_is_a_death_and_a_start() -> None:
    assert kinds(look(Sight((NEW,)), UP)) == ["process-died", "process-up"]


def test_another_match_in_its_place_is_no_death() -> None:
    process = ProcessSettings(name="p", start=("p",), match="p")
    (up,) = conclude(Look(process, Sight((NEW,)), UP, 0, NOW, 7)).drafts
    assert isinstance(up.payload, ProcessUp)


def test_a_proven_death_is_told_even_while_its_manager_is_busy() -> None:
    (death,) = said(look(Sight(busy=True), UP, proven=True))
    assert isinstance(death, ProcessDied)
    assert death.recovering


def test_an_expired_stop_of_a_person_does_not_hide_a_stop_by_its_manager() -> None:
    stopped = UP._replace(stop=Intent(LONG_AGO, 1, "ada"))
    assert kinds(look(Sight(intended=True), stopped)) == ["process-died", "process-stopped"]


def test_a_second_one_beside_it_is_no_news() -> None:
    assert look(Sight((OLD, NEW), None, True), UP) == Conclusion()


def test_a_death_after_long_health_says_so() -> None:
    (death,) = said(look(Sight(), UP))
    assert isinstance(death, ProcessDied)
    assert death.healthy
    (early,) = said(look(Sight(), UP._replace(up=NOW)))
    assert isinstance(early, ProcessDied)
    assert not early.healthy


def test_what_was_never_there_is_dead_at_the_first_look() -> None:
    assert kinds(look(Sight(), ProcessHistory())) == ["process-died"]


def test_what_dies_while_starting_is_dead_before_its_grace_is_over() -> None:
    assert kinds(look(Sight(), STARTING)) == ["process-died"]


def test_what_does_not_answer_while_starting_has_time() -> None:
    assert look(Sight((NEW,), answering=False, known=True), STARTING) == Conclusion()


def test_what_its_manager_is_busy_with_is_left_alone() -> None:
    for history in (UP, DOWN, STARTING, ProcessHistory()):
        assert look(Sight(busy=True), history, streak=2) == Conclusion((), 2)


def test_a_commanded_stop_is_a_death_and_an_intent() -> None:
    death, stopped = said(look(Sight(intended=True), UP))
    assert isinstance(death, ProcessDied)
    assert isinstance(stopped, ProcessStopped)
    assert stopped.expires_us == 7


def test_a_commanded_stop_is_said_once() -> None:
    stopped = DOWN._replace(stop=Intent(LONG_AGO, 1, "systemd", worked=True))
    assert look(Sight(intended=True), stopped) == Conclusion()


def test_after_an_intent_has_expired_no_new_one_is_made_of_the_old_stop() -> None:
    assert look(Sight(intended=True), DOWN) == Conclusion()


def test_a_port_that_a_stranger_answers_is_up_without_a_pid() -> None:
    (up,) = said(look(Sight((), answering=True), DOWN))
    assert isinstance(up, ProcessUp)
    assert up.pid is None


def test_a_stranger_behind_a_port_is_dead_only_after_probes_in_a_row() -> None:
    stranger = ProcessHistory(up=LONG_AGO)
    assert look(Sight((), answering=False), stranger) == Conclusion((), 1)
    assert kinds(look(Sight((), answering=False), stranger, streak=2)) == ["process-died"]


def test_after_a_reboot_the_same_numbers_are_another_process() -> None:
    rebooted = UP._replace(boot="an older boot")
    assert kinds(look(Sight(), rebooted)) == ["process-died"]
