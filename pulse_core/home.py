"""What lies where in a home: the one layout that every part of Pulse knows. It looks at no disk."""

from dataclasses import dataclass
from pathlib import Path


class HomePath:
    """A path within a home, relative to its directory."""

    def __init__(self, relative: str) -> None:
        self.relative = relative

    def __get__(self, home: "HomeLayout", owner: type) -> Path:
        return home.path / self.relative


@dataclass(frozen=True, slots=True)
class HomeLayout:
    """The paths of a home by its absolute directory."""

    path: Path

    config = HomePath("config.toml")
    """The settings file."""
    config_parts = HomePath("conf.d")
    """The directory of files with more settings."""
    events = HomePath("events.db")
    """The event log."""
    saved_log = HomePath("events.db.saved")
    """The rows of a log that was deleted or replaced under the daemon; while it is there, nobody may use the log."""
    vitals = HomePath("vitals.db")
    """Samples and tick records."""
    state = HomePath("state.db")
    """Checkpoints of projections."""
    objects = HomePath("objects")
    """The directory of immutable blobs."""
    run = HomePath("run")
    """The directory of what lives only while something runs."""
    lock = HomePath("run/lock")
    """The file whose holder alone writes."""
    socket = HomePath("run/pulse.sock")
    """Where the daemon answers, or a link to it where the settings put it elsewhere."""
    pid = HomePath("run/pid")
    """The daemon's process id, for tools that want a file."""
    failure = HomePath("run/failure")
    """Why the newest daemon gave up, until another one begins."""
    exported = HomePath("exported.json")
    """Up to where traces were exported."""
    reserve = HomePath("run/reserve")
    """Space that is freed when the disk is full."""
    outputs = HomePath("logs")
    """The directory of what guarded processes print."""
    daemon_log = HomePath("daemon.log")
    """What the daemon says when it runs in the background."""
    damaged = HomePath("damaged")
    """The directory where damaged stores are set aside."""
    restoring = HomePath("restoring")
    """The directory in which a restore prepares itself."""
    restore_plan = HomePath("restoring/plan.json")
    """What a restore will do; while it is there, the restore is decided, and nobody may use the log."""

    @property
    def shadow_logs(self) -> tuple[Path, Path]:
        """What a shadow did: the newest file, and the one before it."""
        return self.path / "shadow.jsonl", self.path / "shadow.jsonl.1"
