"""How agents have done: counted from the log alone."""

from dataclasses import replace

from pulse_core.tasks.stats import MOST, MOST_LABELS, STATS, AgentCapabilityStats, LabelStats, after
from tests.unit.tasks.task_events import ONE, OTHER, TaskLog


def stats(log: TaskLog) -> AgentCapabilityStats:
    whole = after(AgentCapabilityStats(), log.events)
    half = len(log.events) // 2
    assert after(after(AgentCapabilityStats(), log.events[:half]), log.events[half:]) == whole
    assert STATS.load(STATS.dump(whole)) == whole
    return whole


def test_what_is_done_is_counted_with_its_time_and_labels() -> None:
    log = TaskLog()
    log.create(labels=("python",))
    log.say("task-assigned", agent="ada")
    log.say("task-acked", token=log.claim(), result="done")
    log.say("task-closed")
    ada = stats(log)["ada"]
    assert (ada.assigned, ada.acked, ada.closed, ada.average_duration_us) == (1, 1, 1, 1_000_000)
    assert ada.labels == {"python": LabelStats(closed=1)}
    assert stats(log).open == {}


def test_failures_in_a_row_are_counted_until_something_is_done() -> None:
    log = TaskLog()
    log.create(ONE)
    log.create(OTHER)
    log.say("task-failed", token=log.claim(), error="no", retry_us=0)
    log.say("task-released", token=log.claim(), expired=True)
    log.say("task-given-up", token=log.claim())
    ada = stats(log)["ada"]
    assert (ada.failed, ada.given_up, ada.consecutive_failures) == (3, 1, 3)
    assert ada.failed_at == log.events[-1].moment
    log.say("task-acked", OTHER, token=log.claim(OTHER))
    assert stats(log)["ada"].consecutive_failures == 0


def test_what_a_person_closes_that_was_not_done_is_no_success_of_who_gave_it_up() -> None:
    log = TaskLog()
    log.create(labels=("python",))
    log.say("task-given-up", token=log.claim())
    log.say("task-closed")
    ada = stats(log)["ada"]
    assert (ada.closed, ada.given_up, ada.labels) == (0, 1, {"python": LabelStats(failed=1)})


def test_who_gives_a_task_back_or_could_not_begin_has_not_failed() -> None:
    log = TaskLog()
    log.create()
    log.say("task-released", token=log.claim())
    log.say("task-failed", token=log.claim(), error="no room", retry_us=0, blameless=True)
    assert stats(log)["ada"].failed == 0
    assert stats(log)["nobody"].average_duration_us is None


def test_who_had_a_task_when_a_person_gave_it_up_has_not_failed() -> None:
    log = TaskLog()
    log.create()
    log.claim()
    log.say("task-given-up", why="nobody needs it any more")
    ada = stats(log)["ada"]
    assert (ada.failed, ada.given_up, ada.consecutive_failures) == (0, 0, 0)


def test_what_was_given_up_is_kept_no_more_and_counted_if_it_is_done_after_all() -> None:
    log = TaskLog()
    for id_ in (ONE, OTHER):
        log.create(id_, labels=("python",))
        log.say("task-given-up", id_)
    assert stats(log).open == {}
    log.say("task-retried")
    log.say("task-acked", token=log.claim())
    log.say("task-closed")
    ada = stats(log)["ada"]
    assert (ada.acked, ada.closed, stats(log).open) == (1, 1, {})


def test_names_and_labels_without_end_are_forgotten_but_not_who_was_given_a_task() -> None:
    log = TaskLog()
    log.create(labels=("python",))
    log.say("task-assigned", agent="ada")
    for number in range(MOST + 10):
        log.say("task-failed", token=log.claim(agent=f"nobody-{number}"), error="no", retry_us=0)
    known = stats(log)
    assert list(known)[:2] == ["ada", "nobody-11"]
    assert len(known.agents) == MOST
    assert not STATS.is_small(known), "each tick that acts would encode it"
    assert STATS.is_small(replace(known, agents={"ada": known["ada"]}))

    log = TaskLog()
    for number in range(MOST_LABELS // 20 + 1):
        log.create(id_ := f"task_{number:06}", labels=tuple(f"{number}-{one}" for one in range(20)))
        log.say("task-failed", id_, token=log.claim(id_), error="no", retry_us=0)
    labels = list(stats(log)["ada"].labels)
    assert (len(labels), labels[0]) == (MOST_LABELS, "1-0")
