"""Making the repository; begun again after a kill, it makes what is missing."""

from collections.abc import Iterator
from pathlib import Path

from pulse_adapters.git.branches import NEW
from pulse_adapters.git.errors import CannotMend
from pulse_adapters.git.git_command import MAIN, Git
from pulse_adapters.git.merge import commit_tree
from pulse_adapters.git.repair import repair_repository

FIRST = "the engine as it was given"


def create_repository(git: Git, template: Path, author: str) -> Iterator[str]:
    """Make `engine/` with the template committed to main, and `staging/`; says what was done."""
    if not git.folder.exists() and git.engine.exists() and any(git.engine.iterdir()):
        raise CannotMend(f"{git.engine} holds files and is no git repository; move it away, then try again")
    if not git.folder.exists() or git.commit(MAIN) is None:
        _refuse_another(git)
        git.engine.mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", "--template=", "--initial-branch=main")
        tree = _tree_of(git, template)
        git("update-ref", "-m", "pulse: made", MAIN, commit_tree(git, tree, FIRST, author), NEW)
        yield f"{git.engine} is made"
    yield from repair_repository(git)


def _refuse_another(git: Git) -> None:
    """A repository with branches but without main is somebody's, not one that was begun here and left half-way."""
    others = (git.ask("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads") or "").split()
    if git.folder.exists() and others:
        raise CannotMend(
            f"{git.engine} has no branch main, but {', '.join(others)};"
            f" say which of them is main: git -C {git.engine} branch main {others[0]}"
        )


def _tree_of(git: Git, folder: Path) -> str:
    """The folder's files, less those it ignores itself, as a tree in the repository."""
    index = git.folder / "pulse-template-index"
    env = {"GIT_DIR": str(git.folder), "GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    try:
        git("add", "--all", ".", at=folder, env=env)
        return git("write-tree", at=folder, env=env)
    finally:
        index.unlink(missing_ok=True)
