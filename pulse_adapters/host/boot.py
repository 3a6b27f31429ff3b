"""The boot that this machine is in; quick to import, since commands that only show something need no more."""

import sys
from pathlib import Path

from pulse_core.model.errors import PulseError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """The kernel's name for this boot; empty where there is none to be read."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def require_linux() -> None:
    """Say early that /proc and pidfds are needed, instead of failing somewhere inside."""
    if sys.platform != "linux":
        raise PulseError(f"Pulse guards processes on Linux only for now, and this is {sys.platform}")
