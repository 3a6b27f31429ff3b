"""How the daemon has the repository changed: by a child that can be killed, one verb a life."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pulse_adapters.git.author import PULSE
from pulse_adapters.git.errors import MainMoved
from pulse_adapters.git.revision_path import objects, revision
from pulse_adapters.git.tree_hash import is_of
from pulse_core.model.errors import PulseError
from pulse_core.ports import Revision

TIMEOUT_S = 30.0
GRACE_S = 1.0
"""How long git has to take its locks away when it is ended."""
_KINDS: dict[str, type[PulseError]] = {"MainMoved": MainMoved}


class GitChild:
    """Implements `Revisions`. Each verb raises PulseError with the child's own words."""

    def __init__(self, home: Path, timeout: float = TIMEOUT_S) -> None:
        self._home, self._timeout = home, timeout

    async def head(self) -> str:
        """The commit that main is."""
        return str((await self._ask("head"))["commit"])

    async def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, as it was committed; no child is needed if it is there."""
        path = revision(self._home, commit)
        if await asyncio.to_thread(is_of, path, commit, objects(self._home)):
            return Revision(commit, str(path))
        said = await self._ask("ensure", commit)
        return Revision(commit, said["path"], said["altered"])

    async def point_main(self, commit: str, expected: str) -> None:
        """Make the commit main if main is `expected`; raises MainMoved."""
        await self._ask("point-main", commit, expected)

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        """A commit on top of main with the content of `to`, laid out, and a branch for the rejected one; nothing moves."""
        message = f"Go back to {to[:12]}: {why or 'somebody asked'}"
        said = await self._ask("going-back", to, rejected, message, PULSE)
        return Revision(said["commit"], said["path"]), said["branch"]

    async def _ask(self, verb: str, *words: str) -> dict[str, Any]:
        argv = (sys.executable, "-P", "-m", "pulse_adapters.git.child", str(self._home), verb, *words)
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        )
        try:
            out, err = await asyncio.wait_for(child.communicate(), self._timeout)
        except TimeoutError:
            raise PulseError(
                f"git {verb} did not end within {self._timeout:g} s; look at {self._home}"
            ) from None
        finally:
            await _ended(child)
        return _understood(verb, out, err)


async def _ended(child: asyncio.subprocess.Process) -> None:
    """End it and the git it has begun, if they live; git is given the time to take its locks away."""
    if child.returncode is not None:
        return
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signum)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), GRACE_S)
            return


def _understood(verb: str, out: bytes, err: bytes) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(out)
    except ValueError:
        words = " ".join(err.decode(errors="replace").split())[-500:] or "it said nothing"
        raise PulseError(f"git {verb} ended without an answer: {words}") from None
    if "error" in said:
        raise _KINDS.get(said.get("kind", ""), PulseError)(said["error"])
    return said
