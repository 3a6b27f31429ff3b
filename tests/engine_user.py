"""A user for the engine, made by the same code as a system install makes it, and taken away after the tests."""

import os
import shutil
import site
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulse_adapters.engine_user.account import Account, create_account, first_unreadable
from pulse_adapters.engine_user.account_record import remove_record
from pulse_adapters.engine_user.layout import layout_path
from pulse_adapters.workers import process_tree

ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another user")
_NAME = f"pulse-test-{os.getpid()}"
_REPOSITORY = Path(__file__).parents[1]
_ANYBODY = Account("nobody", 65534, 65534)


@contextmanager
def throwaway() -> Iterator[Account]:
    """A user that is there for a while; nothing of it is left, nor of what it runs."""
    account = create_account(_NAME)
    try:
        yield account
    finally:
        process_tree.kill_processes(lambda now: [pid for pid in now if uid_of(pid) == account.uid])
        subprocess.run(["userdel", account.name], check=True, timeout=60)
        remove_record(account.name)


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
    shutil.rmtree(layout_path(home), ignore_errors=True)


@contextmanager
def python_for_all() -> Iterator[str]:
    """An interpreter with all that this one has which every user can read; skips where there is none.

    A clone in a home of mode 0700 is closed to everybody else. What is in it is linked (or copied) to an open folder.
    """
    if not first_unreadable(_ANYBODY):
        yield sys.executable
        return
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}")
    base = next((place for place in places if _serves(place)), None)
    if base is None:
        pytest.skip(
            f"{first_unreadable(_ANYBODY)} is closed to other users, and there is no other {version}; "
            "to have it tested: clone to where all may read, as /srv, and make test PYTHON=/usr/bin/python3"
        )
    with open_folder() as folder:
        subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
        packages = folder / "lib" / version / "site-packages"
        for place in site.getsitepackages():
            _linked(Path(place), packages)
        for name in ("pulse_core", "pulse_adapters", "upulse_cli", "tests", "engine_template"):
            _linked(_REPOSITORY / name, packages / name)
        yield str(folder / "bin" / "python")


def packages_for(python: str) -> tuple[str, ...]:
    """Where Pulse lies for an interpreter that was yielded by `python_for_all`, and that looks for no packages itself."""
    if python == sys.executable:
        return (str(_REPOSITORY),)
    return tuple(str(place) for place in Path(python).parents[1].glob("lib/*/site-packages"))


def lend(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hosts of this process start that interpreter, with the packages that it finds."""
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr("pulse_adapters.workers.host_process.ROOT", packages_for(python)[0])


def _serves(python: str) -> bool:
    """Whether anybody can start it."""
    return os.path.exists(python) and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in Path(python).resolve().parents
    )


def _linked(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)
