"""A user for the engine, made by the same code as a system install makes it, and taken away after the tests."""

import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.action_host import tree
from pulse_adapters.engine_user.account import SYSUSERS, Account, make
from pulse_adapters.engine_user.layout import place_of
from pulse_adapters.engine_user.reach import barrier
from pulse_adapters.sandbox.copy_tree import remove_tree

ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another user")
_NAME = f"pulse-test-{os.getpid()}"
_REPOSITORY = Path(__file__).parents[1]


@contextmanager
def throwaway() -> Iterator[Account]:
    """A user that is there for a while; nothing of it is left, nor of what it runs."""
    account = make(_NAME)
    try:
        yield account
    finally:
        tree.end(lambda now: [pid for pid in now if uid_of(pid) == account.uid])
        subprocess.run(["userdel", account.name], check=True, timeout=60)
        (SYSUSERS / f"{account.name}.conf").unlink(missing_ok=True)


def uid_of(pid: int) -> int | None:
    """Whose a process is."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into; those of pytest are closed again by every pytest that begins."""
    with tempfile.TemporaryDirectory(prefix="pulse-user-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def cleared(home: Path) -> None:
    """Remove what was laid out for this home."""
    remove_tree(place_of(home))


def readable_python(account: Account, folder: Path) -> str:
    """An interpreter that this user can read, with all that this one has; skips where there is none."""
    if not barrier(account):
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if os.path.exists(found):
            return _like_this(found, folder, version)
    pytest.skip(f"{barrier(account)} is closed to other users, and there is no other {version}")


def _like_this(python: str, folder: Path, version: str) -> str:
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    paths = [str(_REPOSITORY), *site.getsitepackages()]
    (folder / "lib" / version / "site-packages" / "all.pth").write_text("\n".join(paths))
    return str(folder / "bin" / "python")
