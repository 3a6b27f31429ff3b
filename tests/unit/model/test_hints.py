"""What would work, told where a name is unknown."""

from pulse_core.model.errors import hint


def test_a_list_that_is_cut_says_so() -> None:
    names = [f"n{number:02}" for number in range(14)]
    assert hint("else", names).endswith("n11 and 2 more)")
    assert hint("else", names[:12]).endswith("n11)")
