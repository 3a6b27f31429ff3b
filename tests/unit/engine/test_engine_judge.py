"""Who of the engine's rules is passed over, and how its errors reach the log."""

from pulse_core.engine.engine_context import SLOW_TICKS, Quarantine
from pulse_core.engine.engine_controller import refusal, target_of
from pulse_core.engine.host_supervisor import MAX_REMEMBERED, MOST_A_SECOND, ErrorThrottle
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import ErrorReported, PromoteRequested, RollbackRequested
from pulse_core.model.payload import Payload, encode
from pulse_core.model.stored_data import REDACTED
from pulse_core.model.tick import LayerOutcome
from pulse_core.ports.engine import EngineFault
from pulse_core.projections.engine import Engine, after

DEADLINE = 250_000
BAD = EngineFault("rule:bad", "RuntimeError: no (rules/bad.py:3)")


def seen(judge: Quarantine, times: int, *faults: EngineFault, took: int = 0) -> Quarantine:
    for _ in range(times):
        judge.observe([LayerOutcome("slow", "passed", (), took)], faults, DEADLINE)
    return judge


def test_errors_in_a_row_are_too_many_and_one_good_tick_forgives_them() -> None:
    judge = seen(Quarantine(), 5, BAD)
    assert judge.verdicts(5) == {"bad": "it failed in 5 ticks in a row"}
    assert judge.verdicts(6) == {}
    assert seen(Quarantine(), 1, BAD).verdicts(1) == {"bad": "it failed in 1 tick in a row"}
    seen(judge, 1)
    assert seen(judge, 4, BAD).verdicts(5) == {}


def test_several_faults_of_one_rule_in_one_tick_count_once() -> None:
    assert seen(Quarantine(), 4, BAD, BAD).verdicts(5) == {}


def test_a_rule_that_takes_most_of_the_deadline_tick_after_tick_is_passed_over() -> None:
    assert seen(Quarantine(), SLOW_TICKS - 1, took=200_000).verdicts(0) == {}
    assert list(seen(Quarantine(), SLOW_TICKS, took=200_000).verdicts(0)) == ["slow"]
    assert seen(Quarantine(), SLOW_TICKS, took=100_000).verdicts(0) == {}


def test_faults_of_the_host_itself_are_nobodys() -> None:
    assert seen(Quarantine(), 100, EngineFault("engine", "it died")).verdicts(1) == {}


def counted(tally: ErrorThrottle, now: float, *faults: EngineFault) -> list[Draft]:
    tally.take(faults, "c", now)
    return tally.due(now)


def test_errors_are_recorded_once_a_second_with_how_often_they_came() -> None:
    tally = ErrorThrottle()
    first = counted(tally, 10.0, BAD)
    assert [(draft.subject, draft.payload) for draft in first] == [
        ("rule:bad", ErrorReported(message=BAD.message, commit="c"))
    ]
    assert counted(tally, 10.5, BAD, BAD) == []
    (later,) = counted(tally, 11.0, BAD)
    assert later.payload == ErrorReported(message=BAD.message, repeats=2, commit="c")


def test_what_is_written_as_a_secret_is_in_no_recorded_error() -> None:
    (draft,) = counted(ErrorThrottle(), 10.0, EngineFault("rule:bad", "ValueError: no, password=hunter2"))
    assert draft.payload == ErrorReported(message="ValueError: no, password=***", commit="c")


def test_errors_that_came_in_the_pause_are_recorded_after_it_though_no_more_come() -> None:
    tally = ErrorThrottle()
    counted(tally, 10.0, BAD)
    counted(tally, 10.1, BAD)
    assert len(counted(tally, 11.1)) == 1
    assert counted(tally, 12.2) == []


def test_the_end_of_a_host_is_told_apart_from_errors_that_it_bears() -> None:
    tally = ErrorThrottle()
    tally.take((BAD, BAD), "c", 1.0)
    tally.take((BAD,), "c", 1.0, ended=True)
    assert [draft.payload for draft in tally.due(1.0)] == [
        ErrorReported(message=BAD.message, repeats=1, commit="c"),
        ErrorReported(message=BAD.message, commit="c", ended=True),
    ]


