"""Changes the repository for the daemon, by a child process that can be killed, one for each verb."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TypeVar

from pulse_adapters.git.errors import MainMoved
from pulse_adapters.git.git_files import is_laid_out, read_main, repository_fault, revision_folder
from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.threads import ThreadShortage
from pulse_adapters.workers.worker import module_program
from pulse_core.model.errors import PulseError
from pulse_core.model.shortages import shortage
from pulse_core.ports.engine import Revision

TIMEOUT_S = 30.0
GRACE_S = 1.0
"""How long git has to take its locks away when it is ended."""
T = TypeVar("T")


class GitClient:
    """Implements `Revisions`. Each verb raises PulseError with the child's own words."""

    def __init__(self, home: Path, timeout: float = TIMEOUT_S, files: FileThreads | None = None) -> None:
        self._home, self._timeout, self._files = home, timeout, files or FileThreads()

    async def head(self) -> str:
        """The commit that main is; no child is needed if the files tell it."""
        return await asyncio.to_thread(read_main, self._home) or await self._ask("head", str)

    async def fault(self, commit: str, thorough: bool) -> str:
        """What is wrong with the repository of this commit; thorough: git reads all that it and main hold, too."""
        folder = str(self._home / "engine")
        try:
            if fault := await self._files.ask(folder, partial(repository_fault, self._home)):
                return fault
        except OSError as error:
            words = f"{folder} can't be looked at: {error}"
            if isinstance(error, ThreadShortage) or shortage(
                error
            ):  # which says nothing about the repository
                raise PulseError(words) from error
            return words
        return await self._ask("fault", str, commit) if thorough else ""

    async def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, as it was committed; no child is needed if it is there."""
        if await asyncio.to_thread(is_laid_out, self._home, commit):
            return Revision(commit, str(revision_folder(self._home, commit)))
        return await self._ask("ensure", Revision, commit)

    async def point_main(self, commit: str, expected: str) -> str:
        """Make the commit main if main is `expected`; raises MainMoved. The branch of what lay about in `engine/`.

        Raises PulseError, too, if main is that and the files of `engine/` are not: asked again it has them follow.
        """
        done = await self._ask("point-main", tuple[str, str, tuple[str, ...], str], commit, expected)
        _, stray, _, fault = done
        if fault:
            raise PulseError(fault)
        return stray

    async def going_back(self, to: str, rejected: str, why: str) -> tuple[Revision, str]:
        """A commit on top of main with the content of `to`, laid out, and a branch for the rejected one; nothing moves."""
        message = f"Go back to {to[:12]}: {why or 'somebody asked'}"
        return await self._ask("going-back", tuple[Revision, str], to, rejected, message)

    async def _ask(self, verb: str, kind: type[T], *words: str) -> T:
        program = module_program("pulse_adapters.git.worker")
        request = {"home": str(self._home), "verb": verb, "words": words}
        errors: dict[str, type[PulseError]] = {"MainMoved": MainMoved}
        try:
            return await ask(program, request, kind, seconds=self._timeout, gentle=GRACE_S, errors=errors)
        except WorkerFault as fault:
            raise PulseError(f"git {verb} {fault}; look at {self._home}") from None
