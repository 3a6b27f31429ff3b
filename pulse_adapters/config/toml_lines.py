"""Finds the line of each key in a TOML text; `tomllib` reads the values but keeps no line numbers."""

import re
import tomllib
from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\''''
    r"""|[\[\]{}=,.\n]|[^\s\[\]{}=,."'#]+|[ \t]+|#[^\n]*""",
    re.DOTALL,
)


def locate(text: str) -> Mapping[Path, int]:
    """Line numbers, from 1, by path: keys by name, elements of arrays by place. The text must be valid TOML."""
    return _Reader(text.replace("\r\n", "\n")).read()


def nearest(lines: Mapping[Path, int], path: Path) -> int:
    """The line of the path, or of the innermost thing around it that has one, or the first."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Each text, sign, word and line break, with its line; an empty one at the end."""
    line = 1
    for found in _TOKEN.finditer(text):
        if found[0][0] not in " \t#":
            yield found[0], line
        line += found[0].count("\n")
    yield "", line


class _Reader:
    """One walk over a valid text; it follows the structure and skips the values."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def read(self) -> Mapping[Path, int]:
        table: Path = ()
        while token := self._skip_breaks():
            if token == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _peek(self) -> str:
        return self._tokens[self._place][0]

    def _take(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1][0]

    def _skip_breaks(self) -> str:
        """Pass over line breaks; the token behind them, empty at the end."""
        while self._peek() == "\n":
            self._place += 1
        return self._peek()

    def _header(self) -> Path:
        line = self._tokens[self._place][1]
        brackets = 2 if self._tokens[self._place + 1][0] == "[" else 1
        self._place += brackets
        path = self._key(())
        self._place += brackets
        self._note(path, line)
        if brackets == 2:
            self._counts[path] = self._counts.get(path, -1) + 1
            path = (*path, self._counts[path])
            self._note(path, line)
        return path

    def _key(self, table: Path) -> Path:
        """The key's path; a part that names an array of tables stands for its last table."""
        path = table
        while True:
            part = self._take()
            path = (*path, str(tomllib.loads(f"key = {part}")["key"]) if part[0] in "\"'" else part)
            if self._peek() != ".":
                return path
            self._place += 1
            if path in self._counts:
                path = (*path, self._counts[path])

    def _pair(self, table: Path) -> None:
        line = self._tokens[self._place][1]
        path = self._key(table)
        self._note(path, line)
        self._place += 1
        self._value(path)

    def _value(self, path: Path) -> None:
        token = self._take()
        if token in ("[", "{"):
            self._inside(path, "]" if token == "[" else "}")
        while token not in ("[", "{") and self._peek() not in (",", "]", "}", "\n", ""):
            self._place += 1

    def _inside(self, path: Path, end: str) -> None:
        element = 0
        while self._skip_breaks() != end:
            if end == "]":
                self._note((*path, element), self._tokens[self._place][1])
                self._value((*path, element))
            else:
                self._pair(path)
            element += 1
            if self._skip_breaks() == ",":
                self._place += 1
        self._place += 1

    def _note(self, path: Path, line: int) -> None:
        """Record the first line of the path and of every path around it."""
        for length in range(len(path), 0, -1):
            self._lines.setdefault(path[:length], line)
