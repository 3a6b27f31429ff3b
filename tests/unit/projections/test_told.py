"""What people were told, as the log says it."""

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectCancelRequested,
    EffectExecuting,
    EffectFailed,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.projections.notices import TOPICS, Notice, Notices, ReplacedNotices, after
from tests.events import SECOND, event

HOUR_S = 3_600


def at(seconds: int) -> Moment:
    return Moment(10**15 + seconds * SECOND, "boot", seconds * SECOND)


def log(*rows: tuple[int, Payload, str]) -> list[Event]:
    return [
        event(seq, payload, subject, at=when * SECOND) for seq, (when, payload, subject) in enumerate(rows, 1)
    ]


def wish(topic: str, **params: object) -> tuple[Effect, str]:
    return Effect(action="notify", key=f"notify:{topic}", params={"title": "t", **params}), f"notify:{topic}"


def test_rules_that_tell_thousands_of_topics_have_none_of_survival_forgotten() -> None:
    (told, key), rules = wish("flapping:p", severity="critical"), range(2, 2_500)
    survival = told.model_copy(update={"survival": True, "tick": 1})
    mine = [
        (
            number,
            wish(f"mine:{number}")[0].model_copy(update={"rule": "mine", "tick": 1}),
            f"notify:mine:{number}",
        )
        for number in rules
    ]
    state = after(Notices(), log((1, survival, key), *mine))
    assert state["flapping:p"] == Notice(at(1), at(1), severity="critical")
    assert (len(state.of), state["mine:2"], state["mine:2499"] is not None) == (TOPICS, None, True)


def test_what_stands_is_not_forgotten_for_thousands_of_tasks_that_came_and_went() -> None:
    tasks = [(2 * n + over, *wish(f"task:{n}", over=bool(over))) for n in range(1, 2_000) for over in (0, 1)]
    state = after(Notices(), log((1, *wish("resource:disk:/")), *tasks))
    assert state["resource:disk:/"] == Notice(at(1), at(1))
    assert (len(state.of), state["task:1000"], state["task:1999"] is not None) == (TOPICS, None, True)


def test_a_topic_is_told_reminded_of_over_and_told_anew() -> None:
    rows = log((1, *wish("x")), (5, *wish("x")), (9, *wish("x", over=True)), (12, *wish("x")))
    states = [after(Notices(), rows[:count])["x"] for count in range(1, 5)]
    assert states == [
        Notice(at(1), at(1)),
        Notice(at(1), at(5), 2),
        Notice(at(1), at(9), 3, over=True),
        Notice(at(12), at(12)),
    ]


def test_what_a_rollback_takes_back_before_it_is_sent_was_not_told() -> None:
    asked, cancelled = EffectCancelRequested(why="was taken back"), EffectCancelled(why="cancelled")
    unsent = log((1, *wish("x")), (2, asked, "id-1"), (2, cancelled, "id-1"))
    assert after(Notices(), unsent)["x"] is None
    begun = log((1, *wish("x")), (2, EffectExecuting(), "id-1"), (2, asked, "id-1"), (3, cancelled, "id-1"))
    assert after(Notices(), begun)["x"] == Notice(at(1), at(1))
    reminder = log((1, *wish("x")), (2, EffectAcked(took_us=1), "id-1"), (5, *wish("x")), (6, asked, "id-3"))
    assert after(Notices(), reminder)["x"] == Notice(at(1), at(5), 2)
    person = [unsent[0], unsent[1]._replace(actor="ada"), unsent[2]]
    assert after(Notices(), person)["x"] == Notice(at(1), at(1))


def test_only_what_was_delivered_has_reached_somebody() -> None:
    rows = log(
        (1, *wish("x")), (2, EffectExecuting(), "id-1"), (3, EffectFailed(error="no"), "id-1"),
        (4, *wish("y")), (5, EffectExecuting(), "id-4"), (6, EffectAcked(took_us=1, result={"sent_to": ["a"]}), "id-4"),
    )  # fmt: skip
    assert after(Notices(), rows[:3]).reached is None
    assert after(Notices(), rows).reached == at(6)
    assert after(Notices(), rows).open == {}


def test_notices_begun_at_one_moment_are_one_message() -> None:
    rows = log(
        (1, *wish("x")), (1, *wish("y")), (2, EffectExecuting(), "id-1"), (2, EffectExecuting(), "id-2"),
        (9, EffectExecuting(attempt=2), "id-1"),
    )  # fmt: skip
    assert after(Notices(), rows).sent == (at(2), at(9))


