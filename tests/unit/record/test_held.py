"""What is held for a full disk: bounded, and a fold over what is left ends where a fold over all would."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.composition import FOLD
from pulse_core.model.event import Draft
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectExecuting,
    ErrorReported,
    LogMatched,
    ProcessDied,
    ProcessUp,
)
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload, encode
from pulse_core.projections.state import State
from pulse_core.record.held import HeldDrafts
from pulse_core.record.journal import provisional_event

NAMES = ("gateway", "worker")


def drafted(number: int, payload: Payload, subject: str) -> Draft:
    moment = Moment(10**15 + number, "boot", number)
    return Draft(payload, subject, id=f"id-{number}", moment=moment, data=encode(payload))


def lines(source: str, text: str = "an error") -> tuple[Payload, str]:
    return LogMatched(severity="error", lines=(text,), count=3, place={"total": 1}), source


def life(name: str, pid: int, effect: str) -> list[tuple[Payload, str]]:
    """A death, its restart with a failed attempt, and what is up again."""
    return [
        (ProcessDied(pid=pid, evidence="x", healthy=False), name),
        (Effect(action="restart-process", key=f"restart-process:{name}", params={"process": name}), ""),
        (EffectExecuting(), effect),
        (EffectAttemptFailed(attempt=1, error="x", retry_us=1), effect),
        (EffectExecuting(attempt=2), effect),
        (EffectAcked(took_us=1, result={"pid": pid + 1, "started": pid}), effect),
        (ProcessUp(pid=pid + 1, started=pid, evidence="x"), name),
    ]


def told(lives: Sequence[int]) -> list[Draft]:
    """Lives of both processes one after the other; each number says how many of its events have happened."""
    drafts: list[Draft] = []
    for number, length in enumerate(lives):
        wished = f"id-{len(drafts) + 1}"
        steps = life(NAMES[number % 2], number + 1, wished)
        for payload, subject in steps if number + 2 < len(lives) else steps[:length]:
            key = payload.key if isinstance(payload, Effect) else subject
            drafts.append(drafted(len(drafts), payload, key))
        drafts.append(drafted(len(drafts), *lines("/var/log/x")))
    return drafts


def folded(drafts: Sequence[Draft]) -> State:
    return FOLD(FOLD.start, [provisional_event(draft, seq) for seq, draft in enumerate(drafts, 1)])


def test_log_lines_give_way_first_and_the_newest_of_each_source_stays() -> None:
    held = HeldDrafts(rows=20)
    held.add([drafted(0, ProcessDied(pid=1, evidence="x", healthy=True), "gateway")])
    for number in range(1, 200):
        held.add([drafted(number, *lines(f"/log/{number % 4}"))])
    assert len(held) <= 20
    left = list(held)
    assert left[0].subject == "gateway"
    assert [one.id for one in left[-4:]] == [f"id-{number}" for number in range(196, 200)]
    assert held.left_out.total() == 200 - len(held) == held.left_out["log-matched"]
    assert held.lines == 3 * held.left_out["log-matched"]


def test_large_lines_are_bounded_in_characters() -> None:
    held = HeldDrafts(characters=100_000)
    for number in range(100):
        held.add([drafted(number, *lines("/log", "x" * 2_000))])
    assert sum(len(draft.data) for draft in held) <= 100_000
    assert held.left_out.total() + len(held) == 100


def test_more_sources_than_there_is_room_for_crowd_out_no_death() -> None:
    held = HeldDrafts(rows=20)
    held.add([drafted(0, ProcessDied(pid=1, evidence="x", healthy=True), "gateway")])
    for number in range(1, 200):
        held.add([drafted(number, ErrorReported(message="x"), f"watcher:{number}")])
    assert len(held) <= 20
    assert next(iter(held)).subject == "gateway"


def test_an_open_effect_and_a_standing_condition_are_never_left_out() -> None:
    held = HeldDrafts(rows=20)
    opened = drafted(0, Effect(action="note", key="k"), "k")
    held.add([opened, drafted(1, ConditionRaised(evidence="x"), "memory")])
    for number in range(2, 400, 2):
        held.add([drafted(number, ConditionRaised(evidence="x"), "disk:/")])
        held.add([drafted(number + 1, ConditionCleared(evidence="x"), "disk:/")])
    assert [one.id for one in held][:2] == ["id-0", "id-1"]
    assert not folded(list(held)).conditions.raised.keys() - {"memory"}


def test_where_nearly_all_has_to_stay_few_searches_are_made_for_what_does_not() -> None:
    """As where hundreds of processes die again and again while the disk is full: each search looks at all."""

    class Counted(HeldDrafts):
        searches = 0

        def _dispensable(self) -> Iterator[Sequence[str]]:
            self.searches += 1
            return super()._dispensable()

    held, number = Counted(rows=100), 0
    for _ in range(10):
        for name in map(str, range(200)):
            held.add([drafted(number := number + 1, ProcessDied(pid=1, evidence="x", healthy=True), name)])
    assert 200 <= len(held) <= 250
    assert {one.subject for one in held} == {*map(str, range(200))}
    assert held.searches < 60
    for one in list(held):
        held.remove(one.id)
    held.add([drafted(number + another, *lines("/log")) for another in range(1, 102)])
    assert len(held) <= 75, "once all is recorded the bound is what it was"


def test_a_draft_that_comes_twice_is_held_once() -> None:
    held, one = HeldDrafts(), drafted(1, *lines("/log"))
    held.add([one])
    held.add([replace(one, subject="/other")])
    assert [draft.subject for draft in held] == ["/other"]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=40), st.integers(30, 60))
def test_what_is_left_of_deaths_and_restarts_ends_like_the_whole(lives: list[int], rows: int) -> None:
    held = HeldDrafts(rows=rows)
    drafts = told(lives)
    gone: list[str] = []
    for draft in drafts:
        gone += held.add([draft])
    assert len(held) <= rows
    assert {*gone}.isdisjoint(one.id for one in held)
    assert len(gone) + len(held) == len(drafts)
    whole, left = folded(drafts), folded(list(held))
    assert left.effects.open.keys() == whole.effects.open.keys()
    for name in NAMES:
        mine, all_ = left.processes[name], whole.processes[name]
        assert (mine.pid, mine.started, mine.up, mine.down) == (all_.pid, all_.started, all_.up, all_.down)
    assert left.logs.of.keys() == whole.logs.of.keys()
