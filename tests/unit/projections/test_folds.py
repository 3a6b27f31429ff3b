"""What holds for every projection, over every history."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.kinds import LogMatched, ProcessDied
from pulse_core.projections.effects import Phase
from pulse_core.projections.fold import Fold
from pulse_core.projections.notices import Notices
from pulse_core.projections.state import (
    CORE,
    EFFECTS,
    LOGS,
    NOTICES,
    OWN,
    State,
    StateProjection,
    encode_in_pieces,
    encode_values,
)
from tests.events import WISHES, event, histories


@dataclass(frozen=True)
class Counted:
    """The value of a small projection."""

    died: int = 0


@given(histories)
def test_in_pieces_the_text_is_the_same(history: list[Event]) -> None:
    state = FOLD(FOLD.start, history)
    whole = {"dumped": [state.seq, None], "windows": {"a": [], "b": [[1, 2.5, {"c": "d"}], "e"]}, "none": {}}
    whole |= {one.name: state.of(one) for one in FOLD.projections.values()}
    assert "".join(encode_in_pieces(whole)) == encode_values(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(JSON, st.integers(0, 3))
def test_whatever_is_encoded_in_pieces_the_text_is_the_same(value: object, levels: int) -> None:
    wide = {"list": [value] * 100, "of": dict.fromkeys(range(100), value), "one": value}
    assert "".join(encode_in_pieces(wide, levels)) == encode_values(wide)


def test_short_values_are_encoded_together_and_a_long_one_by_itself() -> None:
    assert len([*encode_in_pieces(dict.fromkeys(range(1_000), 1), levels=1)]) == 2 + 16
    long = encode_values([0] * 60)
    assert [*encode_in_pieces([[0] * 60] * 3)] == ["[", long, f",{long}", f",{long}", "]"]


def test_of_many_logs_no_piece_of_the_text_is_long_and_ticks_are_stored_without_them() -> None:
    matched = LogMatched(severity="error", lines=("ERROR " + "x" * 200,), count=1, place={"total": 1})
    rows = [event(number, matched, f"/{number}") for number in range(1, 1_001)]
    state = FOLD(FOLD.start, rows)
    assert max(map(len, encode_in_pieces(state.logs))) < 2_000
    assert not LOGS.is_small(state.logs)


@given(histories, st.integers(0, 60))
def test_a_fold_resumes(history: list[Event], cut: int) -> None:
    whole = FOLD(FOLD.start, history)
    assert FOLD(FOLD(FOLD.start, history[:cut]), history[cut:]) == whole


@given(histories, st.lists(st.integers(1, 7), max_size=30))
def test_batches_do_not_matter(history: list[Event], sizes: list[int]) -> None:
    state, rest = FOLD.start, history
    for size in sizes:
        state, rest = FOLD(state, rest[:size]), rest[size:]
    whole = FOLD(FOLD.start, history)
    assert FOLD(state, rest) == whole
    assert FOLD.dump(FOLD(state, rest)) == FOLD.dump(whole)  # in the same order, too


@given(histories)
def test_a_checkpoint_is_the_state(history: list[Event]) -> None:
    state = FOLD(FOLD.start, history)
    for name, projection in FOLD.projections.items():
        part = state.of(projection)
        assert projection.load(projection.dump(part)) == part, name


@given(histories)
def test_a_fold_leaves_the_state_before_as_it_was(history: list[Event]) -> None:
    half = FOLD(FOLD.start, history[: len(history) // 2])
    before = FOLD.dump(half)
    FOLD(half, history[len(history) // 2 :])
    assert before == FOLD.dump(half)


@given(histories)
def test_keys_are_unique_among_open_effects(history: list[Event]) -> None:
    effects = FOLD(FOLD.start, history).effects
    assert sorted(effects.keys.values()) == sorted(effects.open)
    assert all(effects.open[id_].event.subject == key for key, id_ in effects.keys.items())


@given(histories)
def test_every_effect_is_open_or_counted_once(history: list[Event]) -> None:
    effects = FOLD(FOLD.start, history).effects
    settled = effects.acked + effects.failed + effects.unknown + effects.cancelled
    assert settled + len(effects.open) <= sum(row.kind == "effect" for row in history)
    assert all(
        effect.phase in (Phase.PENDING, Phase.EXECUTING, Phase.RETRYING) for effect in effects.open.values()
    )


def test_an_unknown_kind_is_passed_over_and_still_counts_as_read() -> None:
    stranger = event(1, WISHES[0])._replace(kind="from-the-future", data='{"x": 1}')
    assert FOLD(FOLD.start, [stranger]) == replace(FOLD.start, seq=1)


def test_the_cores_own_projections_are_all_listed() -> None:
    assert {one.name for one in CORE} == OWN


def test_a_projection_of_a_capability_has_its_value_in_the_state() -> None:
    def counted(value: Counted, events: Iterable[Event]) -> Counted:
        return Counted(value.died + sum(one.kind == "process-died" for one in events))

    counts = StateProjection("counts", 1, Counted, frozenset({"process-died"}), counted)
    fold = Fold((*CORE, counts))
    death = event(1, ProcessDied(pid=1, evidence="x", healthy=True), "gateway")
    state = fold(fold.start, [death, event(2, WISHES[0])])
    assert state.of(counts) == Counted(1)
    assert state.of(EFFECTS) is state.effects
    assert State().of(counts) == Counted(0)
    assert fold.load(fold.dump(state), 2) == state
    assert fold(state, [event(3, WISHES[1])]).of(counts) is state.of(counts)


def test_equal_sets_are_dumped_alike() -> None:
    """In each process their members have another order, and a checkpoint is compared by its text."""
    names = [f"id-{number}" for number in range(100)]
    notices = Notices(of_rules=frozenset(names), interrupted=frozenset(reversed(names)))
    told = json.loads(NOTICES.dump(notices))
    assert told["of_rules"] == told["interrupted"] == sorted(names)
    assert NOTICES.load(NOTICES.dump(notices)) == notices