def told(drafts: list[Draft]) -> list[tuple[str, int]]:
    """The message of each, and how often it came."""
    errors = [draft.payload for draft in drafts if isinstance(draft.payload, ErrorReported)]
    return [(error.message, 1 + error.repeats) for error in errors]


def test_a_new_fault_does_not_hide_behind_another_of_the_same_rule() -> None:
    other = EngineFault(BAD.whose, "KeyError: 'x' (rules/bad.py:9)")
    drafts = counted(ErrorThrottle(), 1.0, BAD, other, BAD)
    assert told(drafts) == [(BAD.message, 2), (other.message, 1)]


def test_a_rule_that_finds_ever_new_words_costs_few_records() -> None:
    flood = tuple(EngineFault(BAD.whose, "x" * number) for number in range(1, 1_001))
    assert len(counted(ErrorThrottle(), 1.0, *flood)) == MOST_A_SECOND


def test_a_flood_of_names_is_bounded_and_counted_and_makes_room_when_it_is_over() -> None:
    tally = ErrorThrottle()
    flood = tuple(EngineFault(f"rule:r{number}", "no") for number in range(10 * MAX_REMEMBERED))
    assert len(counted(tally, 1.0, *flood)) == MOST_A_SECOND
    assert counted(tally, 1.5, BAD) == []
    told, bad = counted(tally, 2.5, BAD)
    assert bad.subject == "rule:bad"
    assert (told.subject, told.payload) == (
        "engine",
        ErrorReported(message="1,991 more errors of c within a second are not recorded one by one"),
    )
    assert counted(tally, 9.0) == []


def test_of_a_flood_everybody_has_a_turn() -> None:
    tally = ErrorThrottle()
    flood = tuple(EngineFault(f"rule:r{number}", "no") for number in range(3 * MOST_A_SECOND))
    told = [draft.subject for second in range(3) for draft in counted(tally, float(second), *flood)]
    assert {fault.whose for fault in flood} <= set(told)


def test_what_is_left_out_counts_against_no_commit() -> None:
    tally = ErrorThrottle()
    counted(tally, 1.0, *(EngineFault(f"rule:r{number}", "no") for number in range(3 * MOST_A_SECOND)))
    (told,) = counted(tally, 3.0)
    assert after(Engine(commit="c"), [request(told.payload, "engine")]) == Engine(commit="c")


def request(payload: Payload, subject: str = "", data: str | None = None) -> Event:
    data = data if data is not None else encode(payload)
    return Event(1, "r", 0, "b", 0, payload.kind, subject, "person", "h", None, data)


def test_a_promote_is_of_the_commit_that_its_author_saw() -> None:
    engine = Engine(commit="b", earlier=("a",))
    assert refusal(request(PromoteRequested(previous="b"), "c"), engine) == ""
    assert "another commit is in force" in refusal(request(PromoteRequested(previous="a"), "c"), engine)


def test_a_promote_where_nothing_was_in_force_yet_is_not_refused() -> None:
    assert refusal(request(PromoteRequested(previous="main"), "c"), Engine()) == ""


def test_a_rollback_goes_to_what_is_named_or_the_one_before() -> None:
    asked = request(RollbackRequested())
    assert target_of(request(RollbackRequested(), "x"), Engine(commit="b", earlier=("a",))) == "x"
    assert target_of(asked, Engine(commit="c", earlier=("a", "b"), good="g")) == "b"
    assert refusal(asked, Engine(commit="b", good="g")) == "there is no earlier commit to go back to"


def test_a_rollback_to_what_is_in_force_is_refused() -> None:
    engine = Engine(commit="b", earlier=("a",))
    assert refusal(request(RollbackRequested(), "b"), engine) == "b is in force already"
    assert refusal(request(RollbackRequested(), "a"), engine) == ""


def test_a_request_that_was_redacted_is_refused() -> None:
    assert "redacted" in refusal(
        request(RollbackRequested(), data=REDACTED), Engine(commit="b", earlier=("a",))
    )
