"""Kinds of events: registered with their module, checked on the way in."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest

from pulse_core.capability import Capability
from pulse_core.composition import LOADED
from pulse_core.model import kinds
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectCancelled,
    EffectFailed,
    EffectUnknown,
    ErrorReported,
)
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import KINDS, Payload, Role, decode, encode, parse, register


def kinds_in(module: ModuleType) -> list[type[Payload]]:
    """Every kind that the module defines."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Payload)]
    return [one for one in found if one.__module__ == module.__name__]


def test_every_kind_of_the_core_is_registered() -> None:
    assert len(kinds_in(kinds)) > 30
    assert all(KINDS[kind.kind] is kind for kind in kinds_in(kinds))


@pytest.mark.parametrize("capability", LOADED, ids=lambda one: str(one.name))
def test_every_kind_of_a_capability_is_registered(capability: Capability) -> None:
    if find_spec(f"pulse_core.{capability.name}.events") is None:
        assert capability.kinds == ()
        return
    assert kinds_in(import_module(f"pulse_core.{capability.name}.events")) == list(capability.kinds)


def test_a_kind_that_nobody_registered_is_not_recorded() -> None:
    class Forgotten(Payload, kind="only-in-this-test"):
        """A kind of this test."""

    with pytest.raises(TypeError, match="'only-in-this-test' is not registered; name it in the kinds"):
        encode(Forgotten())


def test_two_kinds_cannot_share_a_name() -> None:
    class Twin(Payload, kind="effect-acked"):
        """A kind of this test."""

    with pytest.raises(TypeError, match="taken by EffectAcked"):
        register((Twin,))


def test_a_kind_is_not_called_unknown_before_all_are_registered() -> None:
    asked = "from pulse_core.model.payload import decode; decode('silence-added', '{}')"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60)
    assert "import pulse_core.composition first" in done.stderr


def test_every_kind_is_kebab_case_and_says_what_it_is() -> None:
    for kind, model in KINDS.items():
        assert kind == kind.lower()
        assert "_" not in kind
        assert model.__doc__


def test_what_is_stored_comes_back_the_same() -> None:
    wish = Effect(action="note", key="k", params={"a": [1, {"b": None}]}, samples=(3, 4))
    assert decode("effect", encode(wish)) == wish


def test_an_unknown_kind_decodes_to_nothing() -> None:
    assert decode("from-the-future", "{}") is None


def test_an_unknown_kind_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'effect-acked'"):
        parse("effect-aked", {})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [({}, "took_us: Field required"), ({"took_us": 1, "x": 2}, "x: Extra"), ({"took_us": "soon"}, "took_us")],
)
def test_a_payload_from_outside_is_told_what_is_wrong(data: dict[str, object], complaint: str) -> None:
    with pytest.raises(Refused, match=complaint):
        parse("effect-acked", data)


def test_a_copy_that_holds_nonsense_is_not_recorded() -> None:
    nonsense = EffectAcked(took_us=1).model_copy(update={"took_us": "late"})
    with pytest.raises(Refused, match="took_us"):
        encode(nonsense)


def test_a_message_of_any_length_is_cut_rather_than_refused() -> None:
    assert len(ErrorReported(message="x" * 100_000).message) == 2_000


def test_only_the_daemon_may_say_how_an_effect_went() -> None:
    said = {model.kind for model in kinds_in(kinds) if model.by < Role.DAEMON}
    assert said == {
        "effect",
        "effect-cancel-requested",
        "engine-disabled",
        "engine-enabled",
        "event-redacted",
        "gc-requested",
        "paused",
        "process-restart-requested",
        "process-start-requested",
        "promote-requested",
        "rollback-requested",
        "process-stop-requested",
        "reload-requested",
        "resumed",
        "safe-mode-left",
    }


def test_what_settles_an_effect_are_kinds_that_there_are() -> None:
    assert {KINDS[kind] for kind in SETTLING} == {EffectAcked, EffectFailed, EffectUnknown, EffectCancelled}


def test_a_process_that_stays_builds_the_models_of_the_core_at_once() -> None:
    code = (
        "from pulse_core.model.kinds import CORE_KINDS; from pulse_core.model.payload import KINDS, build_models;"
        "print(any(one.__pydantic_complete__ for one in KINDS.values()), build_models(CORE_KINDS),"
        " all(one.__pydantic_complete__ for one in KINDS.values()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "False None True\n"
