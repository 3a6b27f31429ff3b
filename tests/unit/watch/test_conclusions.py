"""What follows from one look at a process."""

from typing import Any

from pulse_core.model.kinds import ProcessDied, ProcessStopped, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.projections.processes import Intent, LastStart, ProcessHistory
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.evaluate_process import LOG_GAP, ProcessConclusion, ProcessProbe, believed, conclude

MINUTE = 60_000_000
OLD, NEW = ProcessId(5, 50), ProcessId(6, 60)
LONG_AGO, NOW = Moment(0, "boot", 0), Moment(10 * MINUTE, "boot", 10 * MINUTE)
UP = ProcessHistory(pid=5, started=50, boot="boot", up=LONG_AGO)
DOWN = ProcessHistory(pid=5, started=50, boot="boot", down=LONG_AGO)
STARTING = DOWN._replace(pid=6, started=60, starting=NOW)


def look(sight: ProcessObservation, history: ProcessHistory, **more: Any) -> ProcessConclusion:
    process = ProcessSettings(name="p", start=("p",), evidence=more.pop("evidence", 3))
    return conclude(ProcessProbe(process, sight, history, more.pop("streak", 0), NOW, 7, **more))


def said(conclusion: ProcessConclusion) -> list[Payload]:
    assert {draft.subject for draft in conclusion.drafts} <= {"p"}
    return [draft.payload for draft in conclusion.drafts]


def kinds(conclusion: ProcessConclusion) -> list[str]:
    return [payload.kind for payload in said(conclusion)]


def test_alive_as_before_is_no_news() -> None:
    assert look(ProcessObservation((OLD,), None, True), UP) == ProcessConclusion()


def test_dead_as_before_is_no_news() -> None:
    assert look(ProcessObservation(), DOWN) == ProcessConclusion()


def test_what_is_alive_now_is_up() -> None:
    (up,) = said(look(ProcessObservation((NEW,)), DOWN))
    assert isinstance(up, ProcessUp)
    assert (up.pid, up.started) == NEW


def test_who_is_found_while_the_restart_is_carried_out_may_be_left_over_and_counts_for_nothing_yet() -> None:
    assert look(ProcessObservation((NEW,)), DOWN, restarting=True) == ProcessConclusion()
    assert kinds(look(ProcessObservation(), UP, restarting=True)) == ["process-died"]


def test_what_is_gone_is_dead_without_further_probes() -> None:
    assert kinds(look(ProcessObservation(), UP)) == ["process-died"]


def test_a_death_seen_by_pidfd_is_proof_even_if_its_pid_file_still_names_it() -> None:
    concluded = look(ProcessObservation(known=True), UP, proven=True)
    assert kinds(concluded) == ["process-died"]
    (died,) = said(concluded)
    assert isinstance(died, ProcessDied)
    assert (died.unexplained, died.evidence) == (True, "process 5 died, and how is not known")


def test_a_probe_that_fails_counts_and_kills_nothing() -> None:
    deaf = ProcessObservation((OLD,), answering=False, known=True)
    assert look(deaf, UP) == ProcessConclusion((), 1)
    assert look(deaf, UP, streak=1) == ProcessConclusion((), 2)
    assert kinds(look(deaf, UP, streak=2)) == ["process-died"]


def test_a_recovery_resets_the_streak() -> None:
    assert look(ProcessObservation((OLD,), answering=True, known=True), UP, streak=2) == ProcessConclusion(
        (), 0
    )


def test_evidence_can_be_asked_for_more_or_less() -> None:
    deaf = ProcessObservation((OLD,), answering=False, known=True)
    assert kinds(look(deaf, UP, evidence=1)) == ["process-died"]
    assert kinds(look(deaf, UP, streak=8, evidence=10)) == []


def test_another_process_in_its_place_is_a_death_and_a_start() -> None:
    assert kinds(look(ProcessObservation((NEW,)), UP)) == ["process-died", "process-up"]


