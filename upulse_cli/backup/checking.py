"""Is a backup what was backed up? Everything in it is read, and its log row by row, before anything is put back."""

from pathlib import Path

from pulse_adapters.sqlite.backup import examine
from pulse_core.model.errors import Damaged
from upulse_cli.backup.files import fact_of
from upulse_cli.backup.making import Told
from upulse_cli.backup.manifest import Manifest, read_manifest


def sound(backup: Path, told: Told) -> Manifest:
    """What the backup says of itself, once all of it is found to be true. Raises Damaged, NewerFormat."""
    told("checking the backup …")
    manifest = read_manifest(backup)
    for name, fact in manifest.files.items():
        if name.startswith("/") or ".." in name.split("/"):
            raise Damaged(f"{backup} names a file outside of it ({name}); take another backup")
        try:
            found = fact_of(backup / name)
        except OSError as error:
            raise Damaged(f"{backup / name} can't be read ({error.strerror}); take another backup") from error
        if (found.sha256, found.link) != (fact.sha256, fact.link):
            raise Damaged(f"{backup / name} is not what was backed up; take another backup")
    log = examine(backup / "events.db", backup / "objects")
    if (log.seq, log.chain) != manifest.head or bool(log.accepted) != bool(manifest.accepted):
        raise Damaged(f"the log in {backup} is another one than its manifest says; take another backup")
    return manifest
