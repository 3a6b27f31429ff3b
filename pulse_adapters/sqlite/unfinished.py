"""A restore that was decided and not finished: until it is, nobody may take what lies there for the log."""

from pathlib import Path

from pulse_core.model.errors import Damaged

RESTORING = "restoring"
"""The directory beside the log in which a restore prepares itself."""

PLAN = "plan.json"
"""Its file that says what is to be done; while it is there, the restore is decided."""


def refuse_unfinished(path: Path) -> None:
    """Raise Damaged if the log at `path` is being exchanged for one from a backup, and that was broken off."""
    if (path.parent / RESTORING / PLAN).exists():
        raise Damaged(
            f"a restore of {path.parent} was broken off in its last step; finish it: upulse doctor --repair,"
            " or upulse restore again"
        )
