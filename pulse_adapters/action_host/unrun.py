"""Rules and projections are not run where hands are, which may do more: something stands in for their modules.

It has every name that one asks for, so that `engine.py` can list them; whoever wants more of it is told.
"""

import ast
import builtins
import dis
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

from pulse_adapters.action_host.standin import LISTED_IN, NotRunHere, Standin, words_of

FOLDERS = ("rules", "projections")


class Away(ModuleType):
    """A module that is not run."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(_exported(self.__name__, str(self.__file__)))
        if name.startswith("__"):
            raise AttributeError(name)
        return Standin(f"{self.__name__}.{name}")


class Unrun(MetaPathFinder, Loader):
    """Finds what the path holds, and runs none of it that lies in these folders of the engine."""

    def __init__(self, root: str) -> None:
        self._folders = tuple(os.path.join(root, name, "") for name in FOLDERS)
        self._files = tuple(os.path.join(root, f"{name}.py") for name in FOLDERS)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the path holds under this name."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not self._is_away([spec.origin or "", *(spec.submodule_search_locations or ())]):
            return spec
        away = ModuleSpec(
            name, self, origin=spec.origin, is_package=spec.submodule_search_locations is not None
        )
        away.submodule_search_locations = spec.submodule_search_locations
        away.has_location = spec.has_location
        return away

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """What stands in for it."""
        return Away(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing."""

    def _is_away(self, paths: Iterable[str]) -> bool:
        places = {place for path in paths for place in (path, os.path.realpath(path))}
        return any(place in self._files or f"{place}/".startswith(self._folders) for place in places)


class Importing:
    """`import` as the engine's modules have it. Raises NotRunHere where another one than `engine.py` wants a rule's."""

    def __init__(self, root: str) -> None:
        self._root, self._import = os.path.join(root, ""), builtins.__import__

    def __call__(self, name: str, globals: Any = None, *how: Any, **named: Any) -> Any:
        found = self._import(name, globals, *how, **named)
        is_named = name.partition(".")[0] in FOLDERS and isinstance(sys.modules.get(name), Away)
        if is_named and globals and self._is_own(globals):
            raise NotRunHere(words_of(name))
        return found

    def _is_own(self, known: Any) -> bool:
        return known.get("__name__") != LISTED_IN and str(known.get("__file__")).startswith(self._root)


def leave_out(root: str) -> None:
    """From now on run nothing of the rules and projections of the engine that lies here."""
    place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(place, Unrun(root))
    builtins.__import__ = Importing(root)


def _exported(module: str, file: str) -> Iterator[str]:
    """What `from MODULE import *` brings, as its source says without being run."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read(), file)
        stored = {
            one.argval
            for one in dis.get_instructions(compile(tree, file, "exec"))
            if one.opname == "STORE_NAME"
        }
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return  # the rule host tells what is wrong with it
    if (said := _said(tree)) is not None:
        yield from said
        return
    yield from (name for name in stored if not name.startswith("_"))
    package = module if os.path.basename(file) == "__init__.py" else module.rpartition(".")[0]
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom) and one.names[0].name == "*":
            yield from _brought(resolve_name("." * one.level + (one.module or ""), package))


def _said(tree: ast.Module) -> Sequence[str] | None:
    """Its `__all__`, if that can be read."""
    for one in tree.body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__":
            try:
                return [str(name) for name in ast.literal_eval(one.value)]
            except (ValueError, TypeError):
                return None
    return None


def _brought(module: str) -> Sequence[str]:
    """The names of a module that is away, too, or known already; no other one is imported for that."""
    if module.partition(".")[0] in FOLDERS:
        import_module(module)
    known = sys.modules.get(module)
    return getattr(known, "__all__", None) or [
        name for name in vars(known or object) if not name.startswith("_")
    ]
