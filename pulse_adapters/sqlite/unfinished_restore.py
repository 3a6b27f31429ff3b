"""A restore that was decided and not finished: until it is, nobody may take what lies there for the log."""

from pathlib import Path

from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged


def refuse_unfinished(path: Path) -> None:
    """Raise Damaged if the log at `path` is being exchanged for one from a backup, and that was broken off."""
    if HomeLayout(path.parent).restore_plan.exists():
        raise Damaged(
            f"a restore of {path.parent} was broken off in its last step; finish it: upulse doctor --repair,"
            " or upulse restore again"
        )
