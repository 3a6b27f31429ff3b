"""What workers say, decoded to types in one place.

Nothing that a worker says is believed before it went through `Frames`, `parse` and `decode`. The first bounds its size;
the second what its JSON may hold: depth, numbers, characters; the third makes a typed value of it, or says what does not
fit. All raise `WorkerFault` and nothing else: whatever is wrong with a message is the fault of the worker that sent it.
"""

import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pulse_adapters.workers.framing import LARGEST_REPLY, Message, WorkerFault

T = TypeVar("T")
Decoder = Callable[[Any], Any]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_QUOTED = 100


class Limits(NamedTuple):
    """What a worker's messages may hold. finite: no number in them is infinite or none at all."""

    size: int = LARGEST_REPLY
    depth: int = 64
    finite: bool = True


LIMITS = Limits()


class AtMost:
    """How many characters a text may have, or how many values a list or an object."""

    def __init__(self, most: int) -> None:
        self.most = most


class CutTo:
    """After how many characters a text is cut."""

    def __init__(self, most: int) -> None:
        self.most = most


class Between:
    """The least and the largest that a number may be."""

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most


Seq = Annotated[int, Between(0, 2**63 - 1)]
"""A place in the log, or a count."""
_WHOLE, _MOST = Between(-(2**63), 2**63 - 1), AtMost(10_000)


def parse(body: bytes, limits: Limits = LIMITS) -> Message:
    """The JSON object of a body, within the limits. Raises WorkerFault."""
    try:
        text = body.decode()
        message = _FINITE.decode(text) if limits.finite else json.loads(text)
        if _SURROGATE.search(body):
            json.dumps(message, ensure_ascii=False).encode()  # a pair of them is a character, a half is none
    except (ValueError, RecursionError) as error:
        raise WorkerFault(f"what is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise WorkerFault("JSON that is no object")
    if body.count(b"[") + body.count(b"{") > limits.depth and _depth(message) > limits.depth:
        raise WorkerFault(f"JSON of more than {limits.depth} levels")
    return message


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is no number")
    return number


_FINITE = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


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
    """The typed value that a part of a message stands for. Raises WorkerFault.

    kind: built of None, bool, int, float, str, `X | None`, Literal, enums, `tuple[X, ...]`, `tuple[X, Y]`, `frozenset[X]`,
    `Mapping[str, X]`, named tuples, dataclasses and pydantic models; `Any` takes any JSON. Bounds stand in `Annotated`.
    """
    try:
        made: Decoder = decoder(kind)
        found: T = made(value)
        return found
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise WorkerFault(str(error)[:1_000]) from None


def decoder(kind: Any) -> Decoder:
    """What makes such a value of JSON, or raises ValueError; made once for each type."""
    return _decoder(kind)


@cache
def _decoder(kind: Any) -> Decoder:
    bounds: tuple[Any, ...] = ()
    if get_origin(kind) is Annotated:
        kind, *rest = get_args(kind)
        bounds = tuple(rest)
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind](bounds)
    if origin in (Union, types.UnionType):
        return _optional(inner)
    if origin is Literal:
        return lambda value: _known(value, inner)
    if origin in (tuple, frozenset, Sequence):
        return _list(origin, inner, bounds)
    if origin is Mapping or origin is dict:
        return _object(decoder(inner[1]), decoder(inner[0]), bounds)
    if hasattr(kind, "model_validate"):
        return lambda value: kind.model_validate(value)
    if hasattr(kind, "__members__"):
        return lambda value: kind(_known(value, tuple(one.value for one in kind)))
    return _record(kind)


def _of_kind(kind: Any, bounds: tuple[Any, ...]) -> Any:
    """The first bound of this kind, if there is one."""
    return next((one for one in bounds if isinstance(one, kind)), None)


def _any(_: tuple[Any, ...]) -> Decoder:
    return lambda value: value


def _whole(_: tuple[Any, ...]) -> Decoder:
    return lambda value: _of(value, dict, "an object")


def _none(_: tuple[Any, ...]) -> Decoder:
    return lambda value: _known(value, (None,))


def _bool(_: tuple[Any, ...]) -> Decoder:
    return lambda value: _of(value, bool, "true or false")


