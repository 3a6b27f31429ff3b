"""Finding the large payloads that rows refer to, and saying which are lost; for readers, so synchronous."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.errors import translate_error
from pulse_adapters.sqlite.references import MARK, object_path, referenced_object


class LostPayload(Exception):
    """A payload is not there, or not what was stored; the words say which object, and what is wrong with it."""


def payload_in(objects: Path, data: str) -> str:
    """The payload that a row's reference means; raises Lost."""
    try:
        name = referenced_object(data)
    except (ValueError, LookupError, TypeError):
        raise LostPayload("its reference to an object can't be read") from None
    path = object_path(objects, name)
    try:
        blob = path.read_bytes()
    except (OSError, ValueError) as error:
        raise LostPayload(
            f"the object {path} is missing ({getattr(error, 'strerror', None) or error})"
        ) from error
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
