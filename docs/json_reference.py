"""What types of `docs.json_answers` are in JSON, and the part of the documentation that lists them."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

from docs.json_answers import ANSWERS, Lines

SCALARS: Mapping[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", Path: "string",
}  # fmt: skip
ARRAYS = (Sequence, list, tuple, frozenset, set)


class Field(NamedTuple):
    """A field of an object: its type, and whether it may be missing."""

    kind: Any
    may_be_missing: bool = False


def record_fields(kind: Any) -> Mapping[str, Field] | None:
    """The fields of a type that is an object of known fields in JSON; None of any other."""
    if is_typeddict(kind):
        return {name: Field(of, name in kind.__optional_keys__) for name, of in get_type_hints(kind).items()}
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        return {one.alias or name: Field(one.annotation) for name, one in kind.model_fields.items()}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: Field(of) for name, of in get_type_hints(kind).items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {one.name: Field(hints[one.name]) for one in fields(kind)}
    return None


def alternatives(kind: Any) -> Sequence[Any]:
    """The types of a union, or the one."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (NoneType if kind is None else kind,)


def array_of(kind: Any) -> Any:
    """The type of an array's elements; None of what is no array."""
    return (get_args(kind) or (Any,))[0] if get_origin(kind) in ARRAYS else None


def map_of(kind: Any) -> Any:
    """The type of the values of an object whose keys are names; None of any other."""
    return get_args(kind)[1] if get_origin(kind) in (Mapping, dict) else None


def type_words(kind: Any, name: Any = lambda record: record.__name__) -> str:
    """A type as JSON has it; name: how objects of known fields are called."""
    return " or ".join(_words_of_one(one, name) for one in alternatives(kind))


def _words_of_one(kind: Any, name: Any) -> str:
    if (inner := array_of(kind)) is not None:
        return f"array of {type_words(inner, name)}"
    if (inner := map_of(kind)) is not None:
        return f"object of {type_words(inner, name)}"
    if record_fields(kind) is not None:
        return str(name(kind))
    if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return "string"
    return SCALARS.get(kind, "any")


def records(kind: Any) -> Iterator[Any]:
    """The objects of known fields in a type, and those in them."""
    for one in alternatives(kind.kind if isinstance(kind, Lines) else kind):
        inner = array_of(one) or map_of(one)
        if inner is not None:
            yield from records(inner)
        elif (of := record_fields(one)) is not None:
            yield one
            for field in of.values():
                yield from records(field.kind)


def answer_words(kind: Any, name: Any = lambda record: record.__name__) -> str:
    """What a command prints."""
    return f"lines of {type_words(kind.kind, name)}" if isinstance(kind, Lines) else type_words(kind, name)


def answers() -> str:
    """What each command prints, and each of these objects."""
    table = "\n".join(
        ["| command | prints |", "|---|---|"]
        + [f"| `upulse {words}` | {answer_words(kind, _link)} |" for words, kind in ANSWERS.items()]
    )
    found = dict.fromkeys(record for kind in ANSWERS.values() for record in records(kind))
    return "\n\n".join([table, *(_chapter(one) for one in found if not issubclass(one, BaseModel))])


def _shown(record: Any) -> str:
    return str(record.__name__).removesuffix("Json")


def _link(record: Any) -> str:
    if issubclass(record, BaseModel):
        return "[the settings](configuration.md)"
    return f"[{_shown(record)}](#{_shown(record).lower()})"


def _chapter(record: Any) -> str:
    rows = "\n".join(
        f"| `{name}` | {type_words(field.kind, _link)}{', or missing' if field.may_be_missing else ''} |"
        for name, field in (record_fields(record) or {}).items()
    )
    return f"### {_shown(record)}\n\n{inspect.getdoc(record)}\n\n| field | type |\n|---|---|\n{rows}"
