"""What workers say, decoded to types in one place.

Nothing that a worker says is believed before it went through `Frames`, `parse` and `decode`. The first bounds its size;
the second what its JSON may hold: depth, numbers, characters; the third makes a typed value of it, or says what does not
fit. All raise `WorkerFault` and nothing else: whatever is wrong with a message is the fault of the worker that sent it.

pydantic is imported when the first message is decoded: a command begins its worker before, and both import meanwhile.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pulse_adapters.workers.framing import LARGEST_REPLY, Message, WorkerFault

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

T = TypeVar("T")

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG = re.compile(rb"[0-9]{19}")
"""What may be a number of more than 64 bits; to look at every number would take long."""
_WORDS = 300
MOST_KEYS = 10_000
"""Of a mapping."""


class Limits(NamedTuple):
    """What a worker's messages may hold. finite: no number in them is infinite or none at all.

    brackets: how many `[` and `{` there may be, commas: how many `,`, both in texts as well: the time that decoding takes
    grows with the values, and with lists and objects among them, more than with the size. None: any number.
    """

    size: int = LARGEST_REPLY
    depth: int = 64
    finite: bool = True
    brackets: int | None = None
    commas: int | None = None


LIMITS = Limits()


def parse(body: bytes, limits: Limits = LIMITS) -> Message:
    """The JSON object of a body, within the limits. Raises WorkerFault."""
    if len(body) > limits.size:
        raise WorkerFault(f"a message of {len(body):,} bytes; at most {limits.size:,} are taken")
    brackets = body.count(b"[") + body.count(b"{")
    if limits.brackets is not None and brackets > limits.brackets:
        raise WorkerFault(f"JSON of {brackets:,} lists and objects; at most {limits.brackets:,} are taken")
    if limits.commas is not None and (commas := body.count(b",")) > limits.commas:
        raise WorkerFault(f"JSON with {commas:,} commas; at most {limits.commas:,} are taken")
    try:
        text = body.decode()
        message = _DECODERS[limits.finite, bool(_LONG.search(body))].decode(text)
        if _SURROGATE.search(body):
            json.dumps(message, ensure_ascii=False).encode()  # a pair of them is a character, a half is none
    except (ValueError, RecursionError) as error:
        raise WorkerFault(f"what is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise WorkerFault("JSON that is no object")
    if brackets > limits.depth and _depth(message) > limits.depth:
        raise WorkerFault(f"JSON of more than {limits.depth} levels")
    return message


def _short(text: str) -> int:
    if not -(2**63) <= (number := int(text)) < 2**63:
        raise ValueError(f"{text[:20]}… takes more than 64 bits")
    return number


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is no number")
    return number


_DECODERS = {
    (finite, long): json.JSONDecoder(
        parse_float=_finite if finite else None,
        parse_constant=_finite if finite else None,
        parse_int=_short if long else None,
    )
    for finite in (True, False)
    for long in (True, False)
}


def _depth(message: Any) -> int:
    level, depth = [message], 0
    while level:
        depth += 1
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return depth


def decode(kind: type[T], value: object) -> T:
    """The value of this type that a part of a message stands for. Raises WorkerFault."""
    from pydantic import ValidationError

    try:
        found: T = validator(kind).validate_python(value)
        return found
    except ValidationError as error:
        from pulse_core.model.payload import describe

        # Many are those of a mapping; to spell them would take longer than to find them.
        count = error.error_count()
        words = describe(error)[:_WORDS] if count < 100 else f"{count:,} values of a wrong type"
        raise WorkerFault(words) from None


def validator(kind: Any) -> "SchemaValidator":
    """What decodes values of this type; made once for each."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    if kind not in _VALIDATORS:
        _VALIDATORS[kind] = SchemaValidator(_strict(TypeAdapter(kind).core_schema))
    return _VALIDATORS[kind]


_VALIDATORS: "dict[Any, SchemaValidator]" = {}


def _strict(schema: Any) -> Any:
    """A schema that takes no "1" and no true for a number, and stops at the first wrong value of many.

    To find all faults in mebibytes of nonsense would hold up the loop for seconds. A mapping has no such switch, so it is
    bounded. Arrays stand for tuples, as JSON has no others: so not all of it can be strict.
    """
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    stricter = _STRICTER.get(str(schema.get("type")), {})
    return {**{name: _strict(part) for name, part in schema.items()}, **stricter}


_FIRST_FAULT = {"fail_fast": True}
_STRICTER: Mapping[str, Mapping[str, object]] = {
    "int": {"strict": True},
    "str": {"strict": True},
    "bool": {"strict": True},
    "float": {"strict": True, "allow_inf_nan": False},
    "tuple": _FIRST_FAULT,
    "list": _FIRST_FAULT,
    "set": _FIRST_FAULT,
    "frozenset": _FIRST_FAULT,
    "dict": {"max_length": MOST_KEYS},
}
