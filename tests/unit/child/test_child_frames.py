"""What crosses a pipe is cut into messages, and what is none is told from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.child.frames import Frames, Garbled, packed

MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9)), max_size=5)


@given(MESSAGES, st.integers(1, 40))
def test_messages_arrive_whole_however_they_are_cut(messages: list[dict[str, object]], size: int) -> None:
    raw, frames, found = b"".join(map(packed, messages)), Frames(10_000), []
    for start in range(0, len(raw), size):
        found += frames.take(raw[start : start + size])
    assert found == messages


def test_half_characters_become_question_marks() -> None:
    assert Frames(100).take(packed({"name": "a\udcff"})) == [{"name": "a?"}]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\0\0\0\x09" + b"x" * 9, "at most 8"),
        (b"\0\0\0\1x", "no JSON"),
        (b"\0\0\0\2[]", "no object"),
    ],
)
def test_what_is_no_message_is_said(raw: bytes, words: str) -> None:
    with pytest.raises(Garbled, match=words):
        Frames(8).take(raw)


def test_only_where_it_is_asked_for_must_numbers_be_finite() -> None:
    raw = packed({"n": float("nan")})
    assert Frames(100).take(raw)[0]["n"] != 0
    with pytest.raises(Garbled):
        Frames(100, finite=True).take(raw)
