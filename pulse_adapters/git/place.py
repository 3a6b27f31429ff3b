"""Where a commit is laid out to be run."""

import re
from pathlib import Path

from pulse_core.model.errors import PulseError

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def revision(home: Path, commit: str) -> Path:
    """The folder of a commit, there or not; takes the whole hash."""
    if not COMMIT.fullmatch(commit):
        raise PulseError(f"{commit!r} is no whole commit hash")
    return home / "revisions" / commit
