"""What ticks record of rules is bounded, and what is left out is counted."""

from pulse_core.engine import record_limit
from pulse_core.engine.record_limit import RecordLimit
from pulse_core.model.tick import LayerOutcome


def size(layers: tuple[LayerOutcome, ...]) -> int:
    return sum(len(layer.rule) + sum(map(len, layer.notes)) for layer in layers)


def test_what_few_rules_note_is_recorded_as_it_is() -> None:
    layers = tuple(LayerOutcome(f"rule_{n}", "passed", ("one", "another"), n) for n in range(40))
    assert RecordLimit().bounded(layers, 0.0) == layers


def test_notes_without_end_are_counted_in_a_last_one() -> None:
    (one,) = RecordLimit().bounded((LayerOutcome("talks", "passed", ("x",) * 245),), 0.0)
    assert one.notes == (*("x",) * record_limit.NOTES, "and 225 more notes")


def test_a_long_note_is_cut() -> None:
    (one,) = RecordLimit().bounded((LayerOutcome("talks", "passed", ("ä" * 2_000, "y")),), 0.0)
    assert len(one.notes[0]) == record_limit.NOTE_LENGTH
    assert one.notes[1] == "y"


def test_the_notes_of_all_rules_of_a_tick_have_one_bound() -> None:
    layers = tuple(LayerOutcome(f"rule_{n}", "passed", ("x" * 500,) * 20) for n in range(50))
    found = RecordLimit().bounded(layers, 0.0)
    assert size(found) < 2 * record_limit.BYTES
    assert [layer.notes[-1] for layer in found[-2:]] == ["and 20 more notes"] * 2


def test_ticks_without_end_record_no_more_than_fits_a_second() -> None:
    limit, seconds = RecordLimit(), 120
    layers = tuple(LayerOutcome(f"rule_{n}", "passed", ("x" * 500,) * 20) for n in range(300))
    recorded = sum(size(limit.bounded(layers, tick / 20)) for tick in range(seconds * 20))
    assert recorded < record_limit.BURST + seconds * 2 * record_limit.BYTES_A_SECOND
    quiet = (LayerOutcome("rule", "passed", ("heard again",)),)
    assert limit.bounded(quiet, seconds + 3_600.0) == quiet
