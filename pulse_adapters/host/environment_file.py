"""Reads the variables of a guarded process from its `env_file`: lines as `NAME=value`, which may be quoted, and comments."""

import io
import os
import re
import stat
from collections.abc import Mapping
from functools import partial

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import open_plain, read_plain
from pulse_adapters.workers.spawn import ProcessUser, may_reach, others_decide
from pulse_adapters.workers.users import process_user
from pulse_core.model.errors import PulseError
from pulse_core.settings.processes import ProcessSettings

LARGEST = 64 << 10
"""Bytes of such a file."""
MOST_LINES, MOST_BLANKS = 1_000, 100
"""Of such a file, and in a row on one line: the parser takes a tenth of a millisecond for a line, and for blanks a time that
grows with their square, half a minute for a file of them; and the loop waits for it."""
_BLANKS = re.compile(r"[^\S\r\n]+")


async def environment_of(
    process: ProcessSettings, files: FileThreads, is_for_command: bool = False
) -> Mapping[str, str]:
    """What `env_file` and `env` give the process, the latter first. Raises PulseError if the file can't be read in time.

    is_for_command: whether they are for what runs as the daemon though the process has a `user`. By `PATH` or `LD_PRELOAD`
    whoever may change the file decides what that runs, and by what lies in its `cwd`, where Python, make and others look for
    more: raises PulseError if that is not only root.
    """
    if is_for_command and os.geteuid() == 0 and process_user(process.user):
        await _demand_none_of_others(process, files)
    if not (path := process.env_file):
        return process.env

    def read() -> Mapping[str, str]:
        return read_environment_file(path, process_user(process.user) if os.geteuid() == 0 else None)

    try:
        of_file = await files.ask(path, read)
    except TimeoutError as error:
        raise PulseError(f"env_file {path}: {error}") from error
    return {**of_file, **process.env}


async def _demand_none_of_others(process: ProcessSettings, files: FileThreads) -> None:
    instead = {"env_file": ("file", "give `env`"), "cwd": ("folder", "let the command enter it")}
    for key, place in (("env_file", process.env_file), ("cwd", process.cwd)):
        if not place:
            continue
        try:
            is_of_others = await files.ask(place, partial(others_decide, place))
        except TimeoutError as error:
            raise PulseError(f"{key} {place}: {error}") from error
        if is_of_others:
            raise PulseError(
                f"`command` runs as root, and others may change {key} {place}, and so what it does; make the "
                f"{instead[key][0]} and the folders that it lies in root's, or take it away and {instead[key][1]}"
            )


def read_environment_file(path: str, user: ProcessUser | None = None) -> Mapping[str, str]:
    """Its variables by name. Raises PulseError that names the line, and never what stands there.

    user: whom they are for, who is told by no link of his own what only others may read.
    """
    from dotenv.parser import parse_stream  # only here: most homes have no such file

    try:
        with open(open_plain(path, follow=True), "rb") as file:
            opened = f"/proc/self/fd/{file.fileno()}"
            place = os.readlink(opened)
            if user and place != path and others_decide(path) and not _may_read(user, file.fileno(), place):
                raise PulseError(f"env_file {path} leads to {place}, which {user.name} may not read")
            text = read_plain(opened, LARGEST, follow=True).decode()
    except BlockingIOError as error:
        raise PulseError(
            f"env_file {path} is kept by a lease of another process; make the file your own"
        ) from error
    except OSError as error:
        raise PulseError(f"env_file {path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PulseError(f"env_file {path} is no text in UTF-8") from error
    if max(text.count("\n"), text.count("\r")) > MOST_LINES:
        raise PulseError(f"env_file {path} has more than {MOST_LINES:,} lines")
    if long := next((one for one in _BLANKS.finditer(text) if len(one[0]) > MOST_BLANKS), None):
        line = text.count("\n", 0, long.start()) + 1
        raise PulseError(f"env_file {path}, line {line} has more than {MOST_BLANKS} blanks in a row")
    found = {}
    for one in parse_stream(io.StringIO(text)):
        is_wrong = one.error or (one.key is not None and (one.value is None or "\0" in one.key + one.value))
        if is_wrong or one.key == "":
            # The parser counts what stands before a line to it.
            before = len(one.original.string) - len(one.original.string.lstrip("\n"))
            raise PulseError(f"env_file {path}, line {one.original.line + before} is no NAME=value")
        if one.key is not None:
            found[one.key] = one.value or ""
    return found


def _may_read(user: ProcessUser, file: int, place: str) -> bool:
    """Whether a user may read the open file that lies there."""
    found = os.fstat(file)
    by_group = stat.S_IRGRP if found.st_gid in user.groups else stat.S_IROTH
    bit = stat.S_IRUSR if found.st_uid == user.uid else by_group
    return bool(found.st_mode & bit) and may_reach(user, os.path.dirname(place))
