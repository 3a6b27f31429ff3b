"""What a rollback took back while staging still holds it, so that breaking, mending and promoting needs no git.

A rollback says what is in force, not what anybody wants to be written: it stands on main as a commit that undoes
whole files, and a merge would take that for an edit. Where both sides changed a file that would be a conflict, and
where only the rollback did (`engine.py`, which lists the rule that is mended elsewhere) the merge would drop the rule
without a word. So main's newest rollbacks count for nothing in a merge: staging as it stands is what its author
means, with the rejected parts that nobody touched since, and a promote says which these are.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pulse_adapters.git.git_command import COMMITTER, Git
from pulse_core.ports.engine_repository import RejectedFiles

_FORMAT = "--format=%H%x1f%T%x1f%P%x1f%ae"


class _MainCommit(NamedTuple):
    """A commit of main."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    author: str


def rejected_commit(git: Git, main: str, staging: str) -> str | None:
    """The commit that rollbacks on main took back and staging is built on; None if a plain merge says it all.

    None, too, if main holds anything that staging lacks besides rollbacks, or has gone forwards again.
    """
    said = git("log", "-z", "--first-parent", _FORMAT, main, "--")
    rows = (record.split("\x1f") for record in filter(None, said.split("\0")))
    line = [
        _MainCommit(commit, tree, tuple(parents.split()), author) for commit, tree, parents, author in rows
    ]
    # The newest step that counts in a merge: no rollback, or one that staging has taken in.
    top = next(
        n for n, step in enumerate(line) if not _is_rollback(line, n) or git.contains(staging, step.commit)
    )
    if top == 0 or _place(line, 0) <= _place(line, top):
        return None
    step = line[top]
    if git.contains(staging, step.commit):
        return step.commit
    held = step.parents[-1]  # more was committed in staging while this promote of it was under way
    if len(step.parents) == 2 and git.tree(held) == step.tree and git.contains(staging, held):
        return held
    return None


def restored_parts(git: Git, candidate: str) -> RejectedFiles | None:
    """What a candidate brings back of the commit that was rejected; None if nothing."""
    _, main, staging = git("rev-list", "--parents", "--max-count=1", candidate).split()
    if (back := rejected_commit(git, main, staging)) is None:
        return None
    taken, edited = git.differing(main, back), git.differing(back, candidate)
    changed = taken & edited & git.differing(main, candidate)
    if not taken - edited and not changed:
        return None
    return RejectedFiles(back, tuple(sorted(taken - edited)), tuple(sorted(changed)))


def _is_rollback(line: Sequence[_MainCommit], number: int) -> bool:
    """Whether Pulse made it by itself, with the files of an earlier one."""
    step = line[number]
    is_ours = len(step.parents) == 1 and step.author == COMMITTER["GIT_AUTHOR_EMAIL"]
    return is_ours and any(older.tree == step.tree for older in line[number + 1 :])


def _place(line: Sequence[_MainCommit], number: int) -> int:
    """How far back the files of this step were first so: its own place, or that of what it went back to."""
    if not _is_rollback(line, number):
        return number
    same = range(number + 1, len(line))
    return next(
        older for older in same if line[older].tree == line[number].tree and not _is_rollback(line, older)
    )
