"""How git is called: alone with its repository, without hooks, without anybody's configuration, never asking."""

import os
import pwd
import re
import socket
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pulse_adapters.git.errors import GitFailed, NoGit
from pulse_core.model.errors import PulseError

try:
    from git.cmd import Git as _Git
    from git.exc import GitCommandNotFound
except ImportError as error:
    raise NoGit(f"the engine needs git, and the Python package gitpython: {error}") from error

MAIN, STAGING, FOLLOWED = "refs/heads/main", "refs/heads/staging", "refs/pulse/followed"
"""FOLLOWED names the commit that the files of `engine/` were last made of."""
NEW = "0" * 40
"""What `update-ref` takes for the old value of a name that is not there yet."""

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
COMMITTER = {
    "GIT_COMMITTER_NAME": "Pulse",
    "GIT_COMMITTER_EMAIL": "pulse@localhost",
    "GIT_AUTHOR_NAME": "Pulse",
    "GIT_AUTHOR_EMAIL": "pulse@localhost",
}
PULSE = "Pulse <pulse@localhost>"
_AUTHOR = re.compile(r"(?P<name>[^<>\x00-\x1f]*[^<>\x00-\x20.,:;'\"]) <(?P<email>[^<>\x00-\x20]*)>")
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
_HARMLESS = {
    ("filter", "clean"): "",
    ("filter", "smudge"): "",
    ("filter", "process"): "",
    ("filter", "required"): "false",
    ("merge", "driver"): "git merge-file --marker-size=%L %A %O %B",
}
"""What overrules the filters and merge drivers that a repository's own settings name, so that git runs no such program.

Attributes that are kept beside the files choose a filter or a way to merge; which program that is, `.git/config` says,
and no option of git's switches all of them off. So what is set there is asked for, and each one overruled by name:
a filter by nothing (the file stays as it is), a way to merge by git's own.
"""
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
        self._overrides: dict[Path, tuple[object, Mapping[str, str]]] = {}

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
        reading: BinaryIO | None = None,
    ) -> GitResult:
        """Run git, whatever its exit; `reading`: what it is told."""
        there = at or self.engine
        ours = {**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(self.home), **(env or {})}
        return self._run(words, there, {**ours, **self._filter_overrides(there, ours)}, reading)

    def _filter_overrides(self, at: Path, env: Mapping[str, str]) -> Mapping[str, str]:
        """The environment that overrules filters and merge drivers; made anew when the files of the settings changed."""
        files = (self.folder / "config", *sorted(self.folder.glob("worktrees/*/config.worktree")))
        now = [_file_state(file) for file in files]
        if at in self._overrides and self._overrides[at][0] == now:
            return self._overrides[at][1]
        listed = self._run(("config", "--list", "--null", "--name-only"), at, env).text
        names = [name for name in listed.split("\0") if name]
        if "core.worktree" in names:
            raise GitFailed(
                f"{self.folder / 'config'} sets core.worktree, which sends git elsewhere; remove that line"
            )
        kinds = {name: (name.partition(".")[0], name.rpartition(".")[2]) for name in names}
        pairs = {name: _HARMLESS[kind] for name, kind in kinds.items() if kind in _HARMLESS}
        # From its environment git takes pairs whatever signs a name holds; an option would end at the first `=`.
        overrides = {"GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}
        for number, (name, value) in enumerate(pairs.items()):
            overrides |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        if not any(name.startswith(("include.", "includeif.")) for name in names):
            self._overrides[at] = now, overrides
        return overrides

    def _run(
        self,
        words: Collection[str],
        at: Path,
        env: Mapping[str, str],
        reading: BinaryIO | None = None,
    ) -> GitResult:
        # Variables that would send git elsewhere, as its own hooks have them; nearly always none.
        strange = [name for name in os.environ if name.startswith("GIT_") and name not in env]
        unset = ["env", *(f"--unset={name}" for name in strange)] if strange else []
        try:
            code, text, said = _Git(str(at)).execute(
                [*unset, "git", *_OPTIONS, *words],
                env=env,
                with_extended_output=True,
                with_exceptions=False,
                strip_newline_in_stdout=False,
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

    def existing_commit(self, name: str) -> str:
        """The same; raises PulseError if there is none."""
        if (commit := self.commit(name)) is None:
            raise PulseError(f"there is no commit {name} in {self.engine}")
        return commit

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

    def folder_at(self, at: Path) -> Path:
        """Where git keeps the state of a worktree."""
        return Path(self("rev-parse", "--absolute-git-dir", at=at))

    def branch_at(self, at: Path) -> str | None:
        """The full name of the branch that a worktree is on; None if its head is detached."""
        return self.ask("symbolic-ref", "--quiet", "HEAD", at=at)


def _text(said: str | bytes) -> str:
    return said if isinstance(said, str) else said.decode("utf-8", "surrogateescape")


def _file_state(path: Path) -> object:
    """What differs when a file was written anew; None if it is not there."""
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def author_environment(author: str) -> Mapping[str, str]:
    """The environment for git that sets a commit's author; raises PulseError if it is no `NAME <EMAIL>`."""
    found = _AUTHOR.fullmatch(author.strip())
    if found is None:
        raise PulseError(f"{author!r} is no author; write it as 'Ada Lovelace <ada@example.org>'")
    return {"GIT_AUTHOR_NAME": found["name"], "GIT_AUTHOR_EMAIL": found["email"]}


def login_author() -> str:
    """The author named by login and host of the user who runs this process."""
    try:
        login = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        login = f"user-{os.getuid()}"
    return f"{login} <{login}@{socket.gethostname() or 'localhost'}>"
