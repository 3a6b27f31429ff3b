"""What a backup says of itself: whose it is, up to which row, and the SHA-256 of every file in it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pulse_core.model.errors import Damaged, NewerFormat, PulseError

FORMAT = 1
NAME = "backup.json"


@dataclass(frozen=True)
class FileFact:
    """A file of a backup: its bytes, SHA-256 in hex, and mode; or a symbolic link: where it points to."""

    bytes: int
    sha256: str
    mode: int
    link: str | None = None


@dataclass(frozen=True)
class Manifest:
    """A backup in a few words; times in UTC microseconds, `chain` in hex.

    accepted: the damage in the log that a person had accepted; files: by their path in the backup.
    """

    version: str
    made_at: int
    machine: str
    home: str
    host: str
    log_format: int
    seq: int
    chain: str
    accepted: str = ""
    files: Mapping[str, FileFact] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def head(self) -> tuple[int, bytes]:
        """The last row and its chain value."""
        return self.seq, bytes.fromhex(self.chain)

    def text(self) -> str:
        """As it is written: JSON, with the SHA-256 of the rest in it."""
        whole = asdict(self)
        return json.dumps({**whole, "sha256": _digest(whole)}, indent=1) + "\n"


def read_manifest(backup: Path) -> Manifest:
    """What the backup in this directory says; raises PulseError if there is none, Damaged, or NewerFormat."""
    path = backup / NAME
    try:
        if path.is_fifo():  # to open it would wait for whoever writes into it
            raise _altered(path)
        whole = json.loads(path.read_text())
        digest = whole.pop("sha256")
    except FileNotFoundError:
        raise PulseError(
            f"{backup} is no backup: there is no {NAME} in it; give what `upulse backup` made"
        ) from None
    except OSError as error:
        raise PulseError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise _altered(path) from None
    if isinstance(whole.get("format"), int) and whole["format"] > FORMAT:
        raise NewerFormat(
            f"{backup} has the format {whole['format']} of a newer Pulse ({whole.get('version')}), this one knows"
            f" {FORMAT}; restore it with that one"
        )
    if digest != _digest(whole):
        raise _altered(path)
    try:
        files = {name: FileFact(**fact) for name, fact in whole.pop("files").items()}
        return Manifest(**whole, files=files)
    except (TypeError, KeyError, AttributeError) as error:
        raise _altered(path) from error


def _digest(whole: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _altered(path: Path) -> Damaged:
    return Damaged(f"{path} is not what was written: this backup can't be trusted; take another one")
