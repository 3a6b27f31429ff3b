"""What a worker says is bounded, then typed; whatever does not fit is a fault of that worker and nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.workers.framing import Frames, WorkerFault, encode, frame
from pulse_adapters.workers.host_messages import encode as encode_values
from pulse_adapters.workers.message_types import CutTo, Seq
from pulse_adapters.workers.messages import Limits, decode, parse

NUMBERS = st.integers(-(2**63), 2**63 - 1)
MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), NUMBERS | st.text(max_size=9)), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass(frozen=True)
class Shape:
    name: Annotated[str, CutTo(5)]
    points: tuple[Point, ...] = ()
    colour: Colour | None = None


@given(MESSAGES, st.integers(1, 40))
def test_messages_arrive_whole_however_they_are_cut(messages: list[dict[str, Any]], size: int) -> None:
    raw, frames, found = b"".join(map(encode, messages)), Frames(10_000), list[object]()
    for start in range(0, len(raw), size):
        found += map(parse, frames.take(raw[start : start + size]))
    assert found == messages


@pytest.mark.parametrize("encoded", [encode, encode_values])
def test_half_characters_become_question_marks(encoded: Any) -> None:
    assert [parse(body) for body in Frames(100).take(encoded({"name": "a\udcff"}))] == [{"name": "a?"}]


def test_a_message_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(WorkerFault, match="a message of 9 bytes; at most 8 are taken"):
        list(Frames(8).take((9).to_bytes(4, "big")))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"x", "no JSON"),
        (b"", "no JSON"),
        (b"\xff{}", "no JSON"),
        ("{}".encode("utf-16"), "no JSON"),
        (b"[]", "no object"),
        (b'{"n": NaN}', "no number"),
        (b'{"n": -Infinity}', "no number"),
        (b'{"n": 1e999}', "no number"),
        (b'{"n": %s}' % (b"9" * 5_000), "no JSON"),
        (b'{"n": 9223372036854775808}', "9223372036854775808… takes more than 64 bits"),
        (b'{"n": [{"deep": -9223372036854775809}]}', "more than 64 bits"),
        (b'{"text": "\\ud800"}', "no JSON"),
        (b'{"\\uDFFF": 1}', "no JSON"),
        (b'{"deep": %s%s}' % (b"[" * 70, b"]" * 70), "more than 64 levels"),
        (b'{"deep": %s%s}' % (b"[" * 100_000, b"]" * 100_000), "no JSON"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "more than 64 levels"),
    ],
)
def test_what_is_no_message_is_a_fault(body: bytes, words: str) -> None:
    with pytest.raises(WorkerFault, match=words):
        parse(body)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse(b'{"x": "\\ud83d\\ude00"}') == {"x": "\U0001f600"}


def test_many_values_beside_each_other_are_not_deep() -> None:
    assert parse(json.dumps({"rows": [[1]] * 1_000}).encode()) == {"rows": [[1]] * 1_000}


def test_only_where_it_is_asked_for_may_a_number_be_none() -> None:
    assert parse(b'{"n": NaN}', Limits(finite=False))["n"] != 0


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (str, "x", "x"),
        (Annotated[str, CutTo(2)], "xyz", "xy"),
        (int, -5, -5),
        (Seq, 2**63 - 1, 2**63 - 1),
        (float, 1, 1.0),
        (bool, False, False),
        (None, None, None),
        (Any, {"x": [1]}, {"x": [1]}),
        (int | None, None, None),
        (int | None, 3, 3),
        (Literal["dns", "http"], "dns", "dns"),
        (Colour, "red", Colour.RED),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[str, int], ["a", 2], ("a", 2)),
        (frozenset[str], ["a", "a"], frozenset("a")),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
        (Point, {"x": 1}, Point(1)),
        (Point, [1, 2], Point(1, 2)),
        (
            Shape,
            {"name": "s", "points": [{"x": 1}, [2, 3]], "colour": "blue"},
            Shape("s", (Point(1), Point(2, 3)), Colour.BLUE),
        ),
    ],
)
def test_a_value_of_its_type_is_taken(kind: Any, value: object, found: object) -> None:
    assert decode(kind, value) == found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, 5),
        (int, 1.0),
        (int, True),
        (int, "1"),
        (int, 1.5),
        (float, True),
        (float, "nan"),
        (float, float("nan")),
        (bool, 1),
        (bool, "yes"),
        (tuple[int, ...], [1, "2"]),
        (Point, {"x": True}),
        (int, "x"),
        (float, "x"),
        (bool, 2),
        (Seq, -1),
        (Seq, 2**70),
        (bool, None),
        (None, 0),
        (int | None, "x"),
        (Literal["dns", "http"], "tls"),
        (Colour, "green"),
        (Colour, ["red"]),
        (tuple[int, ...], {"0": 1}),
        (tuple[int, ...], "12"),
        (tuple[str, int], ["a"]),
        (tuple[str, int], ["a", 1, 2]),
        (frozenset[str], [["a"]]),
        (Mapping[str, int], [1]),
        (Mapping[str, int], {"a": "b"}),
        (Point, {}),
        (Point, {"x": 1, "z": 2}),
        (Point, [1, 2, 3]),
        (Shape, ["s"]),
        (Shape, {"name": "s", "points": 5}),
    ],
)
def test_a_value_of_no_such_type_is_a_fault(kind: Any, value: object) -> None:
    with pytest.raises(WorkerFault):
        decode(kind, value)


def test_a_fault_names_the_part_and_is_short_whatever_was_said() -> None:
    with pytest.raises(WorkerFault, match=r"^points.0.x: Input should be a valid integer"):
        decode(Shape, {"name": "s", "points": [{"x": "a"}]})
    with pytest.raises(WorkerFault, match=r"^0: Input should be a valid integer$"):
        decode(tuple[int, ...], ["x"] * 10**6)  # the others are not looked at
    counts: Any = Mapping[str, int]
    with pytest.raises(WorkerFault, match="20,000 values of a wrong type"):
        decode(counts, dict.fromkeys(map(str, range(20_000)), "x"))
    with pytest.raises(WorkerFault, match="at most 10000 items"):
        decode(counts, dict.fromkeys(map(str, range(20_000)), 1))
    for value in ("x" * 10**6, [0] * 10**5):
        with pytest.raises(WorkerFault) as caught:
            decode(Point, {"x": value})
        assert len(str(caught.value)) <= 300


@given(st.sampled_from([str, Seq, float, Colour, tuple[Point, ...], Mapping[str, Shape], Shape]), JSON)
def test_whatever_is_said_it_is_a_value_or_a_fault(kind: Any, value: object) -> None:
    try:
        decode(kind, value)
    except WorkerFault:
        return


@given(st.binary(max_size=200))
def test_whatever_bytes_come_they_are_messages_or_a_fault(raw: bytes) -> None:
    for given_ in (raw, frame(raw)):
        try:
            for body in Frames(1_000).take(given_):
                parse(body)
        except WorkerFault:
            continue
