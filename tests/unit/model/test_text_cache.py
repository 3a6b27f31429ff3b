"""What is kept of texts is bounded by their length."""

from weakref import WeakSet

from pulse_core.model.text_cache import MOST, cached_by_text
from pulse_core.projections.effects import decode_effect, decode_plain_effect, source_of


class Decoded:
    """What a text came to."""


def test_the_same_text_is_asked_once_and_no_more_is_kept_than_so_many_characters() -> None:
    alive, asked = WeakSet[Decoded](), list[str]()

    @cached_by_text
    def decode(text: str) -> Decoded:
        asked.append(text)
        alive.add(found := Decoded())
        return found

    assert decode("a") is decode("a")
    assert asked == ["a"]
    for number in range(100):
        decode(f"{number}".ljust(MOST // 10))
    assert len(alive) <= 10
    decode("longer than all".ljust(MOST + 1))
    decode("short")
    assert len(alive) <= 2


def test_what_is_kept_of_effects_is_bounded_so() -> None:
    assert {type(one) for one in (decode_effect, decode_plain_effect, source_of)} == {cached_by_text}
