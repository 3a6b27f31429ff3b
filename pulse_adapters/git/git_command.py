"""How git is called: alone with its repository, without hooks, without anybody's configuration, never asking."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from pulse_adapters.git.author import COMMITTER
from pulse_adapters.git.errors import GitFailed, NoGit
from pulse_adapters.git.neutralize_filters import FilterOverrides, filter_overrides

try:
    from git.cmd import Git as _Git
    from git.exc import GitCommandNotFound
except ImportError as error:
    raise NoGit(f"the engine needs git, and the Python package gitpython: {error}") from error

MAIN, STAGING, FOLLOWED = "refs/heads/main", "refs/heads/staging", "refs/pulse/followed"
"""FOLLOWED names the commit that the files of `engine/` were last made of."""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",  # a commit that main names must outlive a power cut
    "core.quotePath=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "merge.autoStash=false",
    "core.attributesFile=/dev/null",
    "log.showSignature=false",
)
_OPTIONS = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_ENVIRONMENT = {
    **COMMITTER,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_WORDS = 1_000


class GitResult(NamedTuple):
    """How a call ended: git's exit code, and what it printed."""

    exit: int
    text: str
    error: str


class Git:
    """Calls git in a home's repository. Called like a function it returns what git printed, or raises GitFailed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.engine, self.staging = home / "engine", home / "staging"
        self.folder = self.engine / ".git"
        self._seen: dict[Path, FilterOverrides] = {}

    def __call__(self, *words: str, at: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        answer = self.run(*words, at=at, env=env)
        if answer.exit:
            raise self.failure(words, answer)
        return answer.text.rstrip("\n")

    def ask(self, *words: str, at: Path | None = None) -> str | None:
        """What git printed, or None if it said no."""
        answer = self.run(*words, at=at)
        return None if answer.exit else answer.text.rstrip("\n")

    def run(
        self,
        *words: str,
        at: Path | None = None,
        env: Mapping[str, str] | None = None,
        into: IO[bytes] | None = None,
        reading: BinaryIO | None = None,
    ) -> GitResult:
        """Run git, whatever its exit; `into`: where its output goes instead; `reading`: what it is told."""
        there = at or self.engine
        ours = {**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(self.home), **(env or {})}
        ours |= filter_overrides(self._seen, there, self.folder, lambda *asked: self._run(asked, there, ours))
        return self._run(words, there, ours, into, reading)

    def _run(
        self,
        words: Collection[str],
        at: Path,
        ours: Mapping[str, str],
        into: IO[bytes] | None = None,
        reading: BinaryIO | None = None,
    ) -> GitResult:
        try:
            code, text, said = _Git(str(at)).execute(
                [*_without(ours), "git", *_OPTIONS, *words],
                env=ours,
                with_extended_output=True,
                with_exceptions=False,
                strip_newline_in_stdout=False,
                output_stream=into,
                istream=reading,
            )
        except GitCommandNotFound as error:
            raise NoGit(f"git can't be run in {at}: {error.stderr or 'not found'}") from error
        if "dubious ownership" in (told := _text(said)):
            raise GitFailed(
                f"{self.engine} belongs to another user, and git refuses to run there; run this as its owner"
            )
        return GitResult(code, _text(text), told)

    def failure(self, words: Collection[str], answer: GitResult) -> GitFailed:
        """The error for a call that failed, in git's words."""
        said = " ".join(answer.error.split()) or f"exit {answer.exit}"
        command = next(iter(words), "")
        return GitFailed(f"git {command} failed in {self.home}: {said[:_WORDS]}")

    def commit(self, name: str) -> str | None:
        """The full hash of the commit that this full name means, or None."""
        return self.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")

    def tree(self, name: str) -> str:
        """The hash of a commit's tree."""
        return self("rev-parse", "--verify", "--quiet", f"{name}^{{tree}}")

    def contains(self, younger: str, older: str) -> bool:
        """Whether the older commit is the younger one, or among its ancestors."""
        return self.run("merge-base", "--is-ancestor", older, younger).exit == 0

    def differing(self, old: str, new: str) -> set[str]:
        """The names of the files that are not the same in two trees."""
        said = self("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        return set(said.split("\0")) - {""}

    def branch_at(self, at: Path) -> str | None:
        """The full name of the branch that a worktree is on; None if its head is detached."""
        return self.ask("symbolic-ref", "--quiet", "HEAD", at=at)


def _without(ours: Collection[str]) -> list[str]:
    """What takes away variables that would send git elsewhere, as its own hooks have them; nearly always nothing."""
    strange = [name for name in os.environ if name.startswith("GIT_") and name not in ours]
    return ["env", *(f"--unset={name}" for name in strange)] if strange else []


def _text(said: str | bytes) -> str:
    return said if isinstance(said, str) else said.decode("utf-8", "surrogateescape")
