"""Making the repository, and putting `engine/` and `staging/` back where they belong, as far as nothing is lost by it.

Begun again after a kill, either makes what is missing.
"""

from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.git.commits import commit_tree, tree_of_folder
from pulse_adapters.git.errors import CannotMend, NoRepository
from pulse_adapters.git.git_command import FOLLOWED, MAIN, NEW, STAGING, Git
from pulse_adapters.git.staging import is_there, unfinished_operation
from pulse_core.model.errors import PulseError

FIRST = "the engine as it was given"


def template_folder() -> Path:
    """Where the files of a new engine lie: beside this module in an installed package, at the top of a source tree."""
    here = Path(__file__).resolve()
    for folder in (here.with_name("engine_template"), here.parents[2] / "engine_template"):
        if (folder / "engine.py").is_file():
            return folder
    raise PulseError("the engine's template is missing from this installation; install upulse anew")


def create_repository(git: Git, template: Path, author: str) -> Iterator[str]:
    """Make `engine/` with the template committed to main, and `staging/`; says what was done."""
    if not git.folder.exists() and git.engine.exists() and any(git.engine.iterdir()):
        raise CannotMend(f"{git.engine} holds files and is no git repository; move it away, then try again")
    if not git.folder.exists() or git.commit(MAIN) is None:
        others = (git.ask("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads") or "").split()
        if git.folder.exists() and others:  # somebody's, and not one that was begun here and left half-way
            raise CannotMend(
                f"{git.engine} has no branch main, but {', '.join(others)};"
                f" say which of them is main: git -C {git.engine} branch main {others[0]}"
            )
        git.engine.mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", "--template=", "--initial-branch=main")
        index, env = (
            git.folder / "pulse-template-index",
            {"GIT_DIR": str(git.folder), "GIT_WORK_TREE": str(template)},
        )
        index.unlink(missing_ok=True)
        tree = tree_of_folder(git, template, index, env)
        git("update-ref", "-m", "pulse: made", MAIN, commit_tree(git, tree, FIRST, author), NEW)
        yield f"{git.engine} is made"
    yield from repair_repository(git)


def repair_repository(git: Git) -> Iterator[str]:
    """Mend what can be mended, saying what was done; raises CannotMend with what a person could do."""
    main = git.commit(MAIN)
    if main is None:
        raise NoRepository(f"{git.engine} has no branch main; make the engine with: upulse init")
    if git.commit(STAGING) is None:
        git("update-ref", "-m", "pulse: mended", STAGING, main, NEW)
        yield "the branch staging is made anew, from main"
    if git.commit(FOLLOWED) is None and git.branch_at(git.engine) == MAIN:
        write_missing_files(git, git.engine, main)
        git("update-ref", FOLLOWED, main)
        yield f"{git.engine} has its files"
    yield from _repair_worktree(git)
    yield from _back_on(git, git.staging, STAGING)
    yield from _back_on(git, git.engine, MAIN)


def write_missing_files(git: Git, at: Path, commit: str) -> None:
    """Lay out the commit's files that are missing; what is there stays as it is."""
    git("read-tree", commit, at=at)
    git.run("checkout-index", "--all", "--quiet", at=at)  # it says no where a file is there already
    git.run("update-index", "-q", "--refresh", at=at)


def _repair_worktree(git: Git) -> Iterator[str]:
    for lock in git.folder.glob("worktrees/*/locked"):
        if (
            lock.read_text().strip() == "initializing"
        ):  # git locks a worktree while it makes it, and was killed
            lock.unlink()
    staging = git.staging
    if (staging / ".git").exists() and not is_there(git):
        git.run("worktree", "repair", str(staging))
        if not is_there(git):
            raise CannotMend(
                f"{staging} has lost its link to {git.engine}; move it away, mend again,"
                " then copy back what you need of it"
            )
        yield f"{staging} is linked to {git.engine} again"
    if not is_there(git):
        if staging.exists() and (not staging.is_dir() or any(staging.iterdir())):
            raise CannotMend(
                f"{staging} is there and is no worktree of the engine; move it away, then mend again"
            )
        git("worktree", "prune")
        git("worktree", "add", "--force", "--force", "--quiet", str(staging), "staging")
        yield f"{staging} is made"
    if not (
        git.folder_at(staging) / "index"
    ).exists():  # whoever made it was killed before all its files were there
        write_missing_files(git, staging, "HEAD")
        yield f"{staging} has its files"


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
