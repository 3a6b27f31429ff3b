"""The home itself: whose it is, who may look into it, and what was left lying there."""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.sqlite.backup.restore import finish_decided
from pulse_adapters.sqlite.backup.swap import is_decided
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.unfinished import RESTORING
from pulse_core import __version__
from pulse_core.model.errors import PulseError
from upulse_cli.doctor.findings import FAIL, OK, WARN, Finding, Ground

PRIVATE = 0o700
STORES = (
    "config.toml",
    "events.db*",
    "vitals.db*",
    "state.db*",
    "objects",
    "objects/??",
    "logs",
    "logs/*",
    "run",
    "run/*",
)


def access(ground: Ground) -> Iterator[Finding]:
    """The home and its run/ are their owner's alone."""
    for path in (ground.home.path, ground.home.run):
        if not path.exists():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != PRIVATE:
            words = f"{path} has mode {mode:04o}: others may look at settings and secrets, or the daemon can't work there"
            yield Finding("access", FAIL, words, f"chmod 700 {path}", lambda path=path: _closed(path))  # type: ignore[misc]
        else:
            yield Finding("access", OK, f"{path} is its owner's alone")


def _closed(path: Path) -> str:
    path.chmod(PRIVATE)
    return f"{path} has mode 0700 now"


def owners(ground: Ground) -> Iterator[Finding]:
    """Everything in it belongs to the owner of the home, as whom the daemon runs."""
    home = ground.home.path
    owner = home.stat()
    found = [path for pattern in STORES for path in home.glob(pattern)]
    strange = [path for path in found if _owner(path) not in (owner.st_uid, None)]
    if not strange:
        yield Finding("owner", OK, f"everything belongs to {_called(owner.st_uid)}")
        return
    more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
    words = f"{strange[0]}{more} does not belong to {_called(owner.st_uid)}, whose home it is"

    def repair() -> str:
        for path in strange:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        return f"{len(strange)} files belong to {_called(owner.st_uid)} now"

    yield Finding("owner", FAIL, words, f"as root: chown -R {_called(owner.st_uid)} {home}",
                  repair if os.geteuid() == 0 else None)  # fmt: skip


def _owner(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.lstat().st_uid
    return None


def _called(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def reserve(ground: Ground) -> Iterator[Finding]:
    """The space that is given up when the disk is full."""
    path = ground.home.reserve
    if path.exists() and path.stat().st_blocks * 512 >= SIZE:
        yield Finding("reserve", OK, f"{SIZE >> 20} MiB are held back for a full disk")
        return

    def repair() -> str:
        if not Reserve(path).make():
            raise PulseError("there is no room for it")
        owner = ground.home.path.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
        return f"{SIZE >> 20} MiB are held back again"

    yield Finding("reserve", WARN, "nothing is held back for a full disk: it was given up, or never made",
                  "the next start of the daemon makes it, or upulse doctor --repair", repair)  # fmt: skip


def leftovers(ground: Ground) -> Iterator[Finding]:
    """What a killed daemon, or a restore that was broken off, has left."""
    home = ground.home
    if is_decided(home):
        yield Finding("restore", FAIL, "a restore was broken off in its last step, and nobody may use the home until it is"
                      " finished", "upulse doctor --repair, or upulse restore again", lambda: _finish(home))  # fmt: skip
    elif (home.path / RESTORING).exists() and ground.holder is None:
        yield Finding(
            "restore",
            WARN,
            "a restore was broken off before it changed anything; do it again if it is wanted",
        )
    if ground.holder is not None:
        return
    stale = [path for path in (home.socket, home.pid) if os.path.lexists(path)]
    if stale:
        names = " and ".join(path.name for path in stale)
        yield Finding("leftovers", WARN, f"{names} in {home.run} are left of a daemon that was killed",
                      "the next start replaces them, or upulse doctor --repair", lambda: _removed(home, stale))  # fmt: skip


def _finish(home: Home) -> str:
    with HomeLock(home.lock, __version__, wait=10.0):
        restored = finish_decided(home)
    return f"the restore from {restored.source} is finished" if restored else "it was finished already"


def _removed(home: Home, stale: list[Path]) -> str:
    with HomeLock(home.lock, __version__):  # so nobody uses them
        for path in stale:
            path.unlink(missing_ok=True)
    return f"removed {', '.join(path.name for path in stale)}"
