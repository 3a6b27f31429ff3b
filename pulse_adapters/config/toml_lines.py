"""Finds the line of each key in a TOML text; `tomllib` reads the values but keeps no line numbers."""

import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|("(?:[^"\\\n]|\\.)*")|('[^'\n]*'))[ \t]*(\.?)""")
_TEXT = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''',
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}\n#]*")


def locate(text: str) -> Mapping[Path, int]:
    """Line numbers, from 1, by path: keys by name, elements of arrays by place. The text must be valid TOML."""
    return _Reader(text.replace("\r\n", "\n")).read()


def nearest(lines: Mapping[Path, int], path: Path) -> int:
    """The line of the path, or of the innermost thing around it that has one, or the first."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


class _Reader:
    """One walk over a valid text; it follows the structure and skips the values."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._line, self._counted = 1, 0

    def read(self) -> Mapping[Path, int]:
        table: Path = ()
        while self._skip():
            if self._text.startswith("[", self._place):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _skip(self) -> bool:
        """Pass over space and comments; False at the end."""
        self._take(_SPACE)
        return self._place < len(self._text)

    def _take(self, shape: re.Pattern[str]) -> re.Match[str] | None:
        if found := shape.match(self._text, self._place):
            self._place = found.end()
        return found

    def _taken(self, mark: str) -> bool:
        if self._text.startswith(mark, self._place):
            self._place += len(mark)
            return True
        return False

    def _header(self) -> Path:
        many = self._taken("[[") or not self._taken("[")
        here = self._current_line()
        path = self._whole((), self._key())
        self._place += 2 if many else 1
        if many:
            self._note(path, here)
            self._counts[path] = self._counts.get(path, -1) + 1
            path = (*path, self._counts[path])
        self._note(path, here)
        return path

    def _key(self) -> list[str]:
        parts, more = [], True
        while more and (found := self._take(_KEY)):
            bare, basic, literal, dot = found.groups()
            parts.append(bare or _unquote(basic or literal))
            more = bool(dot)
        return parts

    def _whole(self, table: Path, key: list[str]) -> Path:
        """The key's path; a part that names an array of tables stands for its last table."""
        path = table
        for step, part in enumerate(key):
            path = (*path, part)
            if step < len(key) - 1 and path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _pair(self, table: Path) -> None:
        here = self._current_line()
        path = self._whole(table, self._key())
        self._note(path, here)
        self._taken("=")
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip()
        if self._taken("["):
            self._inside("]", path, elements=True)
        elif self._taken("{"):
            self._inside("}", path, elements=False)
        elif not self._take(_TEXT):
            self._take(_BARE)

    def _inside(self, end: str, path: Path, *, elements: bool) -> None:
        place = 0
        while self._skip() and not self._taken(end):
            if elements:
                self._note((*path, place), self._current_line())
                self._value((*path, place))
            else:
                self._pair(path)
            place += 1
            self._skip()
            self._taken(",")

    def _note(self, path: Path, line: int) -> None:
        """Record the first line of the path and of every path around it."""
        for length in range(len(path), 0, -1):
            self._lines.setdefault(path[:length], line)

    def _current_line(self) -> int:
        self._line += self._text.count("\n", self._counted, self._place)
        self._counted = self._place
        return self._line


def _unquote(quoted: str) -> str:
    """The text of a quoted key."""
    return str(tomllib.loads(f"key = {quoted}")["key"])
