"""Reads the journal of a unit, the system's or this user's."""

import subprocess
from collections.abc import Iterator

from pulse_adapters.systemd.manager import Unit
from pulse_core.model.errors import PulseError


def journal_lines(unit: Unit, count: int, follow: bool) -> Iterator[str]:
    """The last lines, and then new ones if `follow`."""
    command = ["journalctl", "--user-unit" if unit.user else "-u", unit.name, "-o", "cat", "--no-pager"]
    command += ["-n", str(count), *(["--follow"] if follow else [])]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as reader:
            yield from (line.rstrip("\n") for line in reader.stdout or ())
    except FileNotFoundError as error:
        raise PulseError("there is no journalctl on this machine") from error
    if reader.returncode:
        raise PulseError(f"journalctl ended with exit {reader.returncode}")
