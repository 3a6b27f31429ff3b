"""What would make a replay differ: rules know time, ids and chance only from the snapshot. Pure but for reading files."""

import ast
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

FOLDERS = ("rules", "projections")
_WHOLE = (
    "random", "secrets", "socket", "subprocess", "asyncio", "threading", "multiprocessing", "concurrent", "sqlite3",
    "urllib.request", "http.client", "requests", "httpx", "tempfile", "shutil", "glob", "signal", "ctypes", "os", "io",
)  # fmt: skip
_SINGLE = frozenset({
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns",
    "time.process_time", "time.process_time_ns", "time.thread_time", "time.thread_time_ns", "time.clock_gettime",
    "time.clock_gettime_ns", "time.sleep", "time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
    "uuid.uuid1", "uuid.uuid4", "uuid.getnode", "platform.node", "sys.argv", "open", "input", "id",
})  # fmt: skip
_HARMLESS = frozenset({
    "random.Random", "os.path.join", "os.path.basename", "os.path.dirname", "os.path.split", "os.path.splitext",
    "os.path.normpath", "os.path.isabs", "os.path.commonpath", "os.sep", "os.pathsep", "os.linesep",
    "io.StringIO", "io.BytesIO", "signal.Signals",
})  # fmt: skip
_ON_PATHS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "unlink", "mkdir"})
_STANDS_STILL = frozenset({"time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime"})
"""Those that read the clock only if they are not told a time."""


class Stray(NamedTuple):
    """A place that looks beyond the snapshot: the file (from the engine's folder on), the line, and what it uses."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} makes a replay differ; take it from the snapshot ({self.file}:{self.line})"


def strays(root: str) -> Sequence[Stray]:
    """All such places in an engine's rules and projections. A file that does not compile has none."""
    return [stray for path in _files(root) for stray in strays_in(_read(path), os.path.relpath(path, root))]


def _files(root: str) -> Iterator[str]:
    yield os.path.join(root, "engine.py")
    for folder in FOLDERS:
        for place, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(".py"))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def strays_in(source: str, file: str) -> Sequence[Stray]:
    """The same for one file's text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found = _Found(file)
    found.visit(tree)
    return sorted(set(found.strays), key=lambda stray: (stray.line, stray.what))


class _Found(ast.NodeVisitor):
    """Follows names to where they were imported from."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.strays: list[Stray] = []
        self._origins: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self._origins[name.asname or name.name.partition(".")[0]] = (
                name.name if name.asname else name.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name in node.names:
            if node.module and not node.level:
                self._origins[name.asname or name.name] = f"{node.module}.{name.name}"

    def visit_Call(self, node: ast.Call) -> None:
        told = self._origin(node.func) in _STANDS_STILL and (
            len(node.args) > (self._origin(node.func) == "time.strftime")
        )
        if not told:
            self.visit(node.func)
        for argument in (*node.args, *(word.value for word in node.keywords)):
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        origin = self._origin(node)
        if origin is None:
            if node.attr in _ON_PATHS:
                self._add(node, f".{node.attr}")
            self.visit(node.value)
        else:
            self._judge(node, origin)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._judge(node, self._origins.get(node.id, node.id))

    def _origin(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self._origins.get(node.id)
        if isinstance(node, ast.Attribute) and (before := self._origin(node.value)):
            return f"{before}.{node.attr}"
        return None

    def _judge(self, node: ast.expr, origin: str) -> None:
        if origin in _HARMLESS or any(one.startswith(f"{origin}.") for one in _HARMLESS):
            return
        if origin in _SINGLE or any(origin.startswith(f"{module}.") for module in _WHOLE):
            self._add(node, origin)

    def _add(self, node: ast.expr, what: str) -> None:
        self.strays.append(Stray(self.file, node.lineno, what))
