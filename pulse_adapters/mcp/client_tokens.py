"""Tokens of clients: a file in the home for each, which its owner alone can read. Whoever deletes it has ended the token."""

import hmac
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from pulse_adapters.workers.plain_file import open_plain, read_plain
from pulse_core.model.errors import PulseError

FOLDER = "clients"
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TOKEN = re.compile(rf"client:({NAME}):[A-Za-z0-9_-]{{32}}")
_LONGEST = 200


def token_of(home: Path, name: str, *, make: bool) -> str:
    """The token of this client; if it has none, a new one, or none at all. Raises PulseError for a name of no use."""
    if not re.fullmatch(NAME, name):
        raise PulseError(f"{name[:100]!r} is no name of a client: letters, digits, '.', '_' and '-'")
    folder = home / FOLDER
    if (found := _read(folder / name)) or not make:
        return found
    folder.mkdir(mode=0o700, exist_ok=True)
    made = f"client:{name}:{secrets.token_urlsafe(24)}"
    with (
        suppress(FileExistsError),
        open(open_plain(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as file,
    ):
        file.write(made)
    return _read(folder / name)


def name_of(home: Path, token: str) -> str | None:
    """The client whose token this is; None if it is nobody's. Compared in constant time."""
    if not (shape := _TOKEN.fullmatch(token)):
        return None
    known = _read(home / FOLDER / shape[1])
    return shape[1] if known and hmac.compare_digest(known.encode(), token.encode()) else None


def _read(path: Path) -> str:
    try:
        return read_plain(path, _LONGEST).decode("ascii", "replace")
    except OSError:
        return ""
