"""Reads the variables of a guarded process from its `env_file`: lines as `NAME=value`, which may be quoted, and comments."""

import io
from collections.abc import Mapping

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import read_plain
from pulse_core.model.errors import PulseError
from pulse_core.settings.processes import ProcessSettings

LARGEST = 64 << 10
"""Bytes of such a file."""


async def environment_of(process: ProcessSettings, files: FileThreads) -> Mapping[str, str]:
    """What `env_file` and `env` give the process, the latter first. Raises PulseError if the file can't be read in time."""
    if not (path := process.env_file):
        return process.env
    try:
        of_file = await files.ask(path, lambda: read_environment_file(path))
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
