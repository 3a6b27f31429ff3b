"""Copies of the code beside the home, which only the engine's user may read."""

import hashlib
import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.engine_user.account import READABLE, Account, engine_account, first_unreadable
from pulse_adapters.sandbox.copy_tree import copy_tree
from pulse_adapters.workers.untrusted_paths import make_private, remove_tree
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import CannotLoad

BASE = Path("/var/cache/pulse-engine")
"""Of all homes; what lies there can be made anew at any time."""
_BEGUN, _LYING, _CACHE = ".begun-", "lying-", "cache"
_KEPT_S, _BEGUN_S = 7 * 86_400.0, 3_600.0


def engine_user_of(home: Path, name: str | None) -> "EngineUserLayout | None":
    """The user that this home's engine runs as, and its place; None if its code runs as we do. Raises PulseError.

    name: as the settings have it; one that is named must do. Another one is taken only if it can read Python and
    Pulse: where they were installed in root's own folders, the engine goes on as before.
    """
    account = engine_account(home, name)
    if account is None:
        return None
    if account.uid == home.stat().st_uid:
        raise PulseError(f"{home} belongs to the user {account.name}, who must not read it; name another one")
    if where := first_unreadable(account):
        if not name:
            return None
        raise PulseError(f"the user {account.name} can't read {where}; {READABLE}")
    return EngineUserLayout(account, home)


def layout_path(home: Path, base: Path = BASE) -> Path:
    """The place of one home."""
    path = os.path.realpath(home)
    return base / f"{home.name.lstrip('.') or 'home'}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class EngineUserLayout:
    """The place of one home for one user; only root can use it."""

    account: Account
    home: Path
    base: Path = BASE

    @property
    def path(self) -> Path:
        """The folder itself."""
        return layout_path(self.home, self.base)

    def shown(self, path: str) -> str:
        """Where the user finds a copy of this tree. A commit is copied once, any other tree as it is now.

        Raises CannotLoad.
        """
        try:
            return str(self._shown(Path(path)))
        except OSError as error:
            raise CannotLoad(f"{error.filename or self.path}: {error.strerror or error}") from error
        except PulseError as error:
            raise CannotLoad(f"{path} can't be given to the user {self.account.name}: {error}") from error

    def cache(self) -> Path:
        """A folder that the user may read, and only root may write to."""
        self._open()
        path = self.path / _CACHE
        if not path.exists():
            new = self._new()
            new.mkdir()
            new.chmod(0o755)
            _named(new, path)
        return path

    def _shown(self, source: Path) -> Path:
        self._open()
        is_commit = source.parent == self.home / "revisions"
        if is_commit and (there := self.path / source.name).is_dir():
            return there
        begun = self._new()
        try:
            digest = copy_tree(source, begun)
            name = source.name if is_commit else _LYING + digest[:24]
            shown = _named(begun, self.path / name)
        finally:
            remove_tree(begun)
        os.utime(shown)  # it is used: not old
        self._sweep(shown)
        return shown

    def _new(self) -> Path:
        return self.path / f"{_BEGUN}{secrets.token_hex(8)}"

    def _open(self) -> None:
        """Close the home, make the folders, and see that they are root's: whoever owned one could put other code there."""
        if stat.S_IMODE(self.home.stat().st_mode) & 0o077:
            make_private(self.home, self.home)
        for folder, mode, group in ((self.base, 0o755, 0), (self.path, 0o750, self.account.gid)):
            if not os.path.lexists(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            known = folder.lstat()
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid():
                raise PulseError(f"{folder} is not root's own folder; move it away")
            if known.st_gid != group or stat.S_IMODE(known.st_mode) != mode:
                os.chown(folder, -1, group)
                folder.chmod(mode)

    def _sweep(self, keep: Path) -> None:
        """Remove commits that the home no longer lays out, and what was tried long ago or never got whole."""
        for one in self.path.iterdir():
            with suppress(FileNotFoundError):  # somebody else sweeps, too
                if one != keep and self._is_over(one.name, time.time() - one.lstat().st_mtime):
                    remove_tree(one)

    def _is_over(self, name: str, age: float) -> bool:
        if name.startswith(_BEGUN):
            return age > _BEGUN_S
        if name.startswith(_LYING):
            return age > _KEPT_S
        return name != _CACHE and not (self.home / "revisions" / name).exists()


def _named(begun: Path, path: Path) -> Path:
    """Give what is whole its name; where another was first, that one stays."""
    try:
        os.rename(begun, path)
    except OSError:
        if not path.is_dir():
            raise
    return path