def test_a_death_is_a_death_whatever_else_matches() -> None:
    process = ProcessSettings(name="p", start=("p",), match="p")
    died, up = conclude(ProcessProbe(process, ProcessObservation((NEW,)), UP, 0, NOW, 7)).drafts
    assert isinstance(died.payload, ProcessDied)
    assert isinstance(up.payload, ProcessUp)


def test_a_death_is_a_death_whoever_answers_at_its_port() -> None:
    died, up = said(look(ProcessObservation((), answering=True, detail="it answers"), UP, proven=True))
    assert isinstance(died, ProcessDied)
    assert isinstance(up, ProcessUp)
    assert up.pid is None


def test_who_may_be_it_is_up_and_is_not_named() -> None:
    sight = ProcessObservation((OLD, NEW), detail="it answers", doubt="nobody can tell")
    (up,) = said(look(sight, DOWN._replace(pid=None, started=None)))
    assert isinstance(up, ProcessUp)
    assert (up.pid, up.evidence) == (None, "it answers; nobody can tell")
    (sure,) = said(look(ProcessObservation((NEW,)), ProcessHistory(up=LONG_AGO)))
    assert isinstance(sure, ProcessUp)
    assert sure.pid == NEW.pid


def test_a_stranger_stands_for_it_only_where_none_was_ever_known() -> None:
    process = ProcessSettings(name="p", start=("p",), match="p")
    sight = ProcessObservation(detail="process 6 matches", unlike=(NEW,))
    doubtful = believed(process, sight, ProcessHistory())
    assert (doubtful.found, doubtful.doubt, doubtful.unlike) == ((NEW,), "process 6 matches", ())
    for history in (UP, DOWN, ProcessHistory(up=LONG_AGO, start=LastStart("effect", *OLD))):
        assert believed(process, sight, history) is sight
    by_port = process.model_copy(update={"match": None, "tcp": "127.0.0.1:1"})
    assert believed(by_port, sight, ProcessHistory()) is sight


def test_a_death_names_the_stranger() -> None:
    (death,) = said(look(ProcessObservation(detail="process 6 matches", unlike=(NEW,)), UP))
    assert isinstance(death, ProcessDied)
    assert death.evidence == "process 5 is gone; process 6 matches"


def test_a_proven_death_is_told_even_while_its_manager_is_busy() -> None:
    (death,) = said(look(ProcessObservation(busy=True), UP, proven=True))
    assert isinstance(death, ProcessDied)
    assert death.recovering


def test_an_expired_stop_of_a_person_does_not_hide_a_stop_by_its_manager() -> None:
    stopped = UP._replace(stop=Intent(LONG_AGO, 1, "ada"))
    assert kinds(look(ProcessObservation(intended=True), stopped)) == ["process-died", "process-stopped"]


def test_a_second_one_beside_it_is_no_news() -> None:
    assert look(ProcessObservation((OLD, NEW), None, True), UP) == ProcessConclusion()


def test_a_death_after_long_health_says_so() -> None:
    (death,) = said(look(ProcessObservation(), UP))
    assert isinstance(death, ProcessDied)
    assert death.healthy
    (early,) = said(look(ProcessObservation(), UP._replace(up=NOW)))
    assert isinstance(early, ProcessDied)
    assert not early.healthy


def test_what_was_never_there_is_dead_at_the_first_look() -> None:
    assert kinds(look(ProcessObservation(), ProcessHistory())) == ["process-died"]


def test_what_dies_while_starting_is_dead_before_its_grace_is_over() -> None:
    assert kinds(look(ProcessObservation(), STARTING)) == ["process-died"]


def test_what_dies_long_after_its_start_had_failed_was_not_starting_any_more() -> None:
    late = STARTING._replace(starting=NOW.plus(-MINUTE))
    told = [said(look(ProcessObservation(ended="exited with status 3"), one)) for one in (STARTING, late)]
    words = [died.evidence for (died,) in told if isinstance(died, ProcessDied)]
    head = "process 6 exited with status 3"
    assert words == [f"{head} while it was starting", f"{head} before it had come up"]


def test_what_does_not_answer_while_starting_has_time() -> None:
    assert look(ProcessObservation((NEW,), answering=False, known=True), STARTING) == ProcessConclusion()


