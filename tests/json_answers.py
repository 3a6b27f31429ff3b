"""Whether what a command printed with `--json` is what the documentation says of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from docs.json_answers import ANSWERS, Lines
from docs.json_reference import alternatives, array_of, map_of, record_fields, type_words
from upulse_cli.output import FORMAT

PYTHON: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def check_json(words: Sequence[str], out: str) -> None:
    """Fail unless this is what the command of these words prints with `--json`, or nothing."""
    command = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in ANSWERS), None)
    if "--json" not in words or command is None or not out:
        return
    kind = ANSWERS[command]
    values = [json.loads(line) for line in out.splitlines()] if isinstance(kind, Lines) else [json.loads(out)]
    for value in values:
        found = list(faults(value, kind.kind if isinstance(kind, Lines) else kind, "", is_outermost=True))
        assert not found, f"upulse {command} --json is not what docs/json_answers.py says: {found}"


def faults(value: Any, kind: Any, path: str, is_outermost: bool = False) -> Sequence[str]:
    """What of a value is not of a type, in words; an outermost object has its format, too."""
    of_each = [list(_faults(value, one, path, is_outermost)) for one in alternatives(kind)]
    return min(of_each, key=lambda some: (any(one.startswith(f"{path} is no ") for one in some), len(some)))


def _faults(value: Any, kind: Any, path: str, is_outermost: bool) -> Iterator[str]:
    if (inner := array_of(kind)) is not None and isinstance(value, list):
        for one in value:
            yield from faults(one, inner, f"{path}[]", is_outermost)
    elif (inner := map_of(kind)) is not None and isinstance(value, dict):
        for name, one in value.items():
            yield from faults(one, inner, f"{path}[{name}]", is_outermost)
    elif (fields := record_fields(kind)) is not None and isinstance(value, dict):
        has = {**value}
        if is_outermost and has.pop("format", None) != FORMAT:
            yield f"{path} has no format"
        yield from (
            f"{path}.{name} is not there"
            for name, one in fields.items()
            if name not in has and not one.may_be_missing
        )
        for name, one in has.items():
            if name in fields:
                yield from faults(one, fields[name].kind, f"{path}.{name}")
            else:
                yield f"{path}.{name} is not documented"
    elif not _is_scalar(value, kind):
        yield f"{path} is no {type_words(kind)}: {value!r}"[:200]


def _is_scalar(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    words = type_words(kind)
    if words == "any":
        return True
    return isinstance(value, PYTHON.get(words, ())) and (words == "boolean" or not isinstance(value, bool))
