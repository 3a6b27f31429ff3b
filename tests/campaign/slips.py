"""Slips of the keyboard: what may stand in a program instead of one of its parts, and how that is told."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

SWAPS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitOr: ast.BitAnd,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
DECORATING = frozenset({"plus", "within", "noting"})
EMPTY: dict[str, Any] = {"str": "''", "int": "0", "tuple": "()", "list": "[]", "Sequence": "()"}
"""What a function returns instead, by its annotation; for others it is None, and the contrary for a bool."""
SHORT, LONG = 12, 60
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node hangs: below which others, in which field of the nearest, and at which index if that is a list."""

    node: Any
    above: tuple[Any, ...]
    field: str
    index: int | None

    @property
    def parent(self) -> Any:
        return self.above[-1]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The classes and functions around it, outermost first."""
        return tuple(node for node in self.above if isinstance(node, Scope))

    @property
    def statement(self) -> ast.stmt:
        """The innermost statement that it is, or is part of."""
        return next(node for node in (self.node, *reversed(self.above)) if isinstance(node, ast.stmt))

    @property
    def in_function(self) -> bool:
        return any(not isinstance(scope, ast.ClassDef) for scope in self.scopes)

    def put(self, node: Any) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def slips(place: Place) -> Iterator[tuple[Any, Any]]:
    """What may stand there instead, and how that is told: the node in whose words it is, or the words."""
    node, parent = place.node, place.parent
    match node:
        case ast.Constant(value=bool() as flag):
            yield ast.Constant(not flag), parent
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1), _telling(place)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield ast.Compare(left, [SWAPS[type(op)]()], [right]), node
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(SWAPS[type(op)](), values), node
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS:
            yield ast.BinOp(left, SWAPS[type(op)](), right), node
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand, node
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in CALLS:
            yield ast.Call(ast.Name(CALLS[name], ast.Load()), args, keywords), node
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in DECORATING:
            yield inner, node
        case ast.Return(value=ast.expr() as value):
            yield from _other_return(node, value, place.scopes[-1])
        case ast.If(orelse=[]) | ast.AugAssign() | ast.Continue():
            yield ast.Pass(lineno=node.lineno), node
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Call()):
            yield ast.Pass(lineno=node.lineno), node
        case ast.Assign() if isinstance(parent, ast.If | ast.For):
            yield ast.Pass(lineno=node.lineno), node
    if place.field in {"test", "ifs"} and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node), node
    yield from _fewer(node, parent)
    if isinstance(node, ast.Tuple) and isinstance(parent, ast.AnnAssign):
        yield from _other_order(node)


def _telling(place: Place) -> Any:
    """The smallest expression around a number that says what it is for."""
    return next(
        node for node in reversed(place.above) if len(spelled(node)) > SHORT or isinstance(node, ast.stmt)
    )


def _fewer(node: Any, parent: Any) -> Iterator[tuple[Any, str]]:
    """The same without one of its parts: a line of a table, an operand, an argument that may be left out."""
    match node:
        case ast.Dict(keys=keys, values=values):
            for n, key in enumerate(keys):
                lacks = spelled(key) if key else f"**{spelled(values[n])}"
                yield ast.Dict(_without(keys, n), _without(values, n)), f"{{…}} without {lacks}"
        case ast.List() | ast.Tuple() if isinstance(node.ctx, ast.Load) and not _is_spread(node, parent):
            for n, part in enumerate(node.elts):
                yield type(node)(_without(node.elts, n), node.ctx), f"{_short(node)} without {_short(part)}"
        case ast.Set(elts=[_, _, *_] as parts):
            for n, part in enumerate(parts):
                yield ast.Set(_without(parts, n)), f"{_short(node)} without {_short(part)}"
        case ast.BoolOp(op=op, values=parts):
            for n, part in enumerate(parts):
                rest = _without(parts, n)
                left = ast.BoolOp(op, rest) if rest[1:] else rest[0]
                yield left, f"{spelled(node)} without {spelled(part)}"
        case ast.Call(func=func, args=args, keywords=keywords):
            for n, part in enumerate(args):
                if isinstance(part, ast.Starred):
                    call = ast.Call(func, _without(args, n), keywords)
                    yield call, f"{spelled(func)}(…) without {spelled(part)}"
            for n, keyword in enumerate(keywords):
                if not _is_word(keyword.value):
                    call = ast.Call(func, args, _without(keywords, n))
                    yield call, f"{spelled(func)}(…) without {spelled(keyword)}"


def _is_spread(node: ast.AST, parent: Any) -> bool:
    """Whether its parts go to as many names, or are names for others: not one of them can be missing."""
    return isinstance(parent, ast.Assign) and (
        isinstance(parent.targets[0], ast.Tuple) or spelled(parent.targets[0]) == "__all__"
    )


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _other_order(node: ast.Tuple) -> Iterator[tuple[Any, str]]:
    """A table that says that its order matters, with two of its lines in each other's place."""
    for n, (one, two) in enumerate(pairwise(node.elts)):
        swapped = [*node.elts[:n], two, one, *node.elts[n + 2 :]]
        yield ast.Tuple(swapped, ast.Load()), f"{_short(two)} before {_short(one)}"


def _without(items: list[Any], n: int) -> list[Any]:
    return items[:n] + items[n + 1 :]


def _other_return(node: ast.Return, value: ast.expr, function: Any) -> Iterator[tuple[Any, Any]]:
    """Nothing of the same type, or the contrary."""
    annotation = ast.unparse(function.returns) if function.returns else ""
    if annotation == "bool":
        if not isinstance(value, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            yield ast.Return(ast.UnaryOp(ast.Not(), value)), node
        return
    instead = EMPTY.get(annotation.partition("[")[0], "None")
    if "None" in annotation:
        instead = "None"
    if ast.unparse(value) != instead and not isinstance(value, ast.Constant):
        yield ast.Return(ast.parse(instead, mode="eval").body), node


def spelled(node: Any) -> str:
    """A node in one line; of a statement with a body, its head."""
    return ast.unparse(node).strip().splitlines()[0]


def _short(node: Any) -> str:
    words = spelled(node)
    return words if len(words) <= LONG else f"{words[:LONG]}…"
