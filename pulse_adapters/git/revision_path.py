"""Where a commit is laid out to be run."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pulse_core.model.errors import PulseError

ALTERED = ".altered-"
"""How the names of folders begin that were not any more what had been laid out there."""
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class LaidOutRevision(NamedTuple):
    """Where a commit is laid out. altered: where lies what was there instead, if somebody had changed it."""

    path: Path
    altered: str = ""


def revision_folder(home: Path, commit: str) -> Path:
    """The folder of a commit, there or not; takes the whole hash."""
    if not COMMIT.fullmatch(commit):
        raise PulseError(f"{commit!r} is no whole commit hash")
    return home / "revisions" / commit


def objects_folder(home: Path) -> Path:
    """Where the engine's repository keeps what was committed."""
    return home / "engine" / ".git" / "objects"


def altered_revisions(home: Path) -> Sequence[str]:
    """The commits whose files somebody had changed after they were laid out; what they were is still there."""
    return sorted(one.name.removeprefix(ALTERED) for one in (home / "revisions").glob(f"{ALTERED}*"))
