"""Which backup was made last, kept in the home: it knows a row that must be there, and how old the newest copy is."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home
from upulse_cli.backup.files import write_synced
from upulse_cli.backup.manifest import Manifest

NAME = "last-backup.json"


class LastBackup(NamedTuple):
    """Where it is, when it was made (UTC microseconds), and the last row of the log in it."""

    path: str
    made_at: int
    seq: int
    chain: bytes

    @property
    def row(self) -> tuple[int, bytes]:
        """The last row with its chain value."""
        return self.seq, self.chain


def remember(home: Home, path: Path, manifest: Manifest) -> None:
    """Keep it in mind; a home that can't be written is backed up all the same."""
    with suppress(OSError):
        kept = {"path": str(path), "made_at": manifest.made_at, "seq": manifest.seq, "chain": manifest.chain}
        write_synced(home.path / NAME, json.dumps(kept) + "\n")
        if os.geteuid() == 0:
            owner = home.path.stat()
            os.chown(home.path / NAME, owner.st_uid, owner.st_gid)


def last_backup(home: Home) -> LastBackup | None:
    """The last one that was made, or None."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads((home.path / NAME).read_text())
        return LastBackup(
            str(kept["path"]), int(kept["made_at"]), int(kept["seq"]), bytes.fromhex(kept["chain"])
        )
    return None
