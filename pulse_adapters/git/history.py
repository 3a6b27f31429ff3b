"""What the repository holds, for people: its history, differences, and what a word means."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from pulse_adapters.git.git_command import MAIN, Git
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName

_FORMAT = "--format=%H%x1f%P%x1f%at%x1f%an <%ae>%x1f%B"
_HEX = re.compile(r"[0-9a-f]{4,64}")
_RECENT = 200


class CommitEntry(NamedTuple):
    """A commit of main. parents: the first is main before it; at: UTC microseconds; message: whole."""

    commit: str
    parents: tuple[str, ...]
    at: int
    author: str
    message: str


def log(git: Git, limit: int, of: str = MAIN) -> list[CommitEntry]:
    """The newest commits of main, newest first; what was merged into it stands behind each one's second parent."""
    said = git("log", "-z", "--first-parent", f"--max-count={limit}", _FORMAT, of, "--")
    return [_entry(record) for record in said.split("\0") if record]


def _entry(record: str) -> CommitEntry:
    commit, parents, at, author, message = record.split("\x1f", 4)
    return CommitEntry(commit, tuple(parents.split()), int(at) * 1_000_000, author, message.strip())


def diff(git: Git, old: str, new: str) -> str:
    """What changed between two commits, as text."""
    return git("diff", "--no-color", "--no-ext-diff", "--no-textconv", old, new, "--")


def resolve(git: Git, word: str) -> str:
    """The commit that a word means: a branch, or the beginning of a hash; raises UnknownName with the nearest."""
    if not word or word.startswith("-") or "\0" in word:
        raise PulseError(f"{word!r} names no commit; give a branch, as 'staging', or a commit's hash")
    if (commit := git.commit(f"refs/heads/{word}")) or (commit := _begun(git, word)):
        return commit
    if commit := git.commit(word):
        return commit
    raise UnknownName(
        "commit or branch", word, [*branches(git), *(one.commit[:12] for one in log(git, _RECENT))]
    )


def _begun(git: Git, word: str) -> str | None:
    """The only commit whose hash begins so."""
    if not _HEX.fullmatch(word):
        return None
    found = (git.ask("rev-parse", f"--disambiguate={word}") or "").split()
    commits = [one for one in found if git.ask("cat-file", "-t", one) == "commit"]
    if len(commits) > 1:
        raise Ambiguous("commit", word, [one[:12] for one in commits[:5]])
    return commits[0] if commits else None


def branches(git: Git) -> Sequence[str]:
    """The names of all branches."""
    return git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()
