"""Models are built when the first value is validated: a process pays for those that it uses, and for no other."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from pulse_core.composition import Settings
from pulse_core.settings.groups import Group

BUILT = """
from pydantic import BaseModel


def built(base):
    for model in base.__subclasses__():
        if model.__pydantic_complete__:
            print(model.__name__)
        built(model)


built(BaseModel)
"""


def built_by(code: str) -> list[str]:
    """The models that are built in a new interpreter once it has run this code."""
    ran = subprocess.run(
        [sys.executable, "-c", code + BUILT], capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stdout.split()


def groups(base: type[Group] = Group) -> Iterator[type[Group]]:
    for group in base.__subclasses__():
        yield group
        yield from groups(group)


def test_the_composition_builds_no_model_of_any_kind_action_or_group() -> None:
    assert (
        built_by("import pulse_core.composition, pulse_core.tick.ticker, pulse_core.watch.evaluate_resources")
        == []
    )


def test_settings_by_default_build_no_model() -> None:
    assert (
        built_by("from pulse_core.composition import FOLD, Settings; Settings(), FOLD.dump(FOLD.start)") == []
    )


def test_settings_that_are_read_build_their_own_model_alone() -> None:
    assert built_by("from pulse_core.composition import Settings; Settings.model_validate({})") == [
        "Settings"
    ]


def test_projections_that_hold_nothing_are_loaded_without_an_adapter() -> None:
    code = (
        "import pydantic.type_adapter as module; from pulse_core.composition import FOLD;"
        "module.TypeAdapter.__init__ = None; assert FOLD.load(FOLD.dump(FOLD.start), 0) == FOLD.start"
    )
    assert built_by(code) == []


def test_an_event_builds_the_model_of_its_kind_alone() -> None:
    code = (
        "import pulse_core.composition; from pulse_core.model.payload import decode; decode('paused', '{}')"
    )
    assert built_by(code) == ["Paused"]


@pytest.mark.parametrize("group", sorted(groups(), key=str))
def test_the_defaults_of_a_group_are_what_its_model_would_make_of_nothing(group: type[Group]) -> None:
    """They are not validated where they are written."""
    try:
        validated = group.model_validate({})
    except ValidationError as refused:
        with pytest.raises(ValidationError, match=re.escape(refused.errors()[0]["msg"])):
            group()
        return
    made = group()
    assert made == validated
    assert made.model_fields_set == validated.model_fields_set == set()
    again = group.model_validate(group.model_construct().model_dump(by_alias=True))
    assert again == made


def test_what_is_no_setting_is_refused_when_a_group_is_made() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Settings(nothing=1)  # type: ignore[call-arg]  # that is what is wrong with it
