"""How git is called: alone with its repository, without anybody's settings, never asking."""

import os
import re
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.git.errors import GitFailed, NoGit
from pulse_adapters.git.settings_folder import settings_folder
from pulse_adapters.workers.plain_file import read_plain
from pulse_adapters.workers.users import user_name
from pulse_core.model.errors import PulseError

try:
    from git.cmd import Git as _Git
    from git.exc import GitCommandNotFound
except ImportError as error:
    raise NoGit(f"the engine needs git, and the Python package gitpython: {error}") from error

MAIN, STAGING, FOLLOWED = "refs/heads/main", "refs/heads/staging", "refs/pulse/followed"
"""FOLLOWED names the commit that the files of `engine/` were last made of."""
NEW = ""
"""What `update-ref` takes for the old value of a name that is not there yet."""

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
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_DAMAGED_INDEX = re.compile(r"index file (corrupt|smaller)|(bad|malformed|unknown) index|index uses ")
_DAMAGED = re.compile(
    r"inflate|is corrupt|(bad|missing|broken|invalid) (\w+ )?(object|ref|tree|blob|commit)|unexpected line in|not a git repo"
)
_WORDS, _LONGEST_PATH = 1_000, 5_000
TIMEOUT_S = 15.0
"""For one call, as where a pipe lies in the place of `.gitignore`: less than the worker has for all that it does."""
_LOCKED, LOCKED_S, _PAUSE_S = re.compile(r"Unable to create '.+\.lock': File exists"), 2.0, 0.02
"""How git says that another one holds a lock, for how long that is waited for, and between two tries: an editor asks for the
status again and again."""


def is_index_damaged(error: str) -> bool:
    """Whether git says that it can't read its index."""
    return bool(_DAMAGED_INDEX.search(error))


class GitResult(NamedTuple):
    """How a call ended: git's exit code, and what it printed."""

    exit: int
    text: str
    error: str


def _rev_parse(name: str, kind: str = "commit") -> tuple[str, ...]:
    return "rev-parse", "--verify", "--quiet", f"{name}^{{{kind}}}"


