"""What an unknown name may have meant."""

from pulse_core.model.errors import hint

GATEWAY = "llm:http://127.0.0.1:4000"


def test_a_name_that_begins_with_what_was_written_is_nearer_than_one_that_looks_like_it() -> None:
    other, own = "llm:http://127.0.0.1:4001", f"{GATEWAY}/health/liveliness"
    assert hint(GATEWAY, [other, own]) == f" (did you mean {own!r}?)"
    assert hint("", [own]) == f" (there are: {own})"
