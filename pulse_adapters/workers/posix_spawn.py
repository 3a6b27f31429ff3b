"""Starts a program by the C library's posix_spawn. Python's has the whole process wait until the program is executed, which
on a busy machine takes until it is given a processor; and it knows of no working directory and of no control group.

glibc 2.39 and later have a process be born in a group (`posix_spawnattr_setcgroup_np`). It takes a quarter of a millisecond
more than a spawn beside the group, while to move a process into one takes the kernel ten milliseconds, in which it may fork
and its children get away.
"""

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

_LIBC = ctypes.CDLL(None)
_SETSIGDEF, _SETSIGMASK, _SETSID, _SETCGROUP = 0x04, 0x08, 0x80, 0x100
_ATTRIBUTES, _ACTIONS, _SIGNALS = 512, 256, 128
"""Bytes of its structures, or more (they have 336, 80 and 128)."""


@cache
def can_spawn_in_group() -> bool:
    """Whether this machine's C library can do it."""
    return hasattr(_LIBC, "posix_spawnattr_setcgroup_np")


def posix_spawn(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    descriptors: Mapping[int, int],
    *,
    cwd: str | None,
    group: int | None,
    blocked: Iterable[int],
    defaults: Iterable[int],
) -> int:
    """The pid of a new process, as `spawn` makes it; other threads go on meanwhile. Raises OSError or ValueError.

    descriptors: with the standard three; group: a descriptor of the control group's folder; blocked: the signals that are;
    defaults: those whose dispositions are set to their defaults.
    """
    attributes, actions = ctypes.create_string_buffer(_ATTRIBUTES), ctypes.create_string_buffer(_ACTIONS)
    pid = ctypes.c_int()
    _try(_LIBC.posix_spawnattr_init(attributes))
    _try(_LIBC.posix_spawn_file_actions_init(actions))
    try:
        flags = _SETSIGDEF | _SETSIGMASK | _SETSID | (0 if group is None else _SETCGROUP)
        _try(_LIBC.posix_spawnattr_setflags(attributes, ctypes.c_short(flags)))
        _try(_LIBC.posix_spawnattr_setsigdefault(attributes, _signals(defaults)))
        _try(_LIBC.posix_spawnattr_setsigmask(attributes, _signals(blocked)))
        if group is not None:
            _try(_LIBC.posix_spawnattr_setcgroup_np(attributes, group))
        for number, ours in descriptors.items():
            _try(_LIBC.posix_spawn_file_actions_adddup2(actions, ours, number))
        if cwd is not None:
            _try(_LIBC.posix_spawn_file_actions_addchdir_np(actions, _bytes(cwd)))
        words = _strings(argv), _strings([f"{name}={value}" for name, value in env.items()])
        _try(_LIBC.posix_spawn(ctypes.byref(pid), _bytes(program), actions, attributes, *words))
    finally:
        _LIBC.posix_spawn_file_actions_destroy(actions)
        _LIBC.posix_spawnattr_destroy(attributes)
    return pid.value


def _try(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))


def _signals(numbers: Iterable[int]) -> "ctypes.Array[ctypes.c_char]":
    """A set of signals as the C library has it: one bit each."""
    bits = sum(1 << (number - 1) for number in numbers)
    return ctypes.create_string_buffer(bits.to_bytes(_SIGNALS, "little"), _SIGNALS)


def _bytes(text: str) -> bytes:
    if "\0" in text:
        raise ValueError("embedded null character")
    return os.fsencode(text)


def _strings(words: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * (len(words) + 1))(*map(_bytes, words))
