"""Commands that are killed just before their nth change to files: `python -m tests.campaign.dying_command PLACE`.

Changes are what Python itself tells its auditors of: a name made, moved, or taken away, a file opened to be written, a
database opened, anywhere below PLACE, or in a folder that is open. Each line of its input is a list in JSON: the number,
the file that takes what is said, and the words of the command; each line of its output is how that ended. With the number
0 the command lives, and says at its end how many changes there were.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from upulse_cli.__main__ import main
from upulse_cli.wiring import backup  # noqa: F401 - what the commands would import, each anew

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
TWO_NAMES = {"os.rename", "os.link", "os.symlink"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Fate:
    """Counts changes, and kills the process before the chosen one."""

    def __init__(self, nth: int, place: str) -> None:
        self.nth, self.place, self.seen, self.last = nth, place, 0, ""

    def __call__(self, name: str, args: tuple[Any, ...]) -> None:
        if name not in CHANGES and not (name == "open" and args[2] is not None and args[2] & WRITING):
            return
        if not any(self._is_here(arg) for arg in args[: 2 if name in TWO_NAMES else 1]):
            return
        self.seen += 1
        self.last = f"{name} {args[0]!r}"
        if self.seen == self.nth:
            os.write(2, f"killed before {self.last}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_here(self, arg: Any) -> bool:
        text = os.fsdecode(arg).removeprefix("file:") if isinstance(arg, str | bytes | Path) else ""
        return bool(text) and (text.startswith((self.place, "/proc/self/fd/")) or not os.path.isabs(text))


def serve(place: str) -> None:
    """A process for each command; all that commands import is in memory already, which spares most of a start."""
    for line in sys.stdin:
        nth, said, *words = json.loads(line)
        if not (pid := os.fork()):
            os._exit(lived(Fate(int(nth), place), said, words))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def lived(fate: Fate, said: str, words: list[str]) -> int:
    """The command's exit code if it comes to that; 99 is none of a command."""
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for theirs in (1, 2):
        os.dup2(output, theirs)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.addaudithook(fate)
    try:
        code = main(words)
        print(fate.seen, flush=True)
        return code
    except Exception:  # noqa: BLE001 - a child that went on would read its parent's lines
        traceback.print_exc()
        sys.stderr.flush()
        return 99


if __name__ == "__main__":
    serve(sys.argv[1])
