"""Runs git, and what goes by its repositories, as whoever owns them: what lies there decides what git runs."""

import errno
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pulse_adapters.workers.environment import inherited_environment, selected_variables
from pulse_adapters.workers.full_disk import is_full
from pulse_adapters.workers.program_runner import ProgramResult, ProgramRunner
from pulse_adapters.workers.users import owner_of
from pulse_core.model.errors import PulseError

TIMEOUT_S = 100.0
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class OwnedGit:
    """Git of a repository and of one folder beside it. Blocks: for threads; raises PulseError. `close` ends what it runs.

    folder: an agent may have put a link there: it is run as whose that is, and not as whose it is to what it leads.
    """

    def __init__(self, repository: Path, folder: Path) -> None:
        self._repository, self._folder = repository, folder
        self._programs = ProgramRunner()
        self.close = self._programs.close

    def __call__(self, *words: str, at: Path | None = None, check: bool = True) -> str:
        """What git prints; with `check` a failure raises PulseError, else it is an empty answer."""
        there = at or self._repository
        return self.run(("git", "-C", str(there), *_SAFE), *words, there=there, check=check)

    def run(self, program: Sequence[str], *words: str, there: Path | None = None, check: bool = True) -> str:
        """What a program prints, run by whoever owns `there`, else the repository, in which it is run then."""
        at, name = there or self._repository, program[0]
        try:
            code, said, failed = self._call((*program, *words), at, None if there else at)
        except subprocess.TimeoutExpired as error:
            raise PulseError(f"{name} {words[0]} in {at} did not end within {TIMEOUT_S:g} s") from error
        except OSError as error:
            raise PulseError(f"{name} can't be run in {at}: {error.strerror}") from error
        if code and check:
            words_ = " ".join(_text(failed).split())[:1_000] or f"exit {code}"
            full = f"{os.strerror(errno.ENOSPC)}: " if any(map(is_full, (self._repository, at))) else ""
            raise PulseError(f"{name} {words[0]} failed in {at}: {full}{words_}")
        return "" if code else _text(said).strip()

    def _call(self, argv: Sequence[str], there: Path, cwd: Path | None) -> ProgramResult:
        """How it ended, and what it printed. Another owner than this user learns nothing of the environment here."""
        owner = owner_of(there, is_followed=there != self._folder)
        known = selected_variables("PATH", "LANG", "TZ") if owner else inherited_environment()
        env = {name: value for name, value in known.items() if not name.startswith("GIT_")}
        env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1"}
        env |= owner.environment if owner else {}
        return self._programs.run(argv, env, owner, TIMEOUT_S, cwd)


def _text(printed: bytes) -> str:
    """As what can be recorded: the subject of a commit may be of any bytes."""
    return printed.decode(errors="backslashreplace")