def test_what_its_manager_is_busy_with_is_left_alone() -> None:
    for history in (UP, DOWN, STARTING, ProcessHistory()):
        assert look(ProcessObservation(busy=True), history, streak=2) == ProcessConclusion((), 2)


def test_a_commanded_stop_is_a_death_and_an_intent() -> None:
    death, stopped = said(look(ProcessObservation(intended=True), UP))
    assert isinstance(death, ProcessDied)
    assert isinstance(stopped, ProcessStopped)
    assert stopped.expires_us == 7

    assert death.intended


def test_a_commanded_stop_is_intended_from_its_first_sign_on_and_tells_how_its_process_ended() -> None:
    (death,) = said(
        look(ProcessObservation(busy=True, intended=True, ended="exited with status 0"), UP, proven=True)
    )
    assert isinstance(death, ProcessDied)
    assert death.intended
    assert death.evidence == "process 5 exited with status 0; its manager is at work"
    words = "unit was told to stop, and is failed (failed), result exit-code"
    sight = ProcessObservation(intended=True, detail=words, ended="exited with status 143")
    death, stopped = said(look(sight, UP, proven=True))
    assert isinstance(death, ProcessDied)
    assert death.evidence == f"process 5 exited with status 143; {words}"
    assert isinstance(stopped, ProcessStopped)


def test_a_restart_by_its_manager_is_intended_unless_it_may_have_died_while_nobody_looked() -> None:
    sight = ProcessObservation((NEW,), intended=True)
    death, up = said(look(sight, UP))
    assert isinstance(death, ProcessDied)
    assert (death.evidence, death.intended) == ("process 5 is gone; replaced by process 6", True)
    assert isinstance(up, ProcessUp)
    (death,) = said(look(sight._replace(answering=False), UP))  # its new process does not serve yet
    assert isinstance(death, ProcessDied)
    assert death.intended
    death, _ = said(look(sight, UP, unwatched=LONG_AGO.at + MINUTE))
    assert isinstance(death, ProcessDied)
    assert not death.intended


def test_a_death_after_which_its_manager_did_not_bring_it_back_is_told_once() -> None:
    unit = ProcessSettings(name="p", systemd_unit="p.service")
    recovering = DOWN._replace(starting=DOWN.down)
    sight = ProcessObservation(detail="unit is failed (failed), result exit-code")
    (death,) = said(conclude(ProcessProbe(unit, sight, recovering, 0, NOW, 7)))
    assert isinstance(death, ProcessDied)
    assert death.evidence == "its manager did not bring it back; unit is failed (failed), result exit-code"


def test_a_start_of_a_unit_that_failed_is_told_at_once_with_what_systemd_says_of_it() -> None:
    unit = ProcessSettings(name="p", systemd_unit="p.service")
    sight = ProcessObservation(
        detail="unit is failed (failed), result exit-code: process 9 exited with status 203"
    )

    restarted = DOWN._replace(pid=None, started=None, starting=NOW.plus(-1))
    (death,) = said(conclude(ProcessProbe(unit, sight, restarted, 0, NOW, 7)))
    assert isinstance(death, ProcessDied)
    assert death.evidence == f"its start failed: {sight.detail}"


def test_a_commanded_stop_is_said_once() -> None:
    stopped = DOWN._replace(stop=Intent(LONG_AGO, 1, "systemd", worked=True))
    assert look(ProcessObservation(intended=True), stopped) == ProcessConclusion()


def test_after_an_intent_has_expired_no_new_one_is_made_of_the_old_stop() -> None:
    assert look(ProcessObservation(intended=True), DOWN) == ProcessConclusion()


def test_a_port_that_a_stranger_answers_is_up_without_a_pid() -> None:
    (up,) = said(look(ProcessObservation((), answering=True), DOWN))
    assert isinstance(up, ProcessUp)
    assert up.pid is None


def test_a_stranger_behind_a_port_is_dead_only_after_probes_in_a_row() -> None:
    stranger = ProcessHistory(up=LONG_AGO)
    assert look(ProcessObservation((), answering=False), stranger) == ProcessConclusion((), 1)
    assert kinds(look(ProcessObservation((), answering=False), stranger, streak=2)) == ["process-died"]