def _int(bounds: tuple[Any, ...]) -> Decoder:
    bound = _of_kind(Between, bounds) or _WHOLE
    least, most = bound.least, bound.most

    def whole(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{_shown(value)} instead of a whole number from {least:g} to {most:g}")
        return value

    return whole


def _float(bounds: tuple[Any, ...]) -> Decoder:
    bound = _of_kind(Between, bounds) or Between(-math.inf, math.inf)
    least, most = bound.least, bound.most

    def number(value: Any) -> float:
        if type(value) not in (int, float) or not least <= value <= most:
            raise ValueError(f"{_shown(value)} instead of a number from {least:g} to {most:g}")
        return float(value)

    return number


def _str(bounds: tuple[Any, ...]) -> Decoder:
    cut, most, pattern = (_of_kind(kind, bounds) for kind in (CutTo, AtMost, re.Pattern))

    def text(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{_shown(value)} instead of a text")
        if most and len(value) > most.most:
            raise ValueError(f"a text of {len(value):,} characters; at most {most.most:,} are taken")
        if pattern and not pattern.fullmatch(value):
            raise ValueError(f"{_shown(value)}, which has not the form {pattern.pattern}")
        return value[: cut.most] if cut else value

    return text


_PLAIN: Mapping[Any, Callable[[tuple[Any, ...]], Decoder]] = {
    Any: _any, dict: _whole, None: _none, types.NoneType: _none, bool: _bool, int: _int, float: _float, str: _str,
}  # fmt: skip


def _optional(kinds: tuple[Any, ...]) -> Decoder:
    (kind,) = (
        one for one in kinds if one is not types.NoneType
    )  # of other unions nobody could tell which is meant
    some = decoder(kind)
    return lambda value: None if value is None else some(value)


def _list(origin: Any, inner: tuple[Any, ...], bounds: tuple[Any, ...]) -> Decoder:
    most = (_of_kind(AtMost, bounds) or _MOST).most
    made = frozenset if origin is frozenset else tuple
    if origin is tuple and inner[-1] is not Ellipsis:
        return _row([decoder(one) for one in inner])
    each = decoder(inner[0])

    def values(value: Any) -> Any:
        if not isinstance(value, list) or len(value) > most:
            raise ValueError(f"{_shown(value)} instead of a list of at most {most:,}")
        return made(map(each, value))

    return values


def _row(each: Sequence[Decoder]) -> Decoder:
    def row(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(each):
            raise ValueError(f"{_shown(value)} instead of {len(each)} values")
        return tuple(one(part) for one, part in zip(each, value, strict=True))

    return row


def _object(each: Decoder, name: Decoder, bounds: tuple[Any, ...]) -> Decoder:
    most = (_of_kind(AtMost, bounds) or _MOST).most

    def table(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > most:
            raise ValueError(f"{_shown(value)} instead of an object of at most {most:,} names")
        return {name(key): each(one) for key, one in value.items()}

    return table


def _record(kind: Any) -> Decoder:
    """A named tuple or a dataclass, from an object with the names of its fields or, a named tuple, from a row of them."""
    hints = get_type_hints(kind, include_extras=True)
    names = getattr(kind, "_fields", None) or tuple(kind.__dataclass_fields__)
    each = {name: decoder(hints[name]) for name in names}

    def record(value: Any) -> Any:
        if isinstance(value, list) and hasattr(kind, "_fields") and len(value) <= len(names):
            value = dict(zip(names, value, strict=False))
        if not isinstance(value, dict):
            raise ValueError(f"{_shown(value)} instead of an object")
        if strange := [name for name in value if name not in each]:
            raise ValueError(f"{_shown(strange[0])}, which is no part of {kind.__name__}")
        return kind(**{name: _named(name, each[name], one) for name, one in value.items()})

    return record


def _named(name: str, made: Decoder, value: Any) -> Any:
    try:
        return made(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _known(value: Any, known: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(one) and value == one for one in known):
        raise ValueError(f"{_shown(value)} instead of one of {', '.join(map(str, known))}")
    return value


def _of(value: Any, kind: type, words: str) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{_shown(value)} instead of {words}")
    return value


def _shown(value: Any) -> str:
    """A value in a few words, whatever its size."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return "an enormous number"
    return repr(value[:_QUOTED] if isinstance(value, str) else value)
