"""What is had instead of a rule, or of anything else in a module that is not run here."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

LISTED_IN = "engine"
"""The module that lists everything. It may name, call and join what stands in, and has nothing of it."""
_USES = (
    "bool", "lt", "le", "gt", "ge", "contains", "reversed", "setitem", "delitem", "str", "format", "bytes", "fspath",
    "int", "float", "complex", "index", "round", "sub", "rsub", "mul", "rmul", "matmul", "rmatmul", "truediv",
    "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "pow", "rpow", "and", "rand", "xor",
    "rxor", "lshift", "rlshift", "rshift", "rrshift", "neg", "pos", "abs", "invert", "enter", "exit", "aenter",
    "aexit", "await", "aiter", "anext", "mro_entries", "instancecheck", "subclasscheck", "reduce_ex",
)  # fmt: skip


class NotRunHere(ImportError):
    """Something of rules or projections is wanted where they are not run."""


class Standin:
    """Something that is not run, and of which everything but its name is unknown."""

    def __init__(self, path: str) -> None:
        self.__module__, _, self.__name__ = path.rpartition(".")
        self.__qualname__ = self.__name__

    def __getattr__(self, name: str) -> "Standin":
        if name.startswith("__"):
            raise AttributeError(name)
        return Standin(f"{path_of(self)}.{name}")

    def __repr__(self) -> str:
        return f"<{path_of(self)}, which is not run here>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Standin | type | None) or type(other).__module__ == "typing":
            return self is other  # as annotations are compared
        return refuse(self)

    __hash__ = object.__hash__

    # What a list of rules is made with

    def __call__(self, *given: Any, **named: Any) -> "Standin":
        return _listed(self)

    def __add__(self, other: Any) -> "Standin":
        return _listed(self)

    __radd__ = __or__ = __ror__ = __getitem__ = __add__

    def __iter__(self) -> Iterator["Standin"]:
        return iter((_listed(self),))

    def __len__(self) -> int:
        return len((_listed(self),))

    def keys(self) -> Sequence[str]:
        """None are known: what is merged from it is empty."""
        _listed(self)
        return ()


def path_of(standin: Standin) -> str:
    """Where its author finds it."""
    return f"{standin.__module__}.{standin.__name__}"


def words_of(path: str) -> str:
    """Why it can't be had."""
    return (
        f"{path} is not run here: rules and projections run in a process of their own, which may do nothing else; "
        "put what watchers and executors need of it into a module beside engine.py"
    )


def refuse(standin: Standin, *given: Any) -> NoReturn:
    """Say why it can't be used. Raises NotRunHere."""
    raise NotRunHere(words_of(path_of(standin)))


def _listed(standin: Standin) -> Standin:
    """The same, for a line of `engine.py` that is run while that is loaded."""
    caller = sys._getframe(2)
    where = caller.f_code.co_name
    if caller.f_globals.get("__name__") != LISTED_IN or not where.startswith("<") or where == "<lambda>":
        refuse(standin)
    return standin


for _use in _USES:
    setattr(Standin, f"__{_use}__", refuse)
