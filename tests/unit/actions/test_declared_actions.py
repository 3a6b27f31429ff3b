"""What is declared of actions is what their executors carry out, and what folds take them for."""

from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_core.actions import BUILT_IN, ActionDeclaration
from pulse_core.composition import ACTIONS, declaration_of, effect_fault
from pulse_core.daemon import CurrentSettings
from pulse_core.engine.rollback_engine import RollbackEngine
from pulse_core.execute.on_demand import ExecutorOnDemand
from pulse_core.model.kinds import Effect
from pulse_core.model.names import OUTWARD
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from upulse_cli.wiring.executors import machine_executors

NAMES = [one.name for one in BUILT_IN]


async def test_each_executor_of_a_daemon_carries_out_what_is_declared_and_nothing_declared_is_left(
    tmp_path: Path,
) -> None:
    made = machine_executors(Home(tmp_path), CurrentSettings(Settings()), View())
    try:
        executors = {
            action: one.executor if isinstance(one, ExecutorOnDemand) else one
            for action, one in made.executors.items()
        }
        carried_out = {action: one.params for action, one in executors.items()}
    finally:
        made.close()
    assert {**carried_out, RollbackEngine.action: RollbackEngine.params} == {
        name: one.params for name, one in ACTIONS.items()
    }


def test_every_name_is_declared_once() -> None:
    assert sorted(set(NAMES)) == NAMES


def test_the_outward_actions_that_folds_know_are_declared() -> None:
    assert set(NAMES) >= OUTWARD


@pytest.mark.parametrize("one", ACTIONS.values(), ids=ACTIONS)
def test_what_an_action_is_exclusive_by_is_one_of_its_params(one: ActionDeclaration) -> None:
    assert not one.exclusive_by or one.exclusive_by in one.params.model_fields
    assert one.summary


def test_of_an_engines_own_action_nothing_is_declared() -> None:
    mine = declaration_of("mine")
    assert (mine.exclusive_by, mine.is_reserved) == ("", False)


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (Effect(action="restart-proces", key="k"), "did you mean 'restart-process'"),
        (Effect(action="restart-process", key="k"), "process: Field required"),
        (Effect(action="restart-process", key="k", params={"process": "gateway"}), ""),
    ],
)
def test_a_wish_that_nobody_would_carry_out_is_complained_of(effect: Effect, words: str) -> None:
    assert words in effect_fault(effect, {})
    assert bool(words) == bool(effect_fault(effect, {}))
