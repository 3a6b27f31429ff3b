"""The demo's temporary home, which is removed afterwards with every process that its daemons have started."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host.process_search import find_marked
from pulse_adapters.workers.environment import PROCESS_MARK


def filled_settings(template: str, home: Path) -> str:
    """The settings of a scene: {python}, a free {port} and the {home} are filled in, doubled braces are braces."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    for name, value in (("python", f'"{sys.executable}"'), ("port", port), ("home", str(home))):
        template = template.replace(f"{{{name}}}", value)
    return template.replace("{{", "{").replace("}}", "}")


def kill_started(home: Path) -> Sequence[int]:
    """Kill what the home's daemons have started, with what that has started; the pids of those that lived."""
    left = [one.pid for one in asyncio.run(find_marked(f"demo@{home}", PROCESS_MARK))]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left
