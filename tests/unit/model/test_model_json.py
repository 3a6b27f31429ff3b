"""JSON from outside: what everything behind the door can bear, or an error with a reason."""

import json

import pytest

from pulse_core.model.json_types import DEEPEST, read_json


def test_ordinary_values_are_as_json_has_them() -> None:
    for text in (
        '{"a": [1, -2.5e3, "é\\ud83d\\ude00", null, true]}',
        "5",
        '""',
        "9" * 4_000,
        "[[[" * 3 + "]]]" * 3,
    ):
        assert read_json(text) == json.loads(text)


def test_as_many_levels_as_are_allowed_and_no_more() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")):
        levels = DEEPEST // len(closing)
        text = opening * levels + "1" + closing * levels
        assert json.dumps(read_json(text)).replace(" ", "") == text
        with pytest.raises(ValueError, match="more than 64 lists and objects"):
            read_json(f"[{text}]")
    assert len(read_json("[" + "[]," * 100 + "[]]")) == 101


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        '"\\udc00"',
        '{"\\uD800": 1}',
        "9" * 5_000,
    ],
)
def test_what_nothing_can_use_is_an_error_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]") as caught:
        read_json(text)
    assert not isinstance(caught.value, json.JSONDecodeError)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "x", "\0", "'a'"])
def test_what_is_no_json_is_said_so(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_json(text)
