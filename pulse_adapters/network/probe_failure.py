"""The failure of a probe's target. Imported in the child: only what is cheap."""

import re
from collections.abc import Iterator

BYTES = re.compile(r"""\b(bytearray\()?b('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?(1)\))""")
"""How Python spells bytes, with which libraries quote what they were sent; the second group is that in quotes."""


class ProbeFailed(Exception):
    """The target failed. trouble: a value of `pulse_core.ports.Trouble`; the words go into the evidence; status: of a page
    that answered with one."""

    def __init__(self, trouble: str, words: str, status: int | None = None) -> None:
        super().__init__(words)
        self.trouble, self.words, self.status = trouble, words, status


def library_words(error: BaseException) -> str:
    """What a library says of an error, with what the server sent as text."""
    return BYTES.sub(r"\2", str(error)) or type(error).__name__


def seconds_text(number: float) -> str:
    """A timeout in words."""
    return f"{number:.3g} s"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and the chain of its causes, the root cause last."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from causes(one)
        error = error.__cause__ or error.__context__
