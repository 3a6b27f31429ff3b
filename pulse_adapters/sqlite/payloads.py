"""Payloads too large for a row: the row keeps a reference, the text lies in the objects."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.errors import translate_error
from pulse_adapters.workers.plain_file import open_plain

LARGE = 32 * 1024
"""A payload of more bytes than this goes to the objects."""

MARK = '{"$object":'
"""How a reference begins."""


def reference(name: str, size: int) -> str:
    """What the row says instead of the payload."""
    return f'{MARK}"{name}","size":{size}}}'


def is_reference(data: str | None) -> bool:
    """Whether this text is a reference and not a payload; no field's name begins with a dollar."""
    return data is not None and data.startswith(MARK)


def all_plain(texts: list[str | None]) -> bool:
    """Whether none of these is a reference or redacted, told quickly; False may be wrong."""
    try:
        return MARK not in "\n".join(texts)  # type: ignore[arg-type]  # a None among them is the answer
    except TypeError:
        return False


def referenced_object(data: str) -> str:
    """The name of the object that a reference means."""
    return str(json.loads(data)["$object"])


def is_object_name(name: str) -> bool:
    """Whether an object can have this name, a SHA-256 in hex; any other might lead out of the objects."""
    return len(name) == 64 and set(name) <= set("0123456789abcdef")


def object_path(directory: Path, name: str) -> Path:
    """Where the objects keep this blob: `ab/cdef…`."""
    return directory / name[:2] / name[2:]


class LostPayload(Exception):
    """A payload is not there, or not what was stored; the words say which object, and what is wrong with it."""


def payload_in(objects: Path, data: str) -> str:
    """The payload that a row's reference means; raises LostPayload."""
    try:
        name = referenced_object(data)
    except (ValueError, LookupError, TypeError):
        name = ""
    if not is_object_name(name):
        raise LostPayload("its reference to an object can't be read")
    path = object_path(objects, name)
    try:
        with open(open_plain(path), "rb") as file:
            blob = file.read()
    except OSError as error:
        how = "is missing" if isinstance(error, FileNotFoundError) else "can't be read"
        raise LostPayload(f"the object {path} {how} ({error.strerror})") from error
    if hashlib.sha256(blob).hexdigest() != name:
        raise LostPayload(f"the object {path} is not what was stored under its name")
    return blob.decode()


def lost_payloads(path: Path, objects: Path) -> Iterator[tuple[int, str, str]]:
    """Each row of a sound log whose payload is lost, as its number, its kind and why. Reads the whole log."""
    sql = f"SELECT seq, kind, data FROM event WHERE data GLOB '{MARK}*' ORDER BY seq"
    try:
        with closing(connect_readonly(path)) as connection:
            for seq, kind, data in connection.execute(sql):
                try:
                    payload_in(objects, data)
                except LostPayload as lost:
                    yield seq, kind, str(lost)
    except sqlite3.Error as error:
        raise translate_error(error, path) from error
