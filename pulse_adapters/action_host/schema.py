"""Refuses params that an executor could not take, by the schema that its child has told. Pure.

It refuses less than the author's model does, never more: what only that can tell fails when the action is begun.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from pydantic import RootModel, model_validator

_DEEP, _STEPS = 20, 2_000
"""How deep a schema is followed, and how many of its parts are looked at: who wrote it is not trusted."""
_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "null": (type(None),),
    # As pydantic takes them: numbers and truth may be written as text.
    "integer": (int, float, str),
    "number": (int, float, str),
    "boolean": (int, float, str),
}
Schema = Mapping[str, Any]


class EffectParams(RootModel[dict[str, Any]]):
    """Params as they stand in the effect."""


def accepting(schema: Schema) -> type[EffectParams]:
    """A model of what a schema accepts."""

    class Accepted(EffectParams):
        @model_validator(mode="after")
        def fits(self) -> "Accepted":
            """Refuse what is surely wrong."""
            if wrong := next(_SchemaLook(schema).faults(self.root, schema, ""), ""):
                raise ValueError(wrong)
            return self

    return Accepted


class _SchemaLook:
    """One look at a value; what is not looked at any more is taken for right."""

    def __init__(self, whole: Schema) -> None:
        definitions = whole.get("$defs")
        self._definitions: Mapping[str, Any] = definitions if isinstance(definitions, dict) else {}
        self._steps = 0

    def faults(self, value: Any, schema: Any, path: str, deep: int = 0) -> Iterator[str]:
        """What is surely wrong with a value."""
        schema = self._meant(schema)
        self._steps += 1
        if schema is None or deep > _DEEP or self._steps > _STEPS:
            return
        if isinstance(ways := schema.get("anyOf"), list):
            if ways and all(any(self.faults(value, way, path, deep + 1)) for way in ways):
                yield f"{path or 'params'}: {_short(value)} is none of what it may be"
            return
        kind = "" if "format" in schema else schema.get("type")  # a time may be a number as well
        if isinstance(kind, str) and not isinstance(value, _TYPES.get(kind, object)):
            yield f"{path or 'params'}: {_short(value)} is no {kind}"
        elif isinstance(value, dict):
            yield from self._of_object(value, schema, path, deep)
        elif isinstance(value, list) and "items" in schema:
            for place, one in enumerate(value):
                yield from self.faults(one, schema["items"], f"{path}[{place}]", deep + 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _of_number(value, schema, path)

    def _of_object(self, value: dict[str, Any], schema: Schema, path: str, deep: int) -> Iterator[str]:
        known, needed, others = (
            schema.get(name) for name in ("properties", "required", "additionalProperties")
        )
        known = known if isinstance(known, dict) else {}
        for name in needed if isinstance(needed, list) else ():
            if isinstance(name, str) and name not in value:
                yield f"{_below(path, name)}: it is missing"
        for name, one in value.items():
            if name not in known and others is False:
                yield f"{_below(path, name)}: there is no such parameter (there are: {', '.join(known)})"
            else:
                yield from self.faults(one, known.get(name, others), _below(path, name), deep + 1)

    def _meant(self, schema: Any) -> Schema | None:
        """The schema itself, or the one that it refers to."""
        for _ in range(_DEEP):
            if not isinstance(schema, dict):
                return None
            if not isinstance(reference := schema.get("$ref"), str):
                return schema
            schema = self._definitions.get(reference.rpartition("/")[2])
        return None


def _of_number(value: float, schema: Schema, path: str) -> Iterator[str]:
    for name, is_within in _BOUNDS.items():
        bound = schema.get(name)
        if isinstance(bound, int | float) and not is_within(value, bound):
            yield f"{path}: {value} is beyond its {name} of {bound}"


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else words[:57] + "..."
