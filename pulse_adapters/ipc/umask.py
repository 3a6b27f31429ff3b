"""The umask of commands: what they make is its owner's alone, and a daemon that they start has the umask that people gave.

A daemon keeps that one, for what it guards: it gives each of its files a mode, since its threads share one umask.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_PRIVATE = 0o077
_given = -1


@contextmanager
def private_files() -> Iterator[None]:
    """Inside, files that this process makes are for its user alone."""
    global _given
    outer, before = _given, os.umask(_PRIVATE)
    _given = before if outer < 0 else outer
    try:
        yield
    finally:
        os.umask(before)
        _given = outer


def given_umask() -> int:
    """The umask that this process was given, for what is started to stay; -1 if it has that one still."""
    return _given
