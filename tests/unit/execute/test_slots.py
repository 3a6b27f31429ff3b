"""The executor's slots: who may begin when others hold many."""

from pulse_core.execute.slots import SURVIVAL, Holder, Slots, holder, holder_of
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Slot
from pulse_core.projections.effects import Source

NOTIFY, COMMAND, BEEP = (holder_of(action, Source.RULES) for action in ("notify", "run-command", "beep"))

STARTS = Holder(Slot.START)


def held(slots: Slots, *holders: tuple[Holder, int]) -> Slots:
    for who, count in holders:
        for number in range(count):
            slots.take(f"{who}-{number}", who)
    return slots


def rooms(slots: Slots, *holders: Holder) -> list[bool]:
    return [slots.has_room(who) for who in holders]


def people(who: Holder) -> Holder:
    return who._replace(source=Source.PEOPLE)


def test_what_rules_hold_takes_nothing_from_survival_or_people() -> None:
    slots = held(Slots(lambda: 4), (COMMAND, 4), (NOTIFY, 2))
    assert rooms(slots, NOTIFY, COMMAND, BEEP) == [False, False, False]
    assert rooms(slots, SURVIVAL, people(NOTIFY), people(COMMAND), people(BEEP)) == [True] * 4


def test_what_people_hold_is_bounded_likewise() -> None:
    slots = held(Slots(lambda: 4), (people(COMMAND), 4), (people(NOTIFY), 2))
    assert rooms(slots, people(BEEP), BEEP, SURVIVAL) == [False, True, True]


def test_one_action_holds_two_thirds_at_most() -> None:
    assert rooms(held(Slots(lambda: 4), (COMMAND, 4)), COMMAND, NOTIFY) == [False, True]
    assert rooms(held(Slots(lambda: 1), (COMMAND, 1)), COMMAND, NOTIFY) == [False, True]


def test_an_engines_own_actions_leave_room_for_what_else_rules_wish() -> None:
    slots = held(Slots(lambda: 4), (BEEP, 2), (holder_of("moo", Source.RULES), 3))
    assert rooms(slots, BEEP, holder_of("quack", Source.RULES), NOTIFY) == [False, False, True]
    assert rooms(held(Slots(lambda: 1), (BEEP, 1)), holder_of("moo", Source.RULES), NOTIFY) == [False, True]


def test_an_action_may_declare_that_fewer_of_it_run_at_a_time() -> None:
    collect = holder_of("collect", Source.RULES)
    assert rooms(held(Slots(lambda: 4), (collect, 1)), collect, people(collect), COMMAND) == [
        False,
        True,
        True,
    ]


def test_what_survival_holds_is_bounded_too() -> None:
    assert rooms(held(Slots(lambda: 2), (SURVIVAL, 2)), SURVIVAL, STARTS, COMMAND) == [False, True, True]
    assert rooms(held(Slots(lambda: 2), (STARTS, 2)), SURVIVAL, STARTS, COMMAND) == [True, False, True]
    assert str(held(Slots(lambda: 2), (STARTS, 2), (SURVIVAL, 1))) == "start 2 of survival, 1 of survival"


def test_what_waits_for_a_process_to_end_takes_no_slot() -> None:
    slots = held(Slots(lambda: 2), (Holder(Slot.NONE), 40))
    assert rooms(slots, Holder(Slot.NONE), SURVIVAL, STARTS, COMMAND) == [True] * 4
    assert str(slots) == ""


def test_a_slot_is_free_again_once() -> None:
    slots = held(Slots(lambda: 4), (COMMAND, 2), (people(NOTIFY), 1))
    slots.take(f"{COMMAND}-0", COMMAND)
    slots.release([f"{COMMAND}-0", f"{COMMAND}-0", "nobody"])
    assert str(slots) == "run-command 1 of rules, notify 1"


def test_of_many_holders_the_largest_are_told_of() -> None:
    many = [(holder_of(f"beep-{number}", source=Source.PEOPLE), 1) for number in range(12)]
    assert str(held(Slots(lambda: 32), (COMMAND, 2), *many)).startswith("run-command 2 of rules, beep-0 1, ")
    assert str(held(Slots(lambda: 32), *many)).endswith("beep-9 1, 2 others")
    assert str(held(Slots(lambda: 32), *many[1:])).endswith("beep-9 1, beep-10 1, 1 other")


def test_a_lower_number_of_slots_counts_at_once() -> None:
    most = [8]
    slots = held(Slots(lambda: most[0]), (COMMAND, 3), (NOTIFY, 3))
    most[0] = 4
    assert not slots.has_room(holder_of("clean-paths", source=Source.RULES))


def test_who_would_hold_a_slot_is_told_by_the_effect_not_by_its_params() -> None:
    forged = Effect(action="note", key="k", params={"survival": True, "tick": 3})
    assert holder(forged.model_dump_json()) == holder_of("note", source=Source.PEOPLE)
    assert holder(Effect(action="note", key="k", tick=3).model_dump_json()) == holder_of(
        "note", source=Source.RULES
    )
    assert holder(Effect(action="note", key="k", tick=3, survival=True).model_dump_json()) == SURVIVAL
