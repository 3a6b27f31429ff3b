"""Small changes of a module, each of which a test should notice: what a slip of the keyboard makes of it.

Words are left alone: no string is changed, and nothing inside an f-string.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from tests.campaign.slips import Place, slips, spelled

FIXED = frozenset({"annotation", "returns", "decorator_list", "targets", "bases", "args"})
"""Parts of a node that stay; `args` of a call do not."""


class Change(NamedTuple):
    """A changed module, ready to run: what is other, where, and the lines that a test must reach to see it."""

    where: str
    line: int
    what: str
    lines: frozenset[int]
    code: CodeType

    @property
    def module(self) -> str:
        return self.where.partition(".")[0]

    @property
    def name(self) -> str:
        """What it is known by as long as these words of the source stay; line numbers come and go."""
        return f"{self.where}: {self.what}"


def changes(module: str, source: str, path: str) -> Iterator[Change]:
    """Every change of this module, from its top to its bottom."""
    tree, seen = ast.parse(source, path), Counter[str]()
    for place in list(_places(tree, ())):
        for new, told in slips(place):
            before = told if isinstance(told, str) else spelled(told)
            place.put(new)
            after = "" if isinstance(told, str) else f" => {spelled(new if told is place.node else told)}"
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


def _lines(place: Place) -> frozenset[int]:
    """The lines of its statement, of its head only if it has a body; none if it runs at the import."""
    if not place.in_function:
        return frozenset()
    statement = place.statement
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return frozenset(range(statement.lineno, max(last, statement.lineno) + 1))
