"""The life of an effect: every state with every event that could befall it."""

import pytest

from pulse_core.composition import FOLD
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import Payload
from pulse_core.projections.effects import MOVES, OPEN, Effects, Phase, after
from tests.events import OUTCOMES, event

WISH = event(1, Effect(action="note", key="k"), "k")
REACHING: dict[Phase, list[int]] = {Phase.PENDING: [], Phase.EXECUTING: [0], Phase.RETRYING: [0, 1]}
SETTLED = (Phase.ACKED, Phase.FAILED, Phase.UNKNOWN, Phase.CANCELLED)


def brought_to(phase: Phase) -> Effects:
    rows = [WISH, *(event(seq, OUTCOMES[index], WISH.id) for seq, index in enumerate(REACHING[phase], 2))]
    return after(Effects(), rows)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.kind)
@pytest.mark.parametrize("phase", REACHING, ids=lambda phase: phase.value)
def test_an_effect_moves_as_the_table_says_and_not_otherwise(phase: Phase, outcome: Payload) -> None:
    before = brought_to(phase)
    now = after(before, [event(9, outcome, WISH.id)])
    target = MOVES.get((phase, outcome.kind), phase)
    if target in OPEN:
        assert now.open[WISH.id].phase is target
    else:
        assert WISH.id not in now.open
        assert getattr(now, target.value) == getattr(before, target.value) + 1


@pytest.mark.parametrize("second", OUTCOMES, ids=lambda outcome: outcome.kind)
def test_what_is_settled_stays_settled(second: Payload) -> None:
    settled = after(brought_to(Phase.EXECUTING), [event(9, OUTCOMES[2], WISH.id)])
    assert after(settled, [event(10, second, WISH.id)]) == settled


def test_every_open_phase_can_be_left_for_good() -> None:
    for phase in OPEN:
        assert any(start is phase and end in SETTLED for (start, _), end in MOVES.items())


def test_attempts_are_counted() -> None:
    assert brought_to(Phase.RETRYING).open[WISH.id].attempt == 1
    again = after(brought_to(Phase.RETRYING), [event(9, OUTCOMES[0], WISH.id)])
    assert again.open[WISH.id].attempt == 2


def test_the_keys_that_were_settled_longest_ago_are_forgotten_first() -> None:
    state = Effects()
    for number in range(2_500):
        wish = event(2 * number + 1, Effect(action="note", key=f"k{number}"), f"k{number}")
        rows = [wish, event(2 * number + 2, OUTCOMES[5], wish.id)]
        state = after(state, rows)
    assert "k2499" in state.settled_at
    assert "k0" not in state.settled_at
    assert len(state.settled_at) == 1_000


def test_others_keys_crowd_out_none_that_survival_requested() -> None:
    state, seq = Effects(), 0
    for number in range(2_400):
        is_own = number % 2 == 0
        wish = Effect(action="note", key=f"k{number}", tick=1, survival=is_own)
        rows = [event(seq + 1, wish, wish.key)]
        rows.append(event(seq + 2, OUTCOMES[5], rows[0].id))
        state, seq = after(state, rows), seq + 2
    for number in range(1_500):
        rows = [event(seq + 1, Effect(action="note", key=f"o{number}", tick=1), f"o{number}")]
        rows.append(event(seq + 2, OUTCOMES[5], rows[0].id))
        state, seq = after(state, rows), seq + 2
    own = [key for key in state.settled_at if key in state.of_survival]
    assert own == [f"k{number}" for number in range(400, 2_400, 2)]
    assert [key for key in state.settled_at if key not in own] == [
        f"o{number}" for number in range(500, 1_500)
    ]


def test_only_what_rules_emitted_counts_and_only_for_a_minute_survivals_apart_from_the_others() -> None:
    by_hand = Effect(action="note", key="by-hand")
    wishes = [Effect(action="note", key=f"k{number}", tick=1) for number in range(3)]
    wishes += [wish.model_copy(update={"survival": True, "key": f"s-{wish.key}"}) for wish in wishes]
    rows = [event(1, by_hand, "by-hand")]
    rows += [event(seq, wish, wish.key, at=seq * 40_000_000) for seq, wish in enumerate(wishes, 2)]
    state = after(Effects(), rows)
    assert (len(state.acted), len(state.wished)) == (2, 2)


def test_notices_of_survival_are_free_and_those_of_others_are_not() -> None:
    wishes = [
        Effect(action="notify", key="theirs", tick=1), Effect(action="notify", key="own", tick=1, survival=True)
    ]  # fmt: skip
    state = after(Effects(), [event(seq, wish, wish.key) for seq, wish in enumerate(wishes, 1)])
    assert (len(state.acted), len(state.wished)) == (0, 1)


def test_an_effect_by_hand_whose_params_speak_of_a_tick_counts_against_no_budget() -> None:
    by_hand = Effect(action="note", key="by-hand", params={"tick": 7, "survival": True})
    state = after(Effects(), [event(1, by_hand, "by-hand")])
    assert (state.acted, state.wished, state.last_tick) == ((), (), 0)


def test_params_that_name_another_action_are_no_effect_of_it() -> None:
    params = {"action": "notify", "process": "gateway", "words": ["restart-process", "stop-process"]}
    wish = event(1, Effect(action="note", key="k", params=params), "k")
    state = FOLD(FOLD.start, [wish])
    assert state.notices.open == {}
    assert (state.processes.restarting, state.processes.stopping) == ({}, {})
