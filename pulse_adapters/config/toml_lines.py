"""Walks over a TOML text: the line of each key, which `tomllib` does not keep, and what it would take for ever to parse."""

import re
import tomllib
from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\''''
    r"""|[\[\]{}=,.\n]|[^\s\[\]{}=,."'#]+|[ \t]+|#[^\n]*""",
    re.DOTALL,
)

_ENDS_OF_KEYS = frozenset("[]{}=,\n")

DEEPEST = 8
"""Lists and tables within each other, and parts of one key."""

LONGEST_WORD = 1_000
"""Characters of a number or bare key; no number of Python's has more than 4,300 digits."""

MOST_LISTS = 10_000
"""Lists and tables of a file."""


def excess(text: str) -> tuple[int, str] | None:
    """Where a text has more of something than settings ever need, and of what: parsers fail at it, or take for ever.

    It ends where the text stops being TOML, and so does a parser: each takes time linear in the text.
    """
    line, end, depth, parts, lists = 1, 0, 0, 1, 0
    for found in _TOKEN.finditer(text):
        token = found[0]
        if found.start() != end or (token in ('""', "''") and text.startswith(token[0], found.end())):
            return None  # what is no token, or the beginning of a text without an end
        end = found.end()
        if token in ("[", "{"):
            depth, lists = depth + 1, lists + 1
        elif token in ("]", "}"):
            depth -= 1
        parts = parts + (token == ".") if token not in _ENDS_OF_KEYS else 1
        if depth > DEEPEST:
            return line, f"no usable TOML: lists and tables lie more than {DEEPEST} deep in each other"
        if parts > DEEPEST:
            return line, f"no usable TOML: a key has more than {DEEPEST} parts"
        if len(token) > LONGEST_WORD and token[0] not in "\"'# \t":
            return line, f"no usable TOML: a number or key has {len(token)} characters"
        if lists > MOST_LISTS:
            return line, f"no usable TOML: there are more than {MOST_LISTS} lists and tables"
        line += token.count("\n")
    return None


def locate(text: str) -> Mapping[Path, int]:
    """Line numbers, from 1, by path: keys by name, elements of arrays by place. The text must be valid TOML."""
    return _TomlWalk(text.replace("\r\n", "\n")).read()


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


class _TomlWalk:
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
