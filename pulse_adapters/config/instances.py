"""Several homes on one machine, each by a name of its own: the instance `staging` has the home `~/.upulse-staging`."""

import re
from pathlib import Path

from pulse_core.model.errors import PulseError

BASE = "~/.upulse"
VARIABLE = "UPULSE_INSTANCE"
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"


class BadInstance(PulseError):
    """A text that is no valid instance name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is no instance's name; write 1 to 32 letters, digits, '-' or '_', the first one no sign, as 'staging'"
        )


def home_called(name: str) -> str:
    """The home of this instance, `~` unexpanded; raises BadInstance."""
    if not re.fullmatch(NAME, name):
        raise BadInstance(name)
    return f"{BASE}-{name}"


def instance_at(home: Path) -> str | None:
    """The instance whose home this is, of any user; None if its name is no instance's."""
    found = re.fullmatch(rf"\.upulse-({NAME})", home.name)
    return found[1] if found else None
