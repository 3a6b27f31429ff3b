"""Making the repository, and putting `engine/` and `staging/` back where they belong, as far as nothing is lost by it.

Begun again after a kill, either makes what is missing.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from pulse_adapters.git.commits import commit_tree
from pulse_adapters.git.errors import CannotMend, NoRepository
from pulse_adapters.git.git_command import FOLLOWED, MAIN, NEW, STAGING, Git, is_index_damaged, path_in
from pulse_adapters.git.settings_folder import refuse_odd_files
from pulse_adapters.git.stage_files import stage_files
from pulse_adapters.git.staging import unfinished_operation
from pulse_adapters.workers.plain_file import replace_plain
from pulse_core.model.errors import PulseError

FIRST = "the engine as it was given"
_SETTINGS = "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tlogAllRefUpdates = true\n"


def template_folder() -> Path:
    """Where the files of a new engine lie: beside this module in an installed package, at the top of a source tree."""
    here = Path(os.path.realpath(__file__))
    for folder in (here.with_name("engine_template"), here.parents[2] / "engine_template"):
        if (folder / "engine.py").is_file():
            return folder
    raise PulseError("the engine's template is missing from this installation; install upulse anew")


def create_repository(git: Git, template: Path, author: str) -> Iterator[str]:
    """Make `engine/` with the template committed to main, and `staging/`; says what was done."""
    if not git.folder.exists():
        if git.engine.exists() and any(git.engine.iterdir()):
            raise CannotMend(
                f"{git.engine} holds files and is no git repository; move it away, then try again"
            )
        git.folder.mkdir(parents=True)
    if git.main() is None:
        others = (git.ask("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads") or "").split()
        if others:  # somebody's, and not one that was begun here and left half-way
            raise CannotMend(
                f"{git.engine} has no branch main, but {', '.join(others)};"
                f" say which of them is main: git -C {git.engine} branch main {others[0]}"
            )
        _make_folder(git.folder)
        index = git.folder / "pulse-template-index"
        index.unlink(missing_ok=True)
        try:
            tree = stage_files(git, template, index)
        finally:
            index.unlink(missing_ok=True)
        git("update-ref", "-m", "pulse: made", MAIN, commit_tree(git, tree, FIRST, author), NEW)
        for _ in repair_repository(git):
            pass
        yield f"{git.engine} and {git.staging} are made"
    yield from repair_repository(git)


def _make_folder(folder: Path) -> None:
    """What `git init` makes, as far as it is missing; git itself would read the settings of one that was begun."""
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, text in (("config", _SETTINGS), ("HEAD", f"ref: {MAIN}\n")):
        if not (folder / name).exists():
            replace_plain(folder / name, text.encode())


def repair_repository(git: Git) -> Iterator[str]:
    """Mend what can be mended, saying what was done; raises CannotMend with what a person could do."""
    main = git.main()
    if main is None:
        raise NoRepository(f"{git.engine} has no branch main; make the engine with: upulse init")
    if git.commit(STAGING) is None:
        git("update-ref", "-m", "pulse: mended", STAGING, main, NEW)
        yield "the branch staging is made anew, from main"
    if git.commit(FOLLOWED) is None and git.branch_at(git.engine) == MAIN:
        write_missing_files(git, git.engine, main)
        git("update-ref", FOLLOWED, main)
        yield f"{git.engine} has its files"
    if _lacks_index(git, git.engine):
        write_missing_files(git, git.engine, "HEAD")
        yield f"{git.engine} has its files"
    yield from _repair_worktree(git)
    yield from _back_on(git, git.staging, STAGING)
    yield from _back_on(git, git.engine, MAIN)


def write_missing_files(git: Git, at: Path, commit: str) -> None:
    """Lay out the commit's files that are missing; what is there stays as it is. An index says that all are there.

    Without it where one can't be written, as on a full disk: what is missing would pass for deleted, and be committed so.
    """
    folder = git.folder_at(at)
    index = folder / "pulse-index"
    index.unlink(missing_ok=True)
    env = {"GIT_INDEX_FILE": str(index)}
    git("read-tree", commit, at=at, env=env)
    missing = git("ls-files", "-z", "--deleted", at=at, env=env)
    words = ("checkout-index", "--all", "--quiet")
    try:
        answer = git.run(*words, at=at, env=env)
        if (
            answer.exit and answer.error
        ):  # where no more is wrong than that a file is there already, it says nothing
            raise git.failure(words, answer)
    except BaseException:
        for name in filter(None, missing.split("\0")):
            with suppress(OSError):
                (at / name).unlink()  # it may be half of it, or empty
        raise
    git.run("update-index", "-q", "--refresh", at=at, env=env)
    index.rename(folder / "index")


def _repair_worktree(git: Git) -> Iterator[str]:
    staging = git.staging
    if (staging / ".git").exists() and not git.staging_folder():
        if not _link_again(git):
            raise CannotMend(
                f"{staging} has lost its link to {git.engine}; move it away, mend again,"
                " then copy back what you need of it"
            )
        yield f"{staging} is linked to {git.engine} again"
    done = "has its files"  # if whoever made it was killed before all of them were there
    if not git.staging_folder():
        if staging.exists() and (not staging.is_dir() or any(staging.iterdir())):
            raise CannotMend(
                f"{staging} is there and is no worktree of the engine; move it away, then mend again"
            )
        _make_worktree(git)
        done = "is made"
    if _lacks_index(git, staging):
        write_missing_files(git, staging, "HEAD")
        yield f"{staging} {done}"


def _lacks_index(git: Git, at: Path) -> bool:
    """Whether git's list of the files that lie there is missing or damaged; but for what was staged it can be remade."""
    if not (git.folder_at(at) / "index").exists():
        return True
    answer = git.run("ls-files", at=at)
    return bool(answer.exit) and is_index_damaged(answer.error)


