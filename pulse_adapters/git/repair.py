"""Putting `engine/` and `staging/` back where they belong, as far as nothing can be lost by it."""

from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.git.branches import NEW
from pulse_adapters.git.errors import CannotMend, NoRepository
from pulse_adapters.git.git_command import FOLLOWED, MAIN, STAGING, Git
from pulse_adapters.git.staging import is_there, unfinished_operation


def repair_repository(git: Git) -> Iterator[str]:
    """Mend what can be mended, saying what was done; raises CannotMend with what a person could do."""
    main = git.commit(MAIN)
    if main is None:
        raise NoRepository(f"{git.engine} has no branch main; make the engine with: upulse init")
    if git.commit(STAGING) is None:
        git("update-ref", "-m", "pulse: mended", STAGING, main, NEW)
        yield "the branch staging is made anew, from main"
    yield from _files(git, main)
    yield from _worktree(git)
    yield from _back_on(git, git.staging, STAGING)
    yield from _back_on(git, git.engine, MAIN)


def _files(git: Git, main: str) -> Iterator[str]:
    """The files of `engine/`, if whoever made the repository did not come so far."""
    if git.commit(FOLLOWED) is None and git.branch_at(git.engine) == MAIN:
        write_missing_files(git, git.engine, main)
        git("update-ref", FOLLOWED, main)
        yield f"{git.engine} has its files"


def write_missing_files(git: Git, at: Path, commit: str) -> None:
    """Lay out the commit's files that are missing; what is there stays as it is."""
    git("read-tree", commit, at=at)
    git.run("checkout-index", "--all", "--quiet", at=at)  # it says no where a file is there already
    git.run("update-index", "-q", "--refresh", at=at)


def _worktree(git: Git) -> Iterator[str]:
    _unlock(git)
    if (git.staging / ".git").exists() and not is_there(git):
        git.run("worktree", "repair", str(git.staging))
        if not is_there(git):
            raise CannotMend(
                f"{git.staging} has lost its link to {git.engine}; move it away, mend again,"
                " then copy back what you need of it"
            )
        yield f"{git.staging} is linked to {git.engine} again"
    if not is_there(git):
        _refuse_strangers(git.staging)
        git("worktree", "prune")
        git("worktree", "add", "--force", "--force", "--quiet", str(git.staging), "staging")
        yield f"{git.staging} is made"
    if not _index(git).exists():  # whoever made it was killed before all its files were there
        write_missing_files(git, git.staging, "HEAD")
        yield f"{git.staging} has its files"


def _index(git: Git) -> Path:
    return Path(git("rev-parse", "--absolute-git-dir", at=git.staging)) / "index"


def _unlock(git: Git) -> None:
    """Git locks a worktree while it makes it; whoever was killed then left it so."""
    for lock in git.folder.glob("worktrees/*/locked"):
        if lock.read_text().strip() == "initializing":
            lock.unlink()


def _refuse_strangers(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotMend(f"{folder} is there and is no worktree of the engine; move it away, then mend again")


def _back_on(git: Git, at: Path, branch: str) -> Iterator[str]:
    """Put a detached head back on its branch, if that loses no commit."""
    there, short = git.branch_at(at), branch.removeprefix("refs/heads/")
    if there == branch:
        return
    if there is not None:
        raise CannotMend(
            f"{at} is on the branch {there.removeprefix('refs/heads/')}; go back: git -C {at} switch {short}"
        )
    if way := unfinished_operation(git, at):
        raise CannotMend(
            f"a {way} is under way in {at}; end it with: git -C {at} {way} --continue (or --abort)"
        )
    head, tip = git("rev-parse", "HEAD", at=at), git.commit(branch) or ""
    if not git.contains(tip, head):
        if branch == MAIN or not git.contains(head, tip):
            raise CannotMend(
                f"{at} is on no branch, at {head[:12]}, which {short} lacks;"
                f" keep it with: git -C {at} branch NAME, then: git -C {at} switch {short}"
            )
        git("update-ref", "-m", "pulse: mended", branch, head, tip)
    git("switch", "--quiet", short, at=at)
    yield f"{at} is on {short} again"
