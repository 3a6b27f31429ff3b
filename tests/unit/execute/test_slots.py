"""The executor's slots: who may begin when others hold many."""

from pulse_core.execute.slots import SURVIVAL, Slots, holder
from pulse_core.model.kinds import Effect


def held(slots: Slots, **counts: int) -> Slots:
    for who, count in counts.items():
        for number in range(count):
            slots.take(f"{who}-{number}", who)
    return slots


def test_what_others_hold_takes_nothing_from_survival() -> None:
    slots = held(Slots(lambda: 4), collect=4, notify=2)
    assert not slots.has_room("notify")
    assert not slots.has_room("another")
    assert slots.has_room(SURVIVAL)


def test_one_action_holds_two_thirds_at_most() -> None:
    slots = held(Slots(lambda: 4), collect=4)
    assert not slots.has_room("collect")
    assert slots.has_room("another")
    assert held(Slots(lambda: 1), collect=1).has_room("another")


def test_what_survival_holds_is_bounded_too() -> None:
    slots = held(Slots(lambda: 2), **{SURVIVAL: 2})
    assert not slots.has_room(SURVIVAL)
    assert slots.has_room("collect")


def test_a_slot_is_free_again_once() -> None:
    slots = held(Slots(lambda: 4), collect=2)
    slots.take("collect-0", "collect")
    slots.release(["collect-0", "collect-0", "nobody"])
    assert str(slots) == "collect 1"


def test_a_lower_number_of_slots_counts_at_once() -> None:
    most = [8]
    slots = held(Slots(lambda: most[0]), a=3, b=3)
    most[0] = 4
    assert not slots.has_room("c")


def test_who_would_hold_a_slot_is_told_by_the_effect_not_by_its_params() -> None:
    forged = Effect(action="note", key="k", params={"survival": True})
    assert holder(forged.model_dump_json()) == "note"
    assert holder(Effect(action="note", key="k", survival=True).model_dump_json()) == SURVIVAL