def _make_worktree(git: Git) -> None:
    """What `git worktree add` makes, but for the files: that would write down the folder that it was told of."""
    link, worktrees = git.staging / ".git", git.folder / "worktrees"
    for left in worktrees.glob("*"):  # of one that is gone, or was only begun
        if path_in(left / "gitdir") in (None, Path(os.path.realpath(link))):
            shutil.rmtree(left)
    names = ("staging" + (str(number) if number else "") for number in count())
    folder = next(worktrees / name for name in names if not (worktrees / name).exists())
    folder.mkdir(parents=True)
    replace_plain(folder / "HEAD", f"ref: {STAGING}\n".encode())
    git.staging.mkdir(exist_ok=True)
    _link(git, folder)


def _link(git: Git, folder: Path) -> None:
    link = git.staging / ".git"
    replace_plain(folder / "commondir", b"../..\n")
    replace_plain(folder / "gitdir", os.fsencode(f"{os.path.realpath(git.staging)}/.git\n"))
    replace_plain(link, os.fsencode(f"gitdir: {os.path.realpath(folder)}\n"))


def _link_again(git: Git) -> bool:
    """Have staging and the folder that it named know each other again, as after a move; False if that is not its."""
    link, named = git.staging / ".git", path_in(git.staging / ".git")
    folder = git.folder / "worktrees" / named.name if named else None
    if folder is None or not (folder / "HEAD").is_file():
        return False
    other = path_in(folder / "gitdir")
    if other and other != Path(os.path.realpath(link)) and path_in(other) == Path(os.path.realpath(folder)):
        return False  # it is another worktree's
    refuse_odd_files(folder)
    _link(git, folder)
    return git.staging_folder() is not None


def place_before(git: Git) -> Path | None:
    """The home in which staging and the repository were linked, as the links of both say; None if they don't agree."""
    named = path_in(git.staging / ".git")
    other = path_in(git.folder / "worktrees" / named.name / "gitdir") if named else None
    place = other.parent.parent if other else None
    if named is None or other is None or place is None:
        return None
    was = Git(place)
    return place if (other, named.parent) == (was.staging / ".git", was.folder / "worktrees") else None


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
