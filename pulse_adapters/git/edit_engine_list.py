"""Adding a line to one of the lists in engine.py, and taking it back, by the places that its syntax tree tells: all else
stays as it is."""

import ast
import re
from itertools import accumulate

Edit = tuple[int, bytes]
"""Words, and the place in the source where they go."""
_REST = re.compile(rb"[ \t]*+,?+[ \t]*+(\r?\n|\Z)")
"""What is behind an entry at the end of its line."""

OWN = ("rules", "projections", "watchers", "executors")


class CannotEdit(Exception):
    """Why the file can't be edited by a program, in words for people."""


def add_to_list(source: bytes, line: str, name: str, of: str, entry: str) -> bytes:
    """The source with the import `line`, which brings `name`, and `entry` at the end of the list `of`."""
    tree = _parsed(source)
    if name in _bound(tree):
        raise CannotEdit(f"{name} is something else there already")
    text, value = _Text(source), _list(tree, of)
    edits = [_import(tree, text, line), *_entry(value, text, entry.encode())]
    for place, words in sorted(edits, reverse=True):
        source = source[:place] + words + source[place:]
    after = _parsed(source)
    more = ast.parse(f"[{entry}]" if isinstance(value, ast.List) else f"{{{entry}}}", mode="eval").body
    for part in ("elts", "keys", "values"):
        getattr(value, part, []).extend(getattr(more, part, []))
    if ast.dump(_list(after, of)) != ast.dump(value) or name not in _bound(after):
        raise CannotEdit(f"the end of {of} is written in a way that is too hard to add to")
    return source


def remove_from_list(source: bytes, line: str, name: str, of: str) -> bytes:
    """The source without the import `line` and without `name` in the list `of`, which `add_to_list` has put there, whatever
    was edited since."""
    tree, text = _parsed(source), _Text(source)
    value, imported = _list(tree, of), ast.dump(ast.parse(line).body[0])
    imports = [node for node in tree.body if ast.dump(node) == imported]
    entries = [node for node in getattr(value, "elts", []) if isinstance(node, ast.Name) and node.id == name]
    cuts = [(text.starts[one.lineno - 1], text.starts[one.end_lineno or one.lineno]) for one in imports]
    for begin, end in sorted([*cuts, *(_cut(value, text, one) for one in entries)], reverse=True):
        if b"#" in source[begin:end]:
            raise CannotEdit(f"a comment belongs to {name}")
        source = source[:begin] + source[end:]
    tree.body = [node for node in tree.body if node not in imports]
    if isinstance(value, ast.List):
        value.elts = [node for node in value.elts if node not in entries]
    left = ast.dump(_parsed(source))
    if left != ast.dump(tree) or f"'{name}'" in left or f"'{line.split()[1]}'" in left:
        raise CannotEdit(f"{name} is used in a way that is too hard to take back")
    return source


def _cut(value: ast.List | ast.Dict, text: "_Text", entry: ast.expr) -> tuple[int, int]:
    """From where to where in the source an entry is, with its comma and, if it has one for itself, its line."""

    def end_of(node: ast.expr) -> int:
        return text.place(node.end_lineno or 0, node.end_col_offset or 0)

    line, begin, end = (
        text.starts[entry.lineno - 1],
        text.place(entry.lineno, entry.col_offset),
        end_of(entry),
    )
    if (rest := _REST.match(text.source, end)) and not text.source[line:begin].strip():
        return line, rest.end()
    entries = value.elts if isinstance(value, ast.List) else []
    place = entries.index(entry)
    if place:
        return end_of(entries[place - 1]), end
    return begin, text.place(entries[1].lineno, entries[1].col_offset) if entries[1:] else end


def _parsed(source: bytes) -> ast.Module:
    try:
        source.decode()
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CannotEdit(f"it is no Python that can be read: {error}") from error


class _Text:
    """Turns the tree's lines and columns, which count bytes, into places in the source; starts[n]: behind line n."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.ends = b"\r\n" if b"\r\n" in source else b"\n"
        self.starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        if source.startswith(b"\xef\xbb\xbf"):
            self.starts[0] = 3

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column


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


def _import(tree: ast.Module, text: _Text, line: str) -> Edit:
    """Before the first of the engine's own imports that sorts behind it, or else behind the last import of all."""
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if not imports:
        raise CannotEdit("it imports nothing, so there is no place for one more import")
    own = [
        one for one in imports if isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[0] in OWN
    ]
    words = line.encode() + text.ends
    behind = next((one for one in own if (one.module or "") > line.split()[1]), None)
    if behind is not None:
        return text.place(behind.lineno, 0), words
    last = own[-1] if own else imports[-1]
    place = text.starts[last.end_lineno or last.lineno]
    if not text.source[:place].endswith((b"\n", b"\r")):
        words = text.ends + words
    return place, words if own else text.ends + words


def _list(tree: ast.Module, of: str) -> ast.List | ast.Dict:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == of for one in targets):
                if isinstance(node.value, ast.List | ast.Dict):
                    return node.value
                raise CannotEdit(f"{of} is not written as a list in brackets")
    raise CannotEdit(f"it has no {of}")


def _entry(value: ast.List | ast.Dict, text: _Text, entry: bytes) -> list[Edit]:
    """Behind the last entry, in the manner of those that are there."""
    first, last = value.lineno, value.end_lineno or 0
    closing = text.place(last, (value.end_col_offset or 0) - 1)
    entries = value.elts if isinstance(value, ast.List) else value.values
    if not entries:
        whole = b"    " + entry + b"," + text.ends
        return [(closing, entry) if first == last else (text.place(last, 0), whole)]
    newest = entries[-1]
    line, end = newest.end_lineno or 0, text.place(newest.end_lineno or 0, newest.end_col_offset or 0)
    if line == last:
        return [(end, b", " + entry)]
    comma = b"," in re.sub(rb"#[^\r\n]*", b"", text.source[end:closing])
    like = entries[0].lineno if first != entries[0].lineno else newest.lineno
    indent = re.match(rb"[ \t]*", text.source[text.starts[like - 1] :])
    whole = (indent[0] if indent else b"") + entry + b"," + text.ends
    return [*([] if comma else [(end, b",")]), (text.starts[line], whole)]
