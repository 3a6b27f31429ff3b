"""A new rule, projection, watcher or executor in staging: its module, its test, and its line in engine.py."""

import json
import keyword
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from pulse_adapters.git.edit_engine_list import CannotEdit, add_to_list, remove_from_list
from pulse_adapters.workers.plain_file import replace_plain
from pulse_core.model.errors import PulseError, UnknownName

_SKELETONS = Path(__file__).with_name("skeletons")
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 60


class ScaffoldKind(NamedTuple):
    """Where things of a kind belong: their folder, their list in engine.py, and how they stand in it."""

    folder: str
    list: str
    entry: str
    imported: str


SHELVES: Mapping[str, ScaffoldKind] = {
    "rule": ScaffoldKind("rules", "RULES", "$name", "$name"),
    "projection": ScaffoldKind("projections", "PROJECTIONS", '"$name": $name', "$name"),
    "watcher": ScaffoldKind("watchers", "WATCHERS", "$Name()", "$Name"),
    "executor": ScaffoldKind("executors", "EXECUTORS", "$Name()", "$Name"),
}


class WrittenFile(NamedTuple):
    """What a file held before it was written, None if it was not there, and what was written; added: where that is no more
    than a line in a list, the import, the name and the list."""

    path: Path
    before: bytes | None
    after: bytes
    added: tuple[str, str, str] | None = None

    def take_back(self) -> bool:
        """Put back what was there; False if the file holds something else by now, which is left as it is. Of a file in which
        somebody has edited the rest no more than the added line is taken back."""
        now = before = _content(self.path)
        if now == self.after:
            before = self.before
        elif self.added is None or now is None:
            return False
        else:
            try:
                before = remove_from_list(now, *self.added)
            except CannotEdit:
                return False
        if before is None:
            self.path.unlink()
        elif before != now:
            replace_plain(self.path, before, stat.S_IMODE(self.path.stat().st_mode))
        return True


def take_back(written: Sequence[WrittenFile]) -> Sequence[Path]:
    """Take back all of these; those that are left, since somebody has changed them. What a list still names is left, too."""
    left: list[Path] = []
    is_listed = False
    for one in reversed(written):  # the list comes last
        if is_listed or not one.take_back():
            left.append(one.path)
            is_listed = is_listed or one.added is not None
    return left[::-1]


def note_written(note: Path, staging: Path, written: Sequence[WrittenFile]) -> None:
    """Keep in a file what is being written, for whoever is to take it back if this process is killed.

    By its place in staging, which may have been moved with the home by then, or be reached by a link.
    """
    told = [
        (
            str(path.relative_to(staging)),
            None if before is None else before.decode("latin-1"),
            after.decode("latin-1"),
            added,
        )
        for path, before, after, added in written
    ]
    replace_plain(note, json.dumps(told).encode())


def noted(note: Path, staging: Path) -> Sequence[WrittenFile]:
    """What `note_written` has kept; nothing if that can't be read."""
    try:
        told = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return ()
    return [
        WrittenFile(
            staging / path,
            None if before is None else before.encode("latin-1"),
            after.encode("latin-1"),
            tuple(added) if added else None,
        )
        for path, before, after, added in told
    ]


def scaffold(
    staging: Path,
    what: str,
    name: str,
    texts: Sequence[str] = (),
    tell: Callable[[WrittenFile], object] = lambda one: None,
) -> tuple[Path, ...]:
    """Write it and list it; the files that were written or changed, the new module first.

    texts: of the module, and of its test; without them they are skeletons, and nothing that is there is overwritten, but
    one that was killed before it had listed them is finished;
    tell: hears of each file of these texts, and of engine.py, just before it is written.
    Raises PulseError, with the lines to add if engine.py can't be edited.
    """
    if what not in SHELVES:
        raise UnknownName("kind of thing to scaffold", what, SHELVES)
    shelf, snake = SHELVES[what], name.replace("-", "_")
    if not _NAME.fullmatch(snake) or keyword.iskeyword(snake) or len(snake) > _LONGEST:
        raise PulseError(
            f"{name!r} can't be a name here; take small letters and digits, as 'disk_fills_up' or 'disk-fills-up'"
        )
    camel = "".join(part.capitalize() for part in snake.split("_"))
    words = {"name": snake, "Name": camel, "kebab": snake.replace("_", "-")}
    module = staging / shelf.folder / f"{words['name']}.py"
    test = staging / "tests" / f"test_{words['name']}.py"
    engine = staging / "engine.py"
    files = dict(
        zip((module, test), texts or (_filled(what, words), _filled(f"{what}_test", words)), strict=True)
    )
    imported, entry = (Template(text).substitute(words) for text in (shelf.imported, shelf.entry))
    line = f"from {shelf.folder}.{words['name']} import {imported}"
    is_listed = line.encode() in (_content(engine) or b"").splitlines()
    # What holds the skeleton and is in no list was left by one that was killed.
    missing = [path for path, text in files.items() if is_listed or _content(path) != text.encode()]
    for path in missing if not texts else ():
        if path.exists():
            raise PulseError(f"{path} is there already; take another name, or remove it first")
    for path in files if texts else missing:
        if texts:
            tell(WrittenFile(path, _content(path), files[path].encode()))
        _write(path, files[path], replace=bool(texts))
    if texts and is_listed:
        return module, test
    try:
        listed = engine.read_bytes()
        edited = add_to_list(listed, line, imported, shelf.list, entry)
    except (CannotEdit, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PulseError(
            f"{module} and {test} are written, but not listed: {engine} can't be edited ({why});"
            f" add to it: {line}, and in {shelf.list}: {entry}"
        ) from error
    tell(WrittenFile(engine, listed, edited, (line, imported, shelf.list)))
    replace_plain(
        engine, edited, stat.S_IMODE(engine.stat().st_mode)
    )  # nobody who watches it reads half of it
    return module, test, engine


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _filled(skeleton: str, words: Mapping[str, str]) -> str:
    return Template((_SKELETONS / f"{skeleton}.txt").read_text()).substitute(words)


def _write(path: Path, text: str, replace: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_plain(path, text.encode(), 0o644 if replace else 0o600, keep=not replace)
    except OSError as error:
        raise PulseError(f"{path} can't be written: {error.strerror}") from error
