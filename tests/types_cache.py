"""mypy's cache for the homes of tests: what every engine imports is checked once, not again in each new home."""

import fcntl
import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.sandbox.code_checks import SandboxedChecks, state_of_types

DAY = 86_400.0
_REPOSITORY = Path(__file__).parents[1]


def warm(place: Path) -> None:
    """Put into a folder of caches what the first promote would spend seconds on."""
    place.mkdir(mode=0o700, exist_ok=True)
    if not (there := place / f"mypy-{state_of_types()}").exists():
        shutil.copytree(kept(), there)


def kept() -> Path:
    """The cache that all have a copy of; made anew, by one worker for all, when a file of Pulse has changed."""
    place = _REPOSITORY / ".mypy_cache"
    place.mkdir(exist_ok=True)
    made = place / f"engines-{state_of_types()}"
    with (place / "engines.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make(place, made)
    return made


def _make(place: Path, made: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place, prefix="making-") as folder:
        checks = SandboxedChecks(template_folder() / "pyproject.toml", lambda: Path(folder))
        with ThreadPoolExecutor(1) as thread:  # whoever asks may have a loop
            known = thread.submit(checks.known_types).result(timeout=280)
        for old in place.glob("engines-*"):
            if time.time() - old.stat().st_mtime > DAY:  # no other run can be about to copy it
                shutil.rmtree(old, ignore_errors=True)
        os.rename(known, made)
