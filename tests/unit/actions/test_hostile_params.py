"""Whatever the params of an effect hold, to judge them raises nothing, and a refusal is a sentence."""

from typing import Any

import pytest

from pulse_adapters.memory.executors import MemoryExecutor, MemoryRestart
from pulse_core.composition import ACTIONS
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import FoldResult
from pulse_core.record.gate import check_executable, claims_of
from pulse_core.testing import given

HOSTILE: tuple[Any, ...] = (
    None, True, -1, 2**70, 10**4000, 1e308, float("nan"), float("inf"), "", "\0", "\ud800", "../..", "x" * 100_000,
    [], ["g"], [["g"]], {}, {"g": []}, {"pid": "x", "started": None, "pattern": []}, [{}] * 1000,
)  # fmt: skip
GUARDED = {"process": [{"name": "g", "start": ["g"]}]}


class Strict(MemoryExecutor):
    """An executor with the declared params."""

    @property
    def params(self) -> Any:
        return ACTIONS[self.action].params


@pytest.mark.parametrize("action", ACTIONS)
def test_params_that_no_executor_takes_are_judged_without_a_word_of_python(action: str) -> None:
    snapshot = given(settings=GUARDED).snapshot
    executor = Strict(action)
    names = {*ACTIONS[action].params.model_fields, "process", "for_condition", "nobody knows"}
    for name in sorted(names):
        for value in HOSTILE:
            effect = Effect(action=action, key="k", rule="mine", params={name: value})
            fault = filter_effects(FoldResult(Verdict((effect,))), snapshot).faults
            assert all(one.whose == "rule:mine" for one in fault)
            try:
                check_executable({action: executor}, effect)
            except PulseError:
                continue
            claims_of(effect)


def test_an_executor_that_cannot_judge_params_refuses_them() -> None:
    class Helpless(MemoryExecutor):
        def check(self, params: Any) -> None:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "half a character")

    with pytest.raises(Refused, match="params of note: UnicodeEncodeError: "):
        check_executable({"note": Helpless("note")}, Effect(action="note", key="k"))


def test_a_restart_of_no_process_is_refused_in_memory_too() -> None:
    effect = Effect(action="restart-process", key="k", params={"for_condition": "memory"})
    with pytest.raises(Refused, match="process: Field required"):
        check_executable({"restart-process": MemoryRestart()}, effect)
