"""A command that is killed just before its nth change to files: `python -m tests.campaign.dying_command NTH PLACE …`.

Changes are what Python itself tells its auditors of: a name made, moved, or taken away, a file opened to be written, a
database opened, anywhere below PLACE. With NTH 0 the command lives, and says at its end how many there were.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from upulse_cli.__main__ import main

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "sqlite3.connect",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Fate:
    """Counts changes, and kills the process before the chosen one."""

    def __init__(self, nth: int, place: str) -> None:
        self.nth, self.place, self.seen, self.last = nth, place, 0, ""

    def __call__(self, name: str, args: tuple[Any, ...]) -> None:
        if name not in CHANGES and not (name == "open" and args[2] is not None and args[2] & WRITING):
            return
        if not any(self._is_here(arg) for arg in args):
            return
        self.seen += 1
        self.last = f"{name} {args[0]!r}"
        if self.seen == self.nth:
            os.write(2, f"killed before {self.last}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_here(self, arg: Any) -> bool:
        text = os.fsdecode(arg) if isinstance(arg, str | bytes | Path) else ""
        return text.removeprefix("file:").startswith(self.place)


if __name__ == "__main__":
    fate = Fate(int(sys.argv[1]), sys.argv[2])
    sys.addaudithook(fate)
    code = main(sys.argv[3:])
    print(fate.seen)
    sys.exit(code)
