"""JSON as a type, and as text from outside."""

import json
import math
import re
from typing import Any

Json = Any  # whatever the json module reads and writes; pydantic checks the shape where one is known

DEEPEST = 64
"""Levels of a JSON text from outside; what a projection puts around it must stay readable for pydantic, too."""

MOST_MARKS = 50_000
"""Commas and opening brackets of a JSON text from outside: more would hold up the loop for tens of milliseconds."""

_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: str) -> Json:
    """The value of a JSON text from outside.

    Raises JSONDecodeError if it is none, and another ValueError if it holds what no log, store or terminal could take: a
    number that is infinite or has thousands of digits, half a pair of surrogates, more than DEEPEST levels
    or MOST_MARKS values.
    """
    if sum(map(text.count, "[{,")) > MOST_MARKS:
        raise ValueError(f"it has more than {MOST_MARKS} values")
    try:
        value = _FINITE.decode(text)
    except RecursionError:
        raise _too_deep() from None
    if _HALF_A_PAIR.search(text):
        json.dumps(value, ensure_ascii=False).encode()
    if text.count("[") + text.count("{") > DEEPEST and _is_deeper(value, DEEPEST):
        raise _too_deep()
    return value


def _too_deep() -> ValueError:
    return ValueError(f"more than {DEEPEST} lists and objects lie in each other")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is no number of JSON")
    return number


_FINITE = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _is_deeper(value: Json, levels: int) -> bool:
    """Whether there are more levels; found without recursion, whose depth is bounded."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        values = (one.values() if isinstance(one, dict) else one for one in level)
        level = [inner for each in values for inner in each if isinstance(inner, dict | list)]
    return bool(level)
