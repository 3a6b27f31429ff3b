"""Params are refused by a schema only where the author's own model would refuse them."""

import time
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pulse_adapters.action_host.loader import _schema
from pulse_adapters.action_host.schema import accepting


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int = Field(0, ge=0, lt=10)
    deep: "Inner | None" = None


class Plain(BaseModel):
    a: int
    b: str = "x"
    c: list[float] = []
    d: Inner | None = None
    e: dict[str, Inner] = {}
    f: Literal["a", "b"] | None = None
    g: bool = False
    h: Colour = Colour.RED


class Odd(BaseModel):
    a: Annotated[int, BeforeValidator(lambda value: len(value) if isinstance(value, list) else value)] = 0
    b: datetime | None = None
    c: int = Field(0, alias="see")
    d: Path = Path()
    e: int | str | list[int] = 0


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    a: int = Field(alias="first")


class Chosen(BaseModel):
    a: int = Field(validation_alias=AliasChoices("one", "other"))


MODELS = [Inner, Plain, Odd, Named, Chosen]
texts = st.sampled_from(["", "3", "a", "red", "x", "1.5"])
leaves = st.none() | st.booleans() | st.integers(-3, 12) | st.floats(-2, 12) | texts
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefgnx"), inner, max_size=3)
    ),
)
params = st.dictionaries(
    st.sampled_from([*"abcdefghn", "deep", "see", "first", "one", "other"]), values, max_size=5
)


def accepts(model: type[BaseModel], value: Any) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


@given(st.sampled_from(MODELS), params)
def test_what_the_author_takes_is_not_refused(model: type[BaseModel], value: dict[str, Any]) -> None:
    if accepts(model, value):
        assert accepts(accepting(_schema(model)), value), value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "a: it is missing"),
        ({"a": None}, "a: None is no integer"),
        ({"a": 1, "c": ["x", {}]}, r"c\[1\]: {} is no number"),
        ({"a": 1, "d": {"n": 10}}, "d: .* is none of what it may be"),
        ({"a": 1, "e": {"k": 3}}, "e.k: 3 is no object"),
        ({"a": 1, "b": 5}, "b: 5 is no string"),
    ],
)
def test_what_is_surely_wrong_is_refused_in_words(value: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        accepting(_schema(Plain)).model_validate(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"type": 7, "properties": [], "required": 3},
        {"anyOf": [3, None]},
        {"properties": {"a": 3}, "required": [["x"]]},
        {"properties": {"a": {"minimum": "x", "items": 3}}},
    ],
)
def test_a_schema_that_makes_no_sense_breaks_nothing(schema: dict[str, Any]) -> None:
    accepts(accepting(schema), {"a": 1})


@pytest.mark.wall_clock
def test_a_schema_that_means_itself_many_times_is_not_followed_for_ever() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50}}}
    began = time.monotonic()
    assert accepts(accepting(schema), {"a": 1})
    assert time.monotonic() - began < 1
