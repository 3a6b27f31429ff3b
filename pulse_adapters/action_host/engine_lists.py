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

FOLDERS = ("rules", "projections")
LISTS = frozenset({"WATCHERS", "EXECUTORS"})
_NOT_HERE = frozenset({"RULES", "PROJECTIONS"})


class NotRunHere(ImportError):
    """A module of rules or projections was imported where they are not run."""


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


def run_lists(path: str) -> tuple[ModuleType, Sequence[int]]:
    """Run an `engine.py` without what belongs to rules. Raises whatever its code raises.

    The module as far as it was run, and the lines left out that list watchers or executors made of rules.
    """
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    sys.meta_path.insert(0, RuleImportBlocker())
    left_out: list[int] = []
    single = [part for statement in tree.body for part in _split(statement)]
    tree.body = list(_kept(single, left_out))
    module = ModuleType("engine")
    module.__file__ = path
    sys.modules["engine"] = module
    exec(compile(tree, path, "exec"), vars(module))
    return module, left_out


def _split(statement: ast.stmt) -> Iterator[ast.stmt]:
    """`RULES, WATCHERS = [a], [b]` as one assignment a name, so that WATCHERS is not left out with RULES; imports alike."""
    match statement:
        case ast.Assign(
            targets=[ast.Tuple(elts=targets) | ast.List(elts=targets)],
            value=ast.Tuple(elts=values) | ast.List(elts=values),
        ) if len(targets) == len(values) and all(isinstance(one, ast.Name) for one in targets):
            bound = {one.id for one in targets if isinstance(one, ast.Name)}
            used = {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}
            if bound & used or any(isinstance(value, ast.Starred) for value in values):
                yield statement  # one after the other, they would mean something else
                return
            for target, value in zip(targets, values, strict=True):
                yield ast.copy_location(ast.Assign(targets=[target], value=value), statement)
        case ast.Import(names=names):
            for name in names:
                yield ast.copy_location(ast.Import(names=[name]), statement)
        case _:
            yield statement


def _kept(statements: Sequence[ast.stmt], left_out: list[int]) -> Iterator[ast.stmt]:
    """The statements to run. unknown: names that are undefined, since the statements that define them are not run."""
    unknown = set(_NOT_HERE)
    for one in statements:
        names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
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
