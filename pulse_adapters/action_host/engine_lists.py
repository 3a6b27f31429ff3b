"""Runs the statements of `engine.py` that list watchers and executors, without those that list rules and projections.

Rules and projections run confined in a process of their own; here their code could do whatever this process's user may
do. So a statement that imports something of them is not run, nor is one that uses a name which such a statement would
have defined, and no other module can import them here.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import NamedTuple

FOLDERS = ("rules", "projections")
LISTS = frozenset({"WATCHERS", "EXECUTORS"})
_NOT_HERE = frozenset({"RULES", "PROJECTIONS"})


class NotRunHere(ImportError):
    """A module of rules or projections was imported where they are not run."""


class EngineLists(NamedTuple):
    """The module as far as it was run, and the lines left out: those that list watchers or executors made of rules."""

    module: ModuleType
    left_out: Sequence[int]


class RuleImportBlocker(MetaPathFinder):
    """Import hook that refuses to import rules and projections."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """None for every other module. Raises NotRunHere."""
        if name.partition(".")[0] in FOLDERS:
            raise NotRunHere(f"{name} {WHY}")


WHY = (
    "is not run here: rules and projections run in a process of their own, which may do nothing else; "
    "put what watchers and executors need of it into a module beside engine.py"
)


def run_lists(path: str) -> EngineLists:
    """Run an `engine.py` without what belongs to rules. Raises whatever its code raises."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    sys.meta_path.insert(0, RuleImportBlocker())
    left_out: list[int] = []
    tree.body = list(_kept(tree.body, left_out))
    module = ModuleType("engine")
    module.__file__ = path
    sys.modules["engine"] = module
    exec(compile(tree, path, "exec"), vars(module))
    return EngineLists(module, left_out)


def _kept(statements: Sequence[ast.stmt], left_out: list[int]) -> Iterator[ast.stmt]:
    """The statements to run. unknown: names that are undefined, since the statements that define them are not run."""
    unknown = set(_NOT_HERE)
    for one in statements:
        imported = (
            [alias for alias in one.names if _is_away(alias.name)] if isinstance(one, ast.Import) else []
        )
        if isinstance(one, ast.Import) and imported:
            unknown |= {alias.asname or alias.name.partition(".")[0] for alias in imported}
            one.names = [alias for alias in one.names if alias not in imported]
            if one.names:
                yield one
            continue
        names = set(_names(one))
        if not (names & unknown or any(map(_imports_rules, ast.walk(one)))):
            yield one
            continue
        unknown |= set(_bound(one)) - LISTS
        if names & LISTS:
            left_out.append(one.lineno)


def _is_away(module: str | None) -> bool:
    return (module or "").partition(".")[0] in FOLDERS


def _imports_rules(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_is_away(alias.name) for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and _is_away(node.module)


def _names(statement: ast.stmt) -> Iterator[str]:
    """Every name that a statement mentions."""
    return (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Every name that a statement may define."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
