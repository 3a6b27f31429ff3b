"""What lies where in a home: the one layout that every part of Pulse knows. It looks at no disk."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HomeLayout:
    """The paths of a home by its absolute directory."""

    path: Path

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.path / "config.toml"

    @property
    def events(self) -> Path:
        """The event log."""
        return self.path / "events.db"

    @property
    def vitals(self) -> Path:
        """Samples and tick records."""
        return self.path / "vitals.db"

    @property
    def state(self) -> Path:
        """Checkpoints of projections."""
        return self.path / "state.db"

    @property
    def objects(self) -> Path:
        """The directory of immutable blobs."""
        return self.path / "objects"

    @property
    def run(self) -> Path:
        """The directory of what lives only while something runs."""
        return self.path / "run"

    @property
    def lock(self) -> Path:
        """The file whose holder alone writes."""
        return self.run / "lock"

    @property
    def socket(self) -> Path:
        """Where the daemon answers, or a link to it where the settings put it elsewhere."""
        return self.run / "pulse.sock"

    @property
    def pid(self) -> Path:
        """The daemon's process id, for tools that want a file."""
        return self.run / "pid"

    @property
    def exported(self) -> Path:
        """Up to where traces were exported."""
        return self.path / "exported.json"

    @property
    def reserve(self) -> Path:
        """Space that is freed when the disk is full."""
        return self.run / "reserve"

    @property
    def outputs(self) -> Path:
        """The directory of what guarded processes print."""
        return self.path / "logs"

    @property
    def daemon_log(self) -> Path:
        """What the daemon says when it runs in the background."""
        return self.path / "daemon.log"

    @property
    def damaged(self) -> Path:
        """The directory where damaged stores are set aside."""
        return self.path / "damaged"

    @property
    def shadow_logs(self) -> tuple[Path, Path]:
        """What a shadow did: the newest file, and the one before it."""
        return self.path / "shadow.jsonl", self.path / "shadow.jsonl.1"

    @property
    def restoring(self) -> Path:
        """The directory in which a restore prepares itself."""
        return self.path / "restoring"

    @property
    def restore_plan(self) -> Path:
        """What a restore will do; while it is there, the restore is decided, and nobody may use the log."""
        return self.restoring / "plan.json"
