"""Where in the authors' code something happened, as `rules/night.py:12`."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import Any

_LINES = 300
"""Of a dump, which may be forged; one of a thread has 100 at most."""
_DUMPED = re.compile(r'File "([^"]+)", line (\d{1,9})\b')


class Places:
    """Knows the authors' code: folders or files by path, each with the words that stand for it in a place."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = tuple((os.path.realpath(path), words) for path, words in roots.items())

    def named(self, path: str, line: int) -> str:
        """The place in words; nothing for code that is none of theirs."""
        for root, words in self._roots:
            if path == root:
                return f"{words}:{line}"
            if path.startswith(f"{root}/"):
                return f"{os.path.join(words, path[len(root) + 1 :])}:{line}"
        return ""

    def of_error(self, error: BaseException) -> str:
        """Where in the authors' code an error came up, as deep as it goes."""
        if isinstance(error, SyntaxError) and (place := self.named(str(error.filename), error.lineno or 0)):
            return place
        traceback: TracebackType | None = error.__traceback__
        found = ""
        while traceback:
            place = self.named(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
            found, traceback = place or found, traceback.tb_next
        return found

    def of_dump(self, text: str) -> str:
        """The place in a dump of `faulthandler`: that of the main thread if it is there, else of any other."""
        main = text.partition("Current thread")[2]
        for path, line in (*_DUMPED.findall(main)[:_LINES], *_DUMPED.findall(text)[:_LINES]):
            if place := self.named(path, int(line)):
                return place
        return ""

    def of_code(self, thing: Any) -> str:
        """Where a function, or the class of an object, is defined."""
        function: Any = thing if hasattr(thing, "__code__") else type(thing).__call__
        code = getattr(function, "__code__", None)
        return self.named(code.co_filename, code.co_firstlineno) if code else ""


def roots_of_plugins(plugins: Mapping[str, str]) -> Mapping[str, str]:
    """The folder or file of each plugin's package, with its name; nothing is imported for it."""
    found = {}
    for entry in plugins.values():
        package = entry.partition(":")[0].partition(".")[0]
        try:
            spec = find_spec(package)
        except (ImportError, ValueError):  # no name, or that of a module that was made, not found
            continue
        if spec and spec.submodule_search_locations:
            found[next(iter(spec.submodule_search_locations))] = package
        elif spec and spec.origin:
            found[spec.origin] = f"{package}.py"
    return found


def with_place(words: str, place: str) -> str:
    """The words, and the place behind them if it is known."""
    return f"{words} ({place})" if place else words


def describe_error(error: BaseException) -> str:
    """An error in words, whatever its author made of it."""
    name, text = type(error).__name__, " ".join(error_message(error).split())
    return f"{name}: {text[:1_000]}" if text else name


def error_message(error: BaseException) -> str:
    """What an error says."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - somebody else's code, which may fail as it likes
        return "what it says cannot be spelled"