class Git:
    """Calls git in a home's repository. Called like a function it returns what git printed, or raises GitFailed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.engine, self.staging = home / "engine", home / "staging"
        self.folder = self.engine / ".git"

    def __call__(
        self,
        *words: str,
        at: Path | None = None,
        env: Mapping[str, str] | None = None,
        told: str = "",
        descriptors: Sequence[int] = (),
    ) -> str:
        answer = self.run(*words, at=at, env=env, told=told, descriptors=descriptors)
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
        told: str = "",
        descriptors: Sequence[int] = (),
    ) -> GitResult:
        """Run git, whatever its exit. at: the folder of files; told: what it reads; descriptors: what it inherits.

        It is told where everything lies, so that no folder which it comes by can pass for the repository.
        """
        there = at or self.engine
        places = {
            "GIT_COMMON_DIR": str(settings_folder(self.folder).absolute()),
            "GIT_DIR": str(self.folder_at(there).absolute()),
            "GIT_WORK_TREE": ".",
        }
        ours = {**_ENVIRONMENT, **places, **(env or {})}
        # Variables that would send git elsewhere, as its own hooks have them; nearly always none.
        strange = [name for name in os.environ if name.startswith("GIT_") and name not in ours]
        unset = ["env", *(f"--unset={name}" for name in strange)] if strange else []
        until = time.monotonic() + LOCKED_S
        with open(os.memfd_create("told"), "w+b") as reading:  # in memory: the disk of /tmp may be full
            reading.write(os.fsencode(told))
            while True:
                reading.seek(0)
                try:
                    code, said, error = _Git().execute(
                        [*unset, "git", "-C", str(there), *words],
                        istream=reading,
                        env=ours,
                        with_extended_output=True,
                        with_exceptions=False,
                        stdout_as_string=False,
                        strip_newline_in_stdout=False,
                        kill_after_timeout=TIMEOUT_S,
                        pass_fds=descriptors,
                        umask=0o077,
                    )
                except (GitCommandNotFound, OSError) as failed:
                    raise NoGit(f"git can't be run in {there}: {failed}") from failed
                if not code or not _LOCKED.search(error) or time.monotonic() > until:
                    break
                time.sleep(_PAUSE_S)  # it has changed nothing yet
        if code < 0:
            raise GitFailed(f"git {words[0]} in {there} did not end within {TIMEOUT_S:g} s, or was killed")
        return GitResult(code, os.fsdecode(said), error)

    def failure(self, words: Collection[str], answer: GitResult) -> GitFailed:
        """The error for a call that failed, in git's words."""
        said = " ".join(answer.error.split()) or f"exit {answer.exit}"
        command = next(iter(words), "")
        if is_index_damaged(said):
            damage = f"git's index, its list of the files in engine/ or staging/ of {self.home}, is damaged"
            advice = "have it made anew with: upulse init (no file is changed)"
            return GitFailed(f"{damage} ({said[:_WORDS]}); {advice}")
        if _DAMAGED.search(said):
            advice = "move it away, then put engine/ back from a backup"
            return GitFailed(f"the repository {self.folder} is damaged ({said[:_WORDS]}); {advice}")
        return GitFailed(f"git {command} failed in {self.home}: {said[:_WORDS]}")

    def commit(self, name: str) -> str | None:
        """The full hash of the commit that this full name means, or None."""
        return self.ask(*_rev_parse(name))

    def main(self) -> str | None:
        """The commit that main is; None if there is no such branch. Raises GitFailed if it can't be read."""
        commit = self.commit(MAIN)
        if commit is None and any((self.folder / name).exists() for name in (MAIN, "packed-refs")):
            words = ("for-each-ref", MAIN)
            answer = self.run(*words)
            if answer.exit or answer.error:
                raise self.failure(words, answer)
            if answer.text:
                return self(*_rev_parse(MAIN))
        return commit

    def existing_commit(self, name: str) -> str:
        """The same; raises PulseError if there is none."""
        answer = self.run(*_rev_parse(name))
        if answer.exit and answer.error:
            raise self.failure(_rev_parse(name), answer)
        if answer.exit:
            raise PulseError(f"there is no commit {name} in {self.engine}")
        return answer.text.rstrip("\n")

    def tree(self, name: str) -> str:
        """The hash of a commit's tree."""
        return self(*_rev_parse(name, "tree"))

    def contains(self, younger: str, older: str) -> bool:
        """Whether the older commit is the younger one, or among its ancestors."""
        return self.run("merge-base", "--is-ancestor", older, younger).exit == 0

    def differing(self, old: str, new: str) -> set[str]:
        """The names of the files that are not the same in two trees."""
        said = self("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        return set(said.split("\0")) - {""}

    def folder_at(self, at: Path) -> Path:
        """Where git keeps the state of a folder's files; raises GitFailed if staging is no worktree of this one."""
        if at != self.staging:
            return self.folder
        if (folder := self.staging_folder()) is None:
            raise GitFailed(f"{self.staging} is no worktree of {self.engine}; mend it with: upulse init")
        return folder

    def staging_folder(self) -> Path | None:
        """Where git keeps the state of `staging/`, if the two name each other and nobody else."""
        link = self.staging / ".git"
        folder = path_in(link)
        if folder is None or folder.parent != Path(os.path.realpath(self.folder / "worktrees")):
            return None
        ways = path_in(folder / "gitdir"), path_in(folder / "commondir")
        is_whole = (
            ways == (Path(os.path.realpath(link)), Path(os.path.realpath(self.folder)))
            and (folder / "HEAD").is_file()
        )
        return folder if is_whole else None

    def is_staging_foreign(self) -> bool:
        """Whether `staging/.git` is there and leads elsewhere: who runs git there runs what is named there."""
        return os.path.lexists(self.staging / ".git") and self.staging_folder() is None

    def branch_at(self, at: Path) -> str | None:
        """The full name of the branch that a worktree is on; None if its head is detached."""
        return self.ask("symbolic-ref", "--quiet", "HEAD", at=at)


def path_in(file: Path) -> Path | None:
    """The path that is written in one of git's files, where two folders name each other; None if none is."""
    try:
        words = os.fsdecode(read_plain(file, _LONGEST_PATH)).removeprefix("gitdir: ").strip()
        return Path(os.path.realpath(file.parent / words)) if words else None
    except (OSError, ValueError, RuntimeError):
        return None


def author_environment(author: str) -> Mapping[str, str]:
    """The environment for git that sets a commit's author; raises PulseError if it is no `NAME <EMAIL>`."""
    found = _AUTHOR.fullmatch(author.strip())
    if found is None:
        raise PulseError(f"{author!r} is no author; write it as 'Ada Lovelace <ada@example.org>'")
    return {"GIT_AUTHOR_NAME": found["name"], "GIT_AUTHOR_EMAIL": found["email"]}


def login_author() -> str:
    """The author named by login and host of the user who runs this process."""
    login = user_name(os.getuid()).replace("uid ", "user-")
    return f"{login} <{login}@{socket.gethostname() or 'localhost'}>"