def test_who_wanted_a_death_is_part_of_what_is_told_of_it() -> None:
    def told(how: str, history: ProcessHistory = UP, **more: Any) -> str:
        (died,) = said(look(ProcessObservation(ended=how), history, proven=True, **more))
        assert isinstance(died, ProcessDied)
        return died.evidence.removeprefix("process 5 ")

    term, kill = "was killed by SIGTERM", "was killed by SIGKILL"
    stopped = UP._replace(stop=Intent(NOW, MINUTE, "ada"))
    assert told(kill) == kill
    assert told(term, ended=[OLD]) == f"{term}; Pulse ended it to restart it"
    assert told(kill, ended=[OLD], killed=[OLD]).endswith(
        "; Pulse ended it to restart it, since it had not ended 10 s after SIGTERM"
    )
    assert told(kill, ended=[OLD]) == f"{kill}; Pulse was ending it to restart it"
    assert told(term, ended=[OLD], stopping=True) == f"{term}; Pulse ended it to stop it"
    limit = "web takes 2 GiB of memory (allowed: 1 GiB), for at least 5 min"
    assert told(term, ended=[OLD], limit=limit) == f"{term}; {limit}; Pulse ended it to restart it"
    assert told(kill, limit=limit) == kill, "it was restarted for that before, and died by itself now"
    assert limit not in told(term, stopped, ended=[OLD], limit=limit)
    assert told("was killed by SIGSEGV", stopped, ended=[OLD]).endswith(
        "; Pulse was ending it, as ada wanted it down"
    )
    assert told("exited with status 3", ended=[OLD]).endswith("; Pulse ended it to restart it")
    assert told(term, stopped, ended=[OLD]) == f"{term}; Pulse ended it, as ada wanted it down"
    assert told(term, stopped) == f"{term}; ada wanted it down"
    # No child of this daemon, as after its restart: nobody says how it ended.
    assert told("", stopped, ended=[OLD]) == "died; Pulse ended it, as ada wanted it down"
    assert told("", stopped) == "died, and how is not known; ada wanted it down"


def test_a_death_while_no_daemon_ran_says_between_when() -> None:
    (died,) = said(look(ProcessObservation(), UP, unwatched=NOW.at - MINUTE))
    assert isinstance(died, ProcessDied)
    assert died.evidence == (
        "process 5 is gone; it ended between 1970-01-01 00:09:00 and 00:10:00 UTC, while no daemon ran"
    )
    assert died.last_seen == NOW.at - MINUTE
    (died,) = said(look(ProcessObservation(), UP._replace(boot="before"), unwatched=NOW.at - MINUTE))
    assert isinstance(died, ProcessDied)
    assert died.evidence.endswith(", while no daemon ran, and the machine was rebooted meanwhile")
    (died,) = said(look(ProcessObservation(), UP, unwatched=NOW.at - MINUTE, unwatched_while=LOG_GAP))
    assert isinstance(died, ProcessDied)
    assert died.evidence.endswith(" 00:10:00 UTC, while the log may have a gap")
    (died,) = said(look(ProcessObservation(), UP, unwatched=NOW.at - MINUTE, ended=[OLD]))
    assert isinstance(died, ProcessDied)
    assert ("no daemon ran" in died.evidence, died.last_seen) == (False, 0)


def test_a_death_was_intended_if_pulse_ended_that_very_process() -> None:
    def intended(history: ProcessHistory, **more: Any) -> bool:
        died = said(look(ProcessObservation((NEW,)), history, **more))[0]
        assert isinstance(died, ProcessDied)
        return died.intended

    assert intended(UP, ended=[OLD])
    assert intended(UP, resumed=True)
    assert not intended(UP, ended=[NEW])
    assert not intended(UP)


def test_after_a_reboot_the_same_numbers_are_another_process() -> None:
    rebooted = UP._replace(boot="an older boot")
    assert kinds(look(ProcessObservation(), rebooted)) == ["process-died"]
