"""mypy's cache for the homes of tests: what every engine imports is checked once, not again in each new home."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.sandbox.code_checks import SandboxedChecks

DAY = 86_400.0
_REPOSITORY = Path(__file__).parents[1]


def warm(home: Path) -> None:
    """Give a home what its first promote would spend seconds on."""
    place = home / "cache"
    place.mkdir(mode=0o700, exist_ok=True)
    if not (place / "mypy").exists():
        shutil.copytree(kept(), place / "mypy")


def kept() -> Path:
    """The cache that all have a copy of; made anew, by one worker for all, when a file of Pulse has changed."""
    files = sorted((_REPOSITORY / "pulse_core").rglob("*.py"))
    state = hashlib.sha256(
        repr([(str(file), file.stat().st_mtime_ns) for file in files]).encode()
    ).hexdigest()
    place = _REPOSITORY / ".mypy_cache"
    place.mkdir(exist_ok=True)
    made = place / f"engines-{state[:16]}"
    with (place / "engines.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make(place, made)
    return made


def _make(place: Path, made: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place, prefix="making-") as folder:
        template = shutil.copytree(template_folder(), Path(folder, "template"))
        checks = SandboxedChecks(template_folder() / "pyproject.toml", lambda: Path(folder))
        with ThreadPoolExecutor(1) as thread:  # whoever asks may have a loop
            thread.submit(checks.types, str(template)).result(timeout=280)
        for old in place.glob("engines-*"):
            if time.time() - old.stat().st_mtime > DAY:  # no other run can be about to copy it
                shutil.rmtree(old, ignore_errors=True)
        os.rename(Path(folder, "mypy"), made)
