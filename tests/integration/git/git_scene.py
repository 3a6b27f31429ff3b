"""A home with an engine, and git as a person would run it there."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pulse_adapters.git.git_command import Git, GitResult
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import ensure_revision
from tests.repositories import repository_of

ADA = "Ada Lovelace <ada@example.org>"
FILES = {"engine.py": "RULES = []\n", "rules/__init__.py": "", ".gitignore": "__pycache__/\n"}


def template(place: Path, files: Mapping[str, str] = FILES) -> Path:
    """A folder to begin with."""
    for name, text in files.items():
        write(place / name, text)
    return place


def made(place: Path) -> Repository:
    """A new home's repository."""
    home = place / "home"
    home.mkdir()
    return repository_of(home, template(place / "template"), ADA)


def write(path: Path, text: str) -> None:
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edited(repository: Repository, name: str = "rules/a.py", text: str = "A = 1\n") -> str:
    """Staging with one more change, committed."""
    write(repository.home / "staging" / name, text)
    commit = repository.commit_staging(f"change {name}", ADA)
    assert commit is not None
    return commit


def promoted(repository: Repository, name: str = "rules/a.py", text: str = "A = 1\n") -> str:
    """Main with one more change, by way of staging."""
    edited(repository, name, text)
    before = repository.head()
    commit = repository.candidate(f"promote {name}", ADA)
    assert repository.point_main(commit, before).notes == ()
    return commit


def laid_out(repository: Repository, commit: str) -> Path:
    """The folder of a commit that is laid out to be run."""
    return Path(ensure_revision(repository.home, commit).path)


def git(at: Path, *words: str) -> str:
    """What a person's own git says, with a name and nothing else of its own."""
    person = {f"GIT_{who}_{what}": "bob@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}, **person, **quiet}
    ran = subprocess.run(
        ["git", *words], cwd=at, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def newest(repository: Repository, form: str) -> str:
    """What git's `--format` says of main's newest commit."""
    return git(repository.home / "engine", "log", "-1", f"--format={form}", "refs/heads/main", "--")


def files(folder: Path) -> dict[str, str]:
    """The text of everything in a folder but git's own."""
    found = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    )
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def is_clean(folder: Path) -> bool:
    """Whether git sees nothing to be committed."""
    return git(folder, "status", "--porcelain") == ""


class Killed(BaseException):
    """What a SIGKILL looks like from inside: nothing is tidied up."""


class MortalGit(Git):
    """Git whose caller is killed just before, or just after, its n-th call."""

    def __init__(self, home: Path, calls: int, *, after: bool) -> None:
        super().__init__(home)
        self.left, self.after = calls, after

    def run(self, *words: str, **more: object) -> GitResult:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        answer = super().run(*words, **more)  # type: ignore[arg-type]  # likewise
        if self.left == 0:
            raise Killed
        return answer
