"""The declaration of an action: what holds for all of its effects, whichever rule and executor."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from pulse_core.model.actions import OUTWARD
from pulse_core.model.errors import Refused
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.payload import describe
from pulse_core.projections import Snapshot, State


def no_objection(effect: Effect, state: State, now: Moment) -> str:
    """No objection."""
    return ""


def no_refusal(effect: Effect, curr: Snapshot) -> str:
    """No refusal: any rule may request it."""
    return ""


def never_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Never too soon: it may be requested again at once."""
    return False


@dataclass(frozen=True, slots=True)
class ActionDeclaration:
    """One action.

    params: the model of its effects' params; summary: what it does, for people;
    exclusive_by: the param whose value only one open effect may have at a time, or nothing;
    is_reserved: whether only survival rules may request effects whose key begins with its name;
    objection: why an effect of survival's must not begin now, though it was right when it was requested;
    refusal: why a rule of the engine may never request such an effect;
    is_too_soon: whether a rule of the engine may not request it yet. All three are pure.
    """

    name: str
    params: type[BaseModel]
    summary: str = ""
    exclusive_by: str = ""
    is_reserved: bool = False
    objection: Callable[[Effect, State, Moment], str] = no_objection
    refusal: Callable[[Effect, Snapshot], str] = no_refusal
    is_too_soon: Callable[[Effect, Snapshot], bool] = never_too_soon

    @property
    def is_outward(self) -> bool:
        """Whether it notifies people, and changes nothing on this machine."""
        return self.name in OUTWARD


def parsed_params(model: type[BaseModel], effect: Effect) -> Any:
    """The effect's params as this model; raises Refused with what is wrong in them."""
    try:
        return model.model_validate(effect.params)
    except ValidationError as error:
        raise Refused(f"params of {effect.action}: {describe(error)}") from error
