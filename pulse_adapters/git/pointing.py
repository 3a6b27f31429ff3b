"""Making a commit main: the branch in one step, then the files of `engine/`, then staging.

Killed after any step, the same call does what is left, and nothing twice.
"""

from typing import NamedTuple

from pulse_adapters.git.author import PULSE
from pulse_adapters.git.branches import NEW, keep_branch
from pulse_adapters.git.calls import FOLLOWED, MAIN, STAGING, Git
from pulse_adapters.git.faults import GitFailed, MainMoved
from pulse_adapters.git.merging import committed
from pulse_core.model.errors import PulseError


class Pointed(NamedTuple):
    """What main is now. stray: the branch that keeps what lay about in `engine/`, if something did;
    notes: what did not follow main, and why, in sentences."""

    commit: str
    stray: str = ""
    notes: tuple[str, ...] = ()


def point_main(git: Git, commit: str, expected: str) -> Pointed:
    """Make the commit main, if main is `expected`; raises MainMoved if it is neither of them."""
    target, before = _whole(git, commit), _whole(git, expected)
    _swap(git, target, before)
    notes: list[str] = []
    stray = ""
    try:
        stray = _follow(git, target, before, notes)
    except GitFailed as error:
        notes.append(f"the files of {git.engine} do not follow main: {error}")
    notes += _forward(git, target)
    return Pointed(target, stray, tuple(notes))


def _whole(git: Git, commit: str) -> str:
    whole = git.commit(commit)
    if whole is None:
        raise PulseError(f"there is no commit {commit} in {git.engine}")
    return whole


def _swap(git: Git, target: str, before: str) -> None:
    """Compare and swap: git takes the new commit only while the old one is there."""
    if git.commit(MAIN) == target:
        return
    if not git.contains(target, before):
        raise PulseError(f"{target[:12]} does not come after {before[:12]}; main only goes forwards")
    answer = git.run("update-ref", "-m", "pulse: promoted", MAIN, target, before)
    if answer.exit and (now := git.commit(MAIN)) != target:
        if now == before:
            raise git.failure(("update-ref",), answer)
        raise MainMoved(
            f"main is {(now or 'missing')[:12]} and not {before[:12]}; somebody else was first, so look and try again"
        )


def _follow(git: Git, target: str, before: str, notes: list[str]) -> str:
    """Make the files of `engine/` those of the target; what lies about there is kept under the branch returned."""
    if git.branch_at(git.engine) != MAIN:
        notes.append(
            f"{git.engine} is not on main, so its files stay; go back with: git -C {git.engine} switch main"
        )
        return ""
    git("add", "--all")
    lying = git("write-tree")
    stray = ""
    if lying != git.tree(target):
        bases = (git.commit(FOLLOWED) or before, before, target)
        stray = _kept(git, lying, bases)
        git("read-tree", "-m", "-u", lying, target)
    git.run("merge", "--quit")
    git("update-ref", FOLLOWED, target)
    return stray


def _kept(git: Git, lying: str, bases: tuple[str, ...]) -> str:
    """The branch that keeps these files, if one of them is like none of the commits they may have been made of.

    Files that are partly the old and partly the new commit's are those of a call that was killed, not somebody's.
    """
    if not set.intersection(*(_unlike(git, lying, base) for base in bases)):
        return ""
    name = f"stray/{lying[:12]}"
    if (old := git.commit(f"refs/heads/{name}")) and git.tree(old) == lying:
        return name
    return keep_branch(git, name, committed(git, lying, "what lay about in engine/", PULSE, bases[0]))


def _unlike(git: Git, tree: str, base: str) -> set[str]:
    said = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, tree)
    return set(said.split("\0")) - {""}


def _forward(git: Git, target: str) -> tuple[str, ...]:
    """Fast-forward staging, edits and all, where git can; or why not."""
    tip = git.commit(STAGING)
    if tip == target:
        return ()
    if tip is not None and not git.contains(target, tip):
        return (
            f"staging has commits that main lacks and stays; merge with: git -C {git.staging} merge main",
        )
    if (git.staging / ".git").exists() and git.branch_at(git.staging) == STAGING:
        answer = git.run("merge", "--ff-only", "--quiet", target, at=git.staging)
        why = " ".join(answer.error.split())
        return (f"staging stays behind main: {why}",) if answer.exit else ()
    git("update-ref", "-m", "pulse: follows main", STAGING, target, tip or NEW)
    return ()
