"""What git reads in place of a repository's own settings, which can name programs for it to run.

Git takes settings, attributes and hooks from the folder that GIT_COMMON_DIR names. The one here holds settings of
Pulse's and links to the repository's objects and refs. So no key of `.git/config`, of what it includes, or of a later
git has to be known to be overruled: nobody reads them. The attributes keep git from changing what is in a file.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pulse_adapters.git.errors import GitFailed

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
_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*\"?sha256", re.IGNORECASE | re.MULTILINE)


def settings_folder(repository: Path) -> Path:
    """What GIT_COMMON_DIR is for this repository; made now if it is missing, or not as it was made."""
    try:
        if repository.is_symlink() or (repository / "commondir").exists():
            raise GitFailed(f"{repository} leads to another repository; the engine needs one of its own")
        if repository.stat().st_uid != os.geteuid():
            raise GitFailed(f"{repository.parent} belongs to another user; run this as its owner")
        (repository / "logs").mkdir(exist_ok=True)
        folder, links, files = repository / "pulse", _links(repository), _files(repository)
        if not _holds(folder, links, files):
            _make(folder, links, files)
    except OSError as error:
        raise GitFailed(f"{repository} can't be used: {error.strerror or error}") from error
    return folder


def _links(repository: Path) -> Mapping[str, str]:
    return {name: f"{'../' * name.count('/')}../{name}" for name in _SHARED if (repository / name).exists()}


def _files(repository: Path) -> Mapping[str, bytes]:
    try:
        is_sha256 = _SHA256.search((repository / "config").read_bytes())
    except FileNotFoundError:  # it is only being made
        is_sha256 = None
    kind = b"[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else b""
    return {"config": _SETTINGS + kind, "info/attributes": _ATTRIBUTES}


def _holds(folder: Path, links: Mapping[str, str], files: Mapping[str, bytes]) -> bool:
    if folder.is_symlink() or any((folder / name).is_symlink() for name in ("info", *files)):
        return False
    try:
        return all(os.readlink(folder / name) == target for name, target in links.items()) and all(
            (folder / name).read_bytes() == content for name, content in files.items()
        )
    except OSError:
        return False


def _make(folder: Path, links: Mapping[str, str], files: Mapping[str, bytes]) -> None:
    begun = Path(tempfile.mkdtemp(prefix="pulse-", dir=folder.parent))
    new = begun / "new"
    try:
        (new / "info").mkdir(parents=True)
        for name, target in links.items():
            (new / name).symlink_to(target)
        for name, content in files.items():
            (new / name).write_bytes(content)
        if os.path.lexists(folder):
            folder.rename(begun / "old")
        new.rename(folder)
    except OSError:
        if not _holds(folder, links, files):  # else another process was first
            raise
    finally:
        shutil.rmtree(begun, ignore_errors=True)
