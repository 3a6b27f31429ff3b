"""How many steps a search with a regular expression takes at most.

`re` tries one way through the expression after the other. There is a way for each place to start at, each count of a
repetition and each branch; they multiply where parts follow each other, and a repeated part raises them to a power.
Those that get past a literal are no more than the places where it stands. That is what makes `java .*Main` cheap on
an honest command line of 4,096 characters, and dear on one that says `java Main` four hundred times.
"""

import importlib
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

try:
    PARSER: Any = importlib.import_module("re._parser")
    """What `re` itself parses with; None where there is no such thing."""
except ImportError:
    PARSER = None


class Ground(NamedTuple):
    """What is searched: its length, and itself where literals can be counted in it as they stand."""

    length: int
    line: str | None = None


class Ways(NamedTuple):
    """The ways through a part from one place: how many, how many of them end at one place, and the steps of all."""

    number: float = 1
    alike: float = 1
    steps: float = 1


_NEVER = Ways(math.inf, math.inf, math.inf)


def steps(tree: Any, ground: Ground) -> float:
    """The most steps that a search takes there; infinite if that is not known, or more than can be counted."""
    if tree is None:
        return math.inf
    exact = ground if counts(tree.state.flags) else Ground(ground.length)
    starts = ground.length + 1
    return _sequence(tree, exact, Ways(starts, 1, starts)).steps


def counts(flags: int) -> bool:
    """Whether literals stand in what they match as they are."""
    return not flags & re.IGNORECASE


def runs(parts: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The parts of a sequence in their order: as (literal, None), joined as far as possible, or as ("", part)."""
    run = ""
    for part in parts:
        if str(part[0]) == "LITERAL":
            run += chr(part[1])
            continue
        if run:
            yield run, None
            run = ""
        yield "", part
    if run:
        yield run, None


def _sequence(tree: Any, ground: Ground, before: Ways = Ways(steps=0)) -> Ways:  # noqa: B008 - it is frozen
    """One part after the other."""
    number, alike, steps = before
    for run, part in runs(tree):
        if run:
            steps += number + len(run) * _past(number, alike, run[0], ground)
            number = _past(number, alike, run, ground)
        else:
            ways = _part(part, ground, tree.state)
            steps += number * ways.steps
            alike = (alike if _is_fixed(part, tree.state) else number) * ways.alike
            number *= ways.number
        if not number:
            break
        alike = min(alike, number)
    return Ways(number, alike, steps)


def _past(number: float, alike: float, literal: str, ground: Ground) -> float:
    """How many of the ways get past a literal; greedy counting misses what overlaps, at most its length times."""
    if ground.line is None:
        return number
    overlaps = any(literal.startswith(literal[place:]) for place in range(1, len(literal)))
    places = ground.line.count(literal) * (len(literal) if overlaps else 1)
    return min(number, alike * places) if places else 0


def _is_fixed(part: Any, state: Any) -> bool:
    shortest, longest = PARSER.SubPattern(state, [part]).getwidth()
    return bool(shortest == longest)


def _part(part: Any, ground: Ground, state: Any) -> Ways:
    """The ways through one part."""
    kind, what = str(part[0]), part[1]
    match kind:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "AT" | "CATEGORY":
            return Ways()
        case "SUBPATTERN":
            return _sequence(what[3], ground if counts(what[1]) else Ground(ground.length))
        case "BRANCH":
            return _branches([_sequence(branch, ground) for branch in what[1]])
        case "GROUPREF_EXISTS":
            return _branches([_sequence(branch, ground) for branch in what[1:] if branch is not None])
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _repeated(what, ground)
        case "POSSESSIVE_REPEAT":
            return Ways(steps=_repeated(what, ground).steps)
        case "ATOMIC_GROUP":
            return Ways(steps=_sequence(what, ground).steps)
        case "ASSERT" | "ASSERT_NOT":
            return Ways(steps=_sequence(what[1], ground).steps + 1)
        case "GROUPREF":
            return Ways(steps=ground.length + 1)
    return _NEVER


def _branches(ways: Sequence[Ways]) -> Ways:
    number, steps = sum(one.number for one in ways), sum(one.steps + 1 for one in ways)
    return Ways(number + 1, number + 1, steps + 1)


def _repeated(what: Any, ground: Ground) -> Ways:
    """As often as there is room for: with one way through what is repeated a way for each count, else a power."""
    least, most, body = what
    shortest, longest = body.getwidth()
    inner = _sequence(body, ground)
    room = ground.length // shortest if shortest else ground.length + 1
    times = min(int(most), room)
    if inner.number <= 1:
        ways = max(times - least, 0) + 1
        alike = 1 if 0 < shortest == longest else ways
        return Ways(ways, alike, (times + 1) * (inner.steps + 1))
    if times * math.log2(inner.number) > 64:
        return _NEVER
    total = float(sum(inner.number**count for count in range(times + 1)))
    return Ways(total, total, total * (inner.steps + 1))
