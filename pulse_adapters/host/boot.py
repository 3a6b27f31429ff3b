"""The current boot's id. Quick to import, since commands that only show something need no more."""

import sys
from pathlib import Path

from pulse_core.model.errors import PulseError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """The kernel's name for this boot; empty if it can't be read."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def require_linux() -> None:
    """Raise at start if /proc or pidfds are missing, instead of failing later."""
    if sys.platform != "linux":
        raise PulseError(f"Pulse guards processes on Linux only for now, and this is {sys.platform}")
