"""The hash chain: each row's value covers the row and, through the one before it, all rows before."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

COLUMNS = "seq, id, at, boot, mono, kind, subject, actor, host, cause, data"
"""The columns of an event, in the order of its fields."""

ALL_COLUMNS = f"{COLUMNS}, data_sha256, chain"
START = bytes(32)


def seal(columns: tuple[Any, ...], digest: bytes) -> bytes:
    """A row without its place in the log, as bytes: columns `id` to `cause`, and the SHA-256 of its data.

    NUL parts the texts, so none may hold one (ValueError) and no two rows look alike.
    """
    id, at, boot, mono, kind, subject, actor, host, cause = columns
    why = "" if cause is None else "." + cause
    text = "\0".join((id, boot, kind, subject, actor, host, why, f"{at},{mono}"))
    if text.count("\0") != 7:
        raise ValueError("a text of the row holds a NUL")
    return digest + text.encode()


def link(previous: bytes, seq: int, sealed: bytes) -> bytes:
    """The chain value of row `seq`."""
    return sha256(b"%b%d:%b" % (previous, seq, sealed)).digest()


def first_fault(
    rows: Iterable[tuple[Any, ...]], seq: int, chain: bytes, may_be_empty: Callable[[tuple[Any, ...]], bool]
) -> tuple[int, str]:
    """Walk rows of ALL_COLUMNS from the row after `seq`: how many were good, and what is wrong with the next.

    may_be_empty: whether a row that has no data was redacted. The text is empty when all rows are good.
    """
    good = 0
    for row in rows:
        seq += 1
        if fault := _fault(row, seq, chain, may_be_empty):
            return good, fault
        chain = row[12]
        good += 1
    return good, ""


def _fault(
    row: tuple[Any, ...], seq: int, previous: bytes, may_be_empty: Callable[[tuple[Any, ...]], bool]
) -> str:
    if row[0] != seq:
        return f"row {seq} is missing (the next one is {row[0]})"
    try:
        if row[10] is not None and sha256(row[10].encode()).digest() != row[11]:
            return f"the data of row {seq} was altered"
        if link(previous, seq, seal(row[1:10], row[11])) != row[12]:
            return f"row {seq} was altered, or the row before it"
        if row[10] is None and not may_be_empty(row):
            return f"the data of row {seq} is gone, and no event-redacted names it"
    except (TypeError, AttributeError, ValueError):  # a column of another type, or no text any more
        return f"row {seq} was altered: it is no event any more"
    return ""
