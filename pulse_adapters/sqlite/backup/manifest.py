"""What a backup says of itself: whose it is, up to which row, and the SHA-256 of every file in it."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, with_config

from pulse_adapters.workers.plain_file import NotPlain, read_plain
from pulse_core.model.errors import Damaged, NewerFormat, PulseError
from pulse_core.model.text import one_line

FORMAT = 1
NAME = "backup.json"
TREES = ("engine", "staging", "conf.d")
"""What is copied as a tree, and may hold links."""
DEEPEST = 100
"""Parts of a file's path in a backup."""
LARGEST = 256 * 2**20
"""Bytes of a manifest: a million files."""
LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999 in UTC microseconds."""
_SINGLE = re.compile(r"(events|vitals)\.db|config\.toml|shadow\.jsonl(\.1)?")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")


def _path_text(value: object) -> str:
    """A text that can be a path; names that are no UTF-8 have surrogates, which pydantic's own texts can't have."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("no text of a path")
    blob = os.fsencode(value)  # a UnicodeEncodeError is a ValueError
    if os.fsdecode(blob) != value or len(blob) > 4095:
        raise ValueError("no text of a path")
    return value


_PathText = Annotated[str, PlainValidator(_path_text)]
_Number = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
_CHECKED = ConfigDict(extra="forbid")


@with_config(_CHECKED)
@dataclass(frozen=True)
class FileFact:
    """A file of a backup: its bytes, SHA-256 in hex, and mode; or a symbolic link: where it points to."""

    bytes: _Number
    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    mode: Annotated[int, Field(strict=True, ge=0, le=0o7777)]
    link: _PathText | None = None


@with_config(_CHECKED)
@dataclass(frozen=True)
class Manifest:
    """A backup in a few words; times in UTC microseconds, `chain` in hex.

    accepted: the damage in the log that a person had accepted; files: by their path in the backup.
    """

    version: Annotated[str, Field(max_length=100)]
    made_at: Annotated[int, Field(strict=True, ge=0, le=LAST_MOMENT)]
    machine: Annotated[str, Field(max_length=255)]
    home: _PathText
    host: Annotated[str, Field(max_length=100)]
    log_format: _Number
    seq: _Number
    chain: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    accepted: str = ""
    files: Mapping[_PathText, FileFact] = field(default_factory=dict)
    format: Annotated[int, Field(strict=True, ge=1, le=FORMAT)] = FORMAT

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
        whole = json.loads(read_plain(path, LARGEST))
        digest = whole.pop("sha256")
        is_whole = digest == _digest(whole)
    except FileNotFoundError:
        raise PulseError(
            f"{backup} is no backup: there is no {NAME} in it; give what `upulse backup` made"
        ) from None
    except NotPlain:
        raise _altered(path) from None
    except OSError as error:
        raise PulseError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise _altered(path) from None
    if isinstance(whole.get("format"), int) and whole["format"] > FORMAT:
        raise NewerFormat(
            f"{backup} has the format {whole['format']} of a newer Pulse ({one_line(str(whole.get('version')))}), this one"
            f" knows {FORMAT}; restore it with that one"
        )
    if not is_whole:
        raise _altered(path)
    try:
        manifest = TypeAdapter(Manifest).validate_python(whole)
    except ValueError:
        raise _altered(path) from None
    if "events.db" not in manifest.files:
        raise Damaged(f"{backup} has no log; take another backup")
    folders = {str(folder) for name in manifest.files for folder in PurePosixPath(name).parents}
    for name, fact in manifest.files.items():
        if name in folders or not _may_be(name, fact):
            raise Damaged(f"{backup} names {name!a:.300}, as no backup does; take another backup")
    return manifest


def _may_be(name: str, fact: FileFact) -> bool:
    """Whether a backup can have such a file: a link only in a tree, an object only under its own name."""
    tree, *parts = name.split("/")
    if tree in TREES and 0 < len(parts) < DEEPEST and not {"", ".", ".."}.intersection(parts):
        return bool(fact.sha256) if fact.link is None else bool(fact.link) and not fact.sha256
    named = _OBJECT.fullmatch(name)
    is_known = "".join(named.groups()) == fact.sha256 if named else _SINGLE.fullmatch(name)
    return bool(is_known and fact.sha256) and fact.link is None


def _digest(whole: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _altered(path: Path) -> Damaged:
    return Damaged(f"{path} is not what was written: this backup can't be trusted; take another one")
