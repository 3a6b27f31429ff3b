"""What holds for every projection, over every history."""

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.event import Event
from pulse_core.projections import BUILT_IN, Phase, Projected, fold
from tests.events import WISHES, event, histories


@given(histories, st.integers(0, 60))
def test_a_fold_resumes(history: list[Event], cut: int) -> None:
    whole = fold(Projected(), history)
    assert fold(fold(Projected(), history[:cut]), history[cut:]) == whole


@given(histories, st.lists(st.integers(1, 7), max_size=30))
def test_batches_do_not_matter(history: list[Event], sizes: list[int]) -> None:
    state, rest = Projected(), history
    for size in sizes:
        state, rest = fold(state, rest[:size]), rest[size:]
    assert fold(state, rest) == fold(Projected(), history)


@given(histories)
def test_a_checkpoint_is_the_state(history: list[Event]) -> None:
    state = fold(Projected(), history)
    for name, projection in BUILT_IN.items():
        part = getattr(state, name)
        assert projection.load(projection.dump(part)) == part


@given(histories)
def test_a_fold_leaves_the_state_before_as_it_was(history: list[Event]) -> None:
    half = fold(Projected(), history[: len(history) // 2])
    before = {name: projection.dump(getattr(half, name)) for name, projection in BUILT_IN.items()}
    fold(half, history[len(history) // 2 :])
    assert before == {name: projection.dump(getattr(half, name)) for name, projection in BUILT_IN.items()}


@given(histories)
def test_keys_are_unique_among_open_effects(history: list[Event]) -> None:
    effects = fold(Projected(), history).effects
    assert sorted(effects.keys.values()) == sorted(effects.open)
    assert all(effects.open[id_].event.subject == key for key, id_ in effects.keys.items())


@given(histories)
def test_every_effect_is_open_or_counted_once(history: list[Event]) -> None:
    effects = fold(Projected(), history).effects
    settled = effects.acked + effects.failed + effects.unknown + effects.cancelled
    assert settled + len(effects.open) <= sum(row.kind == "effect" for row in history)
    assert all(
        effect.phase in (Phase.PENDING, Phase.EXECUTING, Phase.RETRYING) for effect in effects.open.values()
    )


def test_an_unknown_kind_is_passed_over_and_still_counts_as_read() -> None:
    stranger = event(1, WISHES[0])._replace(kind="from-the-future", data='{"x": 1}')
    assert fold(Projected(), [stranger]) == Projected(seq=1)
