"""Payloads too large for a row: the row keeps a reference, the text lies in the objects."""

import json
from pathlib import Path

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


def object_path(directory: Path, name: str) -> Path:
    """Where the objects keep this blob: `ab/cdef…`."""
    return directory / name[:2] / name[2:]
