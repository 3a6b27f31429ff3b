"""Programs that come out of themselves in every way: that fork, detach themselves, hide, and go into the background."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

FORKS_TWICE = (
    "import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"
    "; os.execvp('sleep', sys.argv[1:])"
)
TWICE = f'{sys.executable} -c "{FORKS_TWICE}"'
FORKS_ALONE = "import os, time; any(os.fork() == 0 for _ in range(2)) and {}; time.sleep(1000)"
FORK, SETSID = (f"exec {sys.executable} -c '{FORKS_ALONE.format(how)}' S" for how in ("None", "os.setsid()"))
"""Programs whose helpers execute nothing, and show the command line of their main process."""
DEAF = "trap '' TERM HUP INT; "

ESCAPES = "(env -i setsid S &); exec S"
"""It leaves its parents, its session and its environment at once, before it could be moved into a control group."""

PROGRAMS = {  # by name: what sh is told, where S is a `sleep` that is known by its argument; and how many it leaves
    "nothing": ("exec S", 1),
    "fork": ("S & S & exec S", 3),
    "grandchildren": ("(S & S & wait) & exec S", 3),
    "double fork": ("(S &); exec S", 2),
    "setsid": ("setsid S & setsid S & exec S", 3),
    "double fork and setsid": (f"{TWICE} S; exec S", 2),
    "who ignores SIGTERM": (f"({DEAF}S & exec setsid S) & exec S", 3),
    "without an environment": ("env -i S & exec env -i S", 2),
    "a group of its own": ("set -m; S & S & exec S", 3),
    "stopped": ("S & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; exec S", 2),
    "goes into the background": ("setsid sh -c 'S & exec S' & exit 0", 2),
    "with a pid file": ("setsid sh -c 'S & setsid S & echo $$ >PID; exec S' & exit 0", 3),
    "forks without exec": (FORK, 3),
    "setsid without exec": (SETSID, 3),
    "who hands over": ("setsid S & exec sh -c 'S & exec S'", 3),
}


def is_of_program(line: Sequence[str], seconds: str) -> bool:
    """Whether a command line is that of a process which stays, of a program with this `sleep`."""
    return line[-2:] == ["sleep", seconds] and FORKS_TWICE not in line


def script_of(script: str, seconds: str, pid_file: Path) -> str:
    """The script of a program for sh."""
    return re.sub(r"\bS\b", f"sleep {seconds}", script.replace("PID", str(pid_file)))
