"""Reads the variables of a guarded process from its `env_file`: lines as `NAME=value`, which may be quoted, and comments."""

import io
import os
from collections.abc import Mapping

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import read_plain
from pulse_adapters.workers.spawn import others_decide
from pulse_adapters.workers.users import process_user
from pulse_core.model.errors import PulseError
from pulse_core.settings.processes import ProcessSettings

LARGEST = 64 << 10
"""Bytes of such a file."""


async def environment_of(
    process: ProcessSettings, files: FileThreads, for_daemon: str = ""
) -> Mapping[str, str]:
    """What `env_file` and `env` give the process, the latter first. Raises PulseError if the file can't be read in time.

    for_daemon: which key they are for, of those that run as the daemon though the process has a `user`. By `PATH` or
    `LD_PRELOAD` whoever may change the file decides what that runs: raises PulseError if that is not only root.
    """
    if not (path := process.env_file):
        return process.env

    def read() -> Mapping[str, str]:
        if for_daemon and os.geteuid() == 0 and process_user(process.user) and others_decide(path):
            raise PulseError(
                f"`{for_daemon}` runs as root, and others may change env_file {path}, and so what it does; make the "
                f"file and the folders that it lies in root's, or take it away and give `env`"
            )
        return read_environment_file(path)

    try:
        of_file = await files.ask(path, read)
    except TimeoutError as error:
        raise PulseError(f"env_file {path}: {error}") from error
    return {**of_file, **process.env}


def read_environment_file(path: str) -> Mapping[str, str]:
    """Its variables by name. Raises PulseError that names the line, and never what stands there."""
    from dotenv.parser import parse_stream  # only here: most homes have no such file

    try:
        text = read_plain(path, LARGEST, follow=True).decode()
    except BlockingIOError as error:
        raise PulseError(
            f"env_file {path} is kept by a lease of another process; make the file your own"
        ) from error
    except OSError as error:
        raise PulseError(f"env_file {path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PulseError(f"env_file {path} is no text in UTF-8") from error
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