def test_a_notice_that_was_only_logged_is_no_message() -> None:
    only, sent = (
        EffectAcked(took_us=1, result={"only": "logged"}),
        EffectAcked(took_us=1, result={"sent_to": ["a"]}),
    )
    rows = log(
        (1, *wish("x")), (1, *wish("y")), (2, EffectExecuting(), "id-1"), (3, EffectExecuting(), "id-2"), (4, only, "id-2"),
        (5, sent, "id-1"), (6, *wish("z")), (7, EffectExecuting(), "id-7"), (8, only, "id-7"),
    )  # fmt: skip
    assert after(Notices(), rows).sent == (at(2),)
    assert after(Notices(), rows).begun == {}


def test_a_message_that_reached_nobody_is_not_counted_but_one_that_a_crash_interrupted_is() -> None:
    no = EffectAttemptFailed(attempt=1, error="no", retry_us=1)
    rows = log(
        (1, *wish("x")), (2, EffectExecuting(), "id-1"), (3, no, "id-1"), (4, EffectExecuting(attempt=2), "id-1"),
        (5, EffectExecuting(attempt=3), "id-1"),
    )  # fmt: skip
    assert after(Notices(), rows[:3]).failed == {"id-1": at(3)}
    assert after(Notices(), rows).failed == {}
    assert after(Notices(), rows[:2]).sent == (at(2),)
    assert after(Notices(), rows[:3]).sent == ()
    assert after(Notices(), rows).sent == (at(4), at(5))


def test_a_message_counts_once_if_one_of_its_notices_has_reached_one_address() -> None:
    def no(*reached: str) -> EffectAttemptFailed:
        return EffectAttemptFailed(
            attempt=1, error="b: no", retry_us=1, result={"sent_to": reached} if reached else {}
        )

    rows = log(
        (1, *wish("x")), (1, *wish("y")), (2, EffectExecuting(), "id-1"), (2, EffectExecuting(), "id-2"),
        (3, no(), "id-1"), (4, no("a"), "id-2"), (5, EffectExecuting(attempt=2), "id-2"), (6, no(), "id-2"),
        (7, EffectExecuting(attempt=2), "id-1"), (8, EffectFailed(error="no"), "id-1"),
    )  # fmt: skip
    for cut in range(4, len(rows)):
        assert after(after(Notices(), rows[:cut]), rows[cut:]) == after(Notices(), rows)
    for number, row in enumerate(rows[4:9], 4):
        assert at(2) in after(Notices(), rows[:number]).sent, row
    assert after(Notices(), rows[:9]).sent == (at(2), at(7))
    assert (after(Notices(), rows).sent, after(Notices(), rows).unsure) == ((at(2),), ())
    none = after(Notices(), [*rows[:5], *log((4, no(), "id-2"))])
    assert none.sent == ()


def test_messages_are_forgotten_after_an_hour() -> None:
    rows = log((1, *wish("x")), *((n * HOUR_S // 2, EffectExecuting(), "id-1") for n in range(1, 6)))
    assert after(Notices(), rows).sent == (at(4 * HOUR_S // 2), at(5 * HOUR_S // 2))


def test_what_only_speaks_of_notices_is_none() -> None:
    odd = Effect(action="note", key="notify:x", params={"action": "notify"})
    rows = log((1, odd, "notify:x"), (2, EffectExecuting(), "id-1"))
    assert after(Notices(), rows) == Notices()


def test_a_notice_under_a_key_of_its_own_has_no_topic_but_is_sent() -> None:
    rows = log((1, Effect(action="notify", key="hello"), "hello"), (2, EffectExecuting(), "id-1"))
    state = after(Notices(), rows)
    assert (state.of, state.sent, list(state.open)) == ({}, (at(2),), ["id-1"])


def test_what_a_newer_notice_replaced_is_known_by_severity_and_address_until_one_is_settled() -> None:
    partly = EffectAttemptFailed(attempt=1, error="no", retry_us=1, result={"sent_to": ["error"]})
    newer, acked = EffectCancelled(why="newer", replaced=True), EffectAcked(took_us=1)
    rows = log(
        (1, *wish("x", severity="error")), (2, EffectExecuting(), "id-1"), (3, partly, "id-1"),
        (4, newer, "id-1"), (4, *wish("x")), (5, EffectExecuting(), "id-5"), (5, newer, "id-5"),
        (5, *wish("x", over=True)), (6, acked, "id-8"),
    )  # fmt: skip
    assert after(Notices(), rows[:3]).sent_to == {"id-1": ("error",)}
    both = ReplacedNotices(
        at(1).at, {"error": 1, "warning": 1}, {"error": 1}, True
    )  # an address may have any name
    assert after(Notices(), rows[:8]).replaced == {"x": both}
    for cut in range(len(rows)):
        assert after(after(Notices(), rows[:cut]), rows[cut:]) == after(Notices(), rows)
    assert (after(Notices(), rows).replaced, after(Notices(), rows).sent_to) == ({}, {})
