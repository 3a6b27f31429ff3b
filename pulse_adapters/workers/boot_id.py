"""The kernel's name for the present boot: whether something is of before a restart of the machine, no clock can tell."""

from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """It, or nothing if it can't be read."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
