"""What git reads in place of a repository's own settings, which can name programs for it to run.

Git takes settings, attributes and hooks from the folder that GIT_COMMON_DIR names. The one here holds settings of
Pulse's and links to the repository's objects and refs. So no key of `.git/config`, of what it includes, or of a later
git has to be known to be overruled: nobody reads them. The attributes keep git from changing what is in a file.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_native_id

from pulse_adapters.git.errors import GitFailed
from pulse_adapters.git.git_files import LARGEST
from pulse_adapters.workers.plain_file import read_plain, replace_plain

_SHARED = ("objects", "refs", "logs", "packed-refs", "shallow", "info/exclude")
_ATTRIBUTES = b"* -text -ident -filter -working-tree-encoding\n"
_SETTINGS = b"""[core]
\trepositoryFormatVersion = 1
\tbare = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tquotePath = false
\tfsync = all # a commit that main names must outlive a power cut
[protocol]
\tallow = never
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_LINKED = ("info", "objects", "refs")
"""The folders that git follows a link to; no other link to a folder is followed here."""
_OF_OBJECTS, _MOST_BORROWED = re.compile(r"[0-9a-f]{2}|info|pack"), 100
"""What git opens where objects lie, which may be any folder, and how many such places are looked at."""
_SETTLED_NS = 1_000_000_000
"""How long ago a folder must have changed, so that another change has another time."""
_LOOKED_AT: dict[str, tuple[tuple[int, int, int], Sequence[str]]] = {}
"""By folder of plain files and folders: its state when it was looked at, and the folders in it."""
_SHA256 = re.compile(rb"^[^\S\n]*+objectformat[^\S\n]*+=[^\S\n]*+\"?sha256", re.IGNORECASE | re.MULTILINE)
_OF_SHA256 = b"[extensions]\n\tobjectFormat = sha256\n"


def settings_folder(repository: Path) -> Path:
    """What GIT_COMMON_DIR is for this repository; what is missing there, or not as it was made, is made now."""
    folder, settings = repository / "pulse", repository / "config"
    try:
        if repository.is_symlink() or (repository / "commondir").exists():
            raise GitFailed(f"{repository} leads to another repository; the engine needs one of its own")
        refuse_odd_files(repository)
        if repository.stat().st_uid != os.geteuid():
            raise GitFailed(f"{repository.parent} belongs to another user; run this as its owner")
        for place in (repository / "logs", folder, folder / "info"):
            if place.is_symlink():
                place.unlink()
            place.mkdir(exist_ok=True)
        is_sha256 = settings.exists() and _SHA256.search(read_plain(settings, LARGEST))
        _hold(folder / "config", _SETTINGS + (_OF_SHA256 if is_sha256 else b""))
        _hold(folder / "info" / "attributes", _ATTRIBUTES)
        for name in _SHARED:
            if (repository / name).exists():
                _hold(folder / name, f"{'../' * name.count('/')}../{name}")
    except OSError as error:
        raise GitFailed(f"{folder} can't be used: {error.strerror or error}") from error
    return folder


def refuse_odd_files(folder: Path) -> None:
    """Raise GitFailed for what git would open there without a look at what it is, and wait for a pipe's other end.

    A folder of plain files and folders is read once, and again when its time has changed.
    """
    linked = (folder / name for name in _LINKED if (folder / name).is_symlink())
    folders = [os.fspath(folder), *map(os.fspath, linked), *_borrowed_folders(folder / "objects")]
    while folders:
        with suppress(OSError):  # what can't be listed is said by git
            folders += _folders_in(folders.pop())


def _borrowed_folders(objects: Path) -> Iterator[str]:
    """The folders that git opens where the objects lie that `info/alternates` names, and those that these name."""
    waiting, seen = [os.fspath(objects)], set[str]()
    while waiting:
        for other in _alternates(waiting.pop()):
            if other not in seen and len(seen) < _MOST_BORROWED:
                seen.add(other)
                waiting.append(other)
                with suppress(OSError, ValueError):  # there is no such folder
                    yield from (
                        f"{other}/{name}" for name in os.listdir(other) if _OF_OBJECTS.fullmatch(name)
                    )


def _alternates(objects: str) -> Iterator[str]:
    with suppress(OSError, ValueError):  # what is no file is found by whoever looks at its folder
        for line in read_plain(f"{objects}/info/alternates", LARGEST, follow=True).splitlines():
            path = line[1:-1].decode("unicode_escape").encode("latin-1") if line[:1] == b'"' else line
            if path and path[0] != ord("#"):
                yield os.path.join(objects, os.fsdecode(path))


def _folders_in(folder: str) -> Sequence[str]:
    """The folders in this one, whose other files are looked at if that was not done since it was changed."""
    status = os.stat(folder)
    state = (status.st_dev, status.st_ino, status.st_mtime_ns)
    known = _LOOKED_AT.get(folder)
    if known and known[0] == state:
        return known[1]
    found, is_plain = list[str](), time.time_ns() - status.st_mtime_ns > _SETTLED_NS
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                is_plain = False  # a link may come to lead elsewhere, and nothing changes here
                if _is_odd(Path(entry.path)):
                    raise GitFailed(f"{entry.path} is no plain file; remove it")
    if is_plain:
        _LOOKED_AT[folder] = (state, tuple(found))
    return found


def _is_odd(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir() or path.is_socket())


def _hold(place: Path, content: str | bytes) -> None:
    """Have a file hold this, or a link lead there; in one step, since other gits may be reading."""
    with suppress(OSError):
        if (os.readlink(place) if place.is_symlink() else read_plain(place, LARGEST)) == content:
            return
    if isinstance(content, bytes):
        replace_plain(place, content, synced=False)
        return
    new = place.with_name(f".{place.name}-{get_native_id()}")
    new.unlink(missing_ok=True)
    new.symlink_to(content)
    new.replace(place)
