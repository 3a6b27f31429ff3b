"""The one way from a TOML file to its values: bounded, and whatever is wrong with it is a fault with its line."""

import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.config.toml_lines import Path as Place
from pulse_adapters.config.toml_lines import excess, locate, nearest
from pulse_adapters.workers.plain_file import NotPlain, open_plain
from pulse_adapters.workers.users import find_group, find_user
from pulse_core.model.errors import NoHome, PulseError, SettingsRefused
from pulse_core.model.text import one_line

LARGEST = 1 << 18
"""Bytes of a file: a reader of more would take seconds, and no settings come near to it."""

MOST_ENTRIES = 256
"""Elements of a list, and tables of one name: each tick looks at every process, silence and disk."""

_SAID_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_SAID_TABLE = re.compile(r"Cannot declare \((.*)\) twice")
_PLAINLY = {
    "Cannot overwrite a value": "this key is there twice",
    "Unclosed array": "a list is not closed; a ']' is missing",
}


class TomlFile(NamedTuple):
    """The text of a file, and the values in it."""

    text: str
    data: dict[str, Any]


@contextmanager
def failures_as_faults(path: Path) -> Iterator[None]:
    """Inside, whatever is raised about a file's content is a fault of the file: no text may end its reader."""
    try:
        yield
    except PulseError:
        raise
    except Exception as error:
        raise refusal(path, 1, f"no usable settings ({type(error).__name__}: {error})") from error


def read_toml(path: Path, owners: Collection[int] = ()) -> TomlFile:
    """The file's text and values. Raises SettingsRefused with the fault and its line, or NoHome.

    owners: to whom it must belong, if to anybody, and who alone may write to it: what others write must not be run.
    """
    with failures_as_faults(path):
        return parse_toml(path, _decoded(path, _read(path, owners)).replace("\r\n", "\n"))


def parse_toml(path: Path, text: str) -> TomlFile:
    """The values of a text that this file has. Raises SettingsRefused with the fault and its line."""
    with failures_as_faults(path):
        if found := excess(text):
            raise refusal(path, *found)
        data = _parsed(path, text)
        if long := _longest_list(data):
            at, length = long
            words = (
                f"{'.'.join(map(str, at))}: there are {length:,} of them; at most {MOST_ENTRIES} make sense"
            )
            raise refusal(path, nearest(locate(text), at), words)
        return TomlFile(text, data)


def refusal(path: Path, line: int, words: str) -> SettingsRefused:
    """One fault, with its line."""
    return SettingsRefused([f"{one_line(path)}:{line}: {words}"])


def refuse_others(path: Path, found: os.stat_result, owners: Collection[int]) -> None:
    """Raise SettingsRefused for what others may write to, or own while no link of one of these leads to it."""
    if not owners:
        return
    link = os.lstat(path)
    if (link if stat.S_ISLNK(link.st_mode) else found).st_uid not in owners:
        words = f"it belongs to user {found.st_uid}, whose home this is not; see: upulse doctor"
        raise refusal(path, 1, words)
    mode, gid = stat.S_IMODE(found.st_mode), found.st_gid
    of_group = mode & 0o020 and not any(_is_of_user_alone(gid, uid) for uid in (found.st_uid, *owners))
    if (mode & 0o002 or of_group) and not os.statvfs(path).f_flag & os.ST_RDONLY:
        who = "every user" if mode & 0o002 else f"group {gid}"
        raise refusal(path, 1, f"{who} may write to it (mode {mode:04o}); chmod go-w {one_line(path)}")


def _is_of_user_alone(gid: int, uid: int) -> bool:
    """Whether it is this user's own group, for which a umask of 0002 is common: of that name, and with no other member."""
    try:
        user, group = find_user(uid), find_group(gid)
    except PulseError:
        return False
    if user is None or group is None:
        return False
    return (user.gid, user.name) == (gid, group.name) and {*group.members} <= {user.name}


def _read(path: Path, owners: Collection[int]) -> bytes:
    try:
        file = open_plain(path, follow=True)
    except FileNotFoundError as error:
        if not path.parent.is_dir():
            raise NoHome(str(path.parent)) from error
        words = "there is no such file; 'upulse init' writes a commented one"
        raise refusal(path, 1, words) from error
    except NotPlain as error:
        what = "a directory" if path.is_dir() else "no regular file"
        raise refusal(path, 1, f"this is {what}; the settings must be a file") from error
    except OSError as error:
        raise refusal(path, 1, f"can't be read: {error.strerror}") from error
    try:
        with open(file, "rb") as opened:
            size = (found := os.fstat(file)).st_size
            refuse_others(path, found, owners)
            blob = opened.read(LARGEST + 1)
    except OSError as error:
        raise refusal(path, 1, f"can't be read: {error.strerror}") from error
    if not blob:
        words = "it is empty, as a crash or a full disk leaves a file; put it back, or write a comment for the defaults"
        raise refusal(path, 1, words)
    if len(blob) > LARGEST:
        raise refusal(path, 1, f"this has {max(size, len(blob))} bytes; settings have at most {LARGEST}")
    return blob


def _decoded(path: Path, blob: bytes) -> str:
    try:
        return blob.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = blob.count(b"\n", 0, error.start) + 1
        byte = f"{blob[error.start]:#04x}"
        raise refusal(path, line, f"byte {byte} is no UTF-8; save it as UTF-8 text") from error


def _longest_list(value: Any, at: Place = ()) -> tuple[Place, int] | None:
    """The first list with too many entries, and how many it has."""
    if isinstance(value, list) and len(value) > MOST_ENTRIES:
        return at, len(value)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, one in inner if (found := _longest_list(one, (*at, key)))), None)


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = _SAID_AT.search(str(error))
        line = int(said[1]) if said and said[1] else text.count("\n") + 1
        words = str(error)[: said.start()] if said else str(error)
        if table := _SAID_TABLE.fullmatch(words):
            name = tuple(re.findall(r"'([^']*)'", table[1]))
            first = locate("".join(text.splitlines(keepends=True)[: line - 1])).get(name)
            words = f"[{'.'.join(name)}] is there already, on line {first}; put both under one header"
        raise refusal(path, line, f"no valid TOML: {_PLAINLY.get(words, words)}") from error
