"""What was computed of objects is remembered until one of them is another, be it equal."""

from pulse_core.model.memo import Memo


def test_it_is_computed_anew_for_other_objects_alone() -> None:
    computed: list[tuple[dict[str, int], dict[str, int]]] = []

    def joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        computed.append((one, other))
        return {**one, **other}

    memo, one, other = Memo(joined), {"a": 1}, {"b": 2}
    assert memo(one, other) is memo(one, other) == {"a": 1, "b": 2}
    assert len(computed) == 1
    assert memo(one, dict(other)) == {"a": 1, "b": 2}
    assert len(computed) == 2
    assert memo(one, other=other) == {"a": 1, "b": 2}
    assert len(computed) == 3
