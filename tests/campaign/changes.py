"""Small changes of a module, each of which a test should notice: what a slip of the keyboard makes of it.

Words are left alone: no string is changed, and nothing inside an f-string.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
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
FIXED = frozenset({"annotation", "returns", "decorator_list", "targets", "bases", "args"})
"""Parts of a node that stay; `args` of a call do not."""
SHORT = 12
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Place(NamedTuple):
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


class Change(NamedTuple):
    """A changed module, ready to run: what is other, where, and the lines that a test must reach to see it."""

    where: str
    line: int
    what: str
    lines: frozenset[int]
    code: CodeType

    @property
    def name(self) -> str:
        """What it is known by as long as these words of the source stay; line numbers come and go."""
        return f"{self.where}: {self.what}"


def changes(module: str, source: str, path: str) -> Iterator[Change]:
    """Every change of this module, from its top to its bottom."""
    tree, seen = ast.parse(source, path), Counter[str]()
    for place in list(_places(tree, ())):
        for new, told in _alternatives(place):
            before = told if isinstance(told, str) else _spelled(told)
            place.put(new)
            after = "" if isinstance(told, str) else f" => {_spelled(new if told is place.node else told)}"
            code = compile(ast.fix_missing_locations(tree), path, "exec")
            place.put(place.node)
            where = ".".join([module, *(scope.name for scope in place.scopes)])
            seen[f"{where}: {before}{after}"] += 1
            nth = seen[f"{where}: {before}{after}"]
            what = f"{before}{after}{f' (#{nth})' if nth > 1 else ''}"
            yield Change(where, place.node.lineno, what, _lines(place), code)


def _places(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[Place]:
    """Every node below this one that may be changed."""
    for field, value in ast.iter_fields(node):
        if field in FIXED and not isinstance(node, ast.Call):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.stmt | ast.expr | ast.comprehension | ast.keyword) and not isinstance(
                child, ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                if hasattr(child, "lineno"):
                    yield Place(child, (*above, node), field, index if isinstance(value, list) else None)
                yield from _places(child, (*above, node))


def _alternatives(place: Place) -> Iterator[tuple[Any, Any]]:
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
        case ast.Dict() | ast.Set() | ast.Tuple() if not place.in_function:
            yield from _other_table(node, parent)
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


def _telling(place: Place) -> ast.AST:
    """The smallest expression around a number that says what it is for."""
    return next(
        node for node in reversed(place.above) if len(_spelled(node)) > SHORT or isinstance(node, ast.stmt)
    )


def _other_table(node: Any, parent: ast.AST) -> Iterator[tuple[Any, str]]:
    """A table that lacks one of its lines, or where two have changed places, if it says that order matters."""
    if isinstance(node, ast.Dict):
        for n, key in enumerate(node.keys):
            yield ast.Dict(_without(node.keys, n), _without(node.values, n)), f"without {_spelled(key)}"
    elif isinstance(node, ast.Set) and len(node.elts) > 1:
        for n, element in enumerate(node.elts):
            yield ast.Set(_without(node.elts, n)), f"without {_spelled(element)}"
    elif isinstance(node, ast.Tuple) and isinstance(parent, ast.AnnAssign):
        for n, element in enumerate(node.elts):
            yield ast.Tuple(_without(node.elts, n), ast.Load()), f"without {_spelled(element)[:80]}"
        for n, (one, two) in enumerate(pairwise(node.elts)):
            swapped = [*node.elts[:n], two, one, *node.elts[n + 2 :]]
            yield ast.Tuple(swapped, ast.Load()), f"{_spelled(two)[:80]} before {_spelled(one)[:80]}"


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


def _lines(place: Place) -> frozenset[int]:
    """The lines of its statement, of its head only if it has a body; none if it runs at the import."""
    if not place.in_function:
        return frozenset()
    statement = place.statement
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return frozenset(range(statement.lineno, max(last, statement.lineno) + 1))


def _spelled(node: Any) -> str:
    """A node in one line; of a statement with a body, its head."""
    return ast.unparse(node).strip().splitlines()[0]
