"""Adding a line to one of the lists in engine.py, by the places that its syntax tree tells: all else stays as it is."""

import ast
import re

Edit = tuple[int, bytes]
"""Words, and the place in the source where they go."""

OWN = ("rules", "projections", "watchers", "executors")


class CannotEdit(Exception):
    """Why the file can't be edited by a program, in words for people."""


def add_to_list(source: bytes, line: str, name: str, of: str, entry: str) -> bytes:
    """The source with the import `line`, which brings `name`, and `entry` at the end of the list `of`."""
    tree = _parsed(source)
    if name in _bound(tree):
        raise CannotEdit(f"{name} is something else there already")
    ends = b"\r\n" if b"\r\n" in source else b"\n"
    text = _Text(source)
    edits = [_import(tree, text, line, ends), *_entry(tree, text, of, entry.encode(), ends)]
    for place, words in sorted(edits, reverse=True):
        source = source[:place] + words + source[place:]
    after = _parsed(source)
    if ast.dump(_list(after, of)) != _extended(_list(tree, of), entry) or name not in _bound(after):
        raise CannotEdit(f"the end of {of} is written in a way that is too hard to add to")
    return source


def _parsed(source: bytes) -> ast.Module:
    try:
        source.decode()
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CannotEdit(f"it is no Python that can be read: {error}") from error


class _Text:
    """Turns the tree's lines and columns, which count bytes, into places in the source."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\n|\r", source))]
        if source.startswith(b"\xef\xbb\xbf"):
            self.starts[0] = 3

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def after_line(self, line: int) -> int:
        """Where the next line begins."""
        return self.starts[line] if line < len(self.starts) else len(self.source)

    def indent(self, line: int) -> bytes:
        found = re.match(rb"[ \t]*", self.source[self.starts[line - 1] :])
        return found[0] if found else b""


def _bound(tree: ast.Module) -> set[str]:
    """The names that the module's own statements bind."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
            names |= {one.id for one in stored if isinstance(one.ctx, ast.Store)}
    return names


def _import(tree: ast.Module, text: _Text, line: str, ends: bytes) -> Edit:
    """Before the first of the engine's own imports that sorts behind it, or else behind the last import of all."""
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if not imports:
        raise CannotEdit("it imports nothing, so there is no place for one more import")
    own = [
        one for one in imports if isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[0] in OWN
    ]
    words = line.encode() + ends
    behind = next((one for one in own if (one.module or "") > line.split()[1]), None)
    if behind is not None:
        return text.place(behind.lineno, 0), words
    last = own[-1] if own else imports[-1]
    place = text.after_line(last.end_lineno or last.lineno)
    if not text.source[:place].endswith((b"\n", b"\r")):
        words = ends + words
    return place, words if own else ends + words


def _list(tree: ast.Module, of: str) -> ast.List | ast.Dict:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if any(isinstance(one, ast.Name) and one.id == of for one in targets):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.List | ast.Dict):
                return value
            raise CannotEdit(f"{of} is not written as a list in brackets")
    raise CannotEdit(f"it has no {of}")


def _entry(tree: ast.Module, text: _Text, of: str, entry: bytes, ends: bytes) -> list[Edit]:
    """Behind the last entry, in the manner of those that are there."""
    value = _list(tree, of)
    first, last = value.lineno, value.end_lineno or 0
    closing = text.place(last, (value.end_col_offset or 0) - 1)
    entries = value.elts if isinstance(value, ast.List) else value.values
    if not entries:
        return [(closing, entry)] if first == last else [(text.place(last, 0), b"    " + entry + b"," + ends)]
    newest = entries[-1]
    line, end = newest.end_lineno or 0, text.place(newest.end_lineno or 0, newest.end_col_offset or 0)
    if line == last:
        return [(end, b", " + entry)]
    comma = b"," in re.sub(rb"#[^\r\n]*", b"", text.source[end:closing])
    whole = (
        text.indent(entries[0].lineno if first != entries[0].lineno else newest.lineno) + entry + b"," + ends
    )
    return [*([] if comma else [(end, b",")]), (text.after_line(line), whole)]


def _extended(value: ast.List | ast.Dict, entry: str) -> str:
    """What the list is to be, with the entry at its end."""
    if isinstance(value, ast.List):
        more = ast.parse(f"[{entry}]", mode="eval").body
        return ast.dump(ast.List([*value.elts, *getattr(more, "elts", [])], value.ctx))
    more = ast.parse(f"{{{entry}}}", mode="eval").body
    return ast.dump(
        ast.Dict([*value.keys, *getattr(more, "keys", [])], [*value.values, *getattr(more, "values", [])])
    )
