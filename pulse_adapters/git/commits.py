"""New commits on top of main, made as objects alone: main does not move, no file changes, and no commit is lost."""

import re
from itertools import count

from pulse_adapters.git.errors import MergeConflict, NoGit
from pulse_adapters.git.git_command import MAIN, NEW, STAGING, Git, author_environment
from pulse_adapters.git.rejected_commits import rejected_commit
from pulse_adapters.git.stage_files import refuse_repositories
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine_repository import NothingToPromote

OLDEST = (2, 38)
"""The first git that merges without a worktree."""
_LONGEST = 20_000
_OID = re.compile(r"[0-9a-f]{40,64}")


def commit_tree(git: Git, tree: str, message: str, author: str, *parents: str) -> str:
    """A commit of this tree, which nothing names yet."""
    words = [word for parent in parents for word in ("-p", parent)]
    text = message.replace("\0", "").strip()[:_LONGEST] or "without a word"
    return git("commit-tree", tree, *words, "-m", text, env=author_environment(author))


def merge_candidate(git: Git, message: str, author: str) -> str:
    """What main would be after staging is merged into it; rollbacks that staging lacks are no side of the merge.

    Raises NothingToPromote, AnotherRepository, or MergeConflict with the files.
    """
    main, staging = git.existing_commit(MAIN), git.existing_commit(STAGING)
    is_new = not git.contains(main, staging)
    tree = (
        git.tree(staging)
        if is_new and rejected_commit(git, main, staging)
        else merge_trees(git, main, staging)
    )
    if tree == git.tree(main):
        raise NothingToPromote("staging holds nothing that main lacks; change something there, and commit it")
    refuse_repositories(git, tree, git.staging)
    return commit_tree(git, tree, message, author, main, staging)


def revert_commit(git: Git, to: str, message: str, author: str) -> str:
    """A commit on top of main with the content of an earlier one; main itself if it has that content already."""
    main = git.existing_commit(MAIN)
    tree = git.tree(to)
    return main if tree == git.tree(main) else commit_tree(git, tree, message, author, main)


def merge_trees(git: Git, main: str, staging: str) -> str:
    """The tree of a merge; raises MergeConflict."""
    answer = git.run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", main, staging)
    tree, *files = answer.text.rstrip("\0").split("\0")
    if answer.exit == 0 and _OID.fullmatch(tree):
        return tree
    if answer.exit == 1 and files:
        advice = f"merge main into staging and settle it there: git -C {git.staging} merge main"
        raise MergeConflict(files, advice)
    said = git("version")
    found = re.search(r"\b(\d++)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise NoGit(f"a promote needs git 2.38 or newer, and this is {said.removeprefix('git version ')}")
    raise git.failure(("merge-tree",), answer)


def keep_branch(git: Git, name: str, commit: str) -> str:
    """Keep the commit under this branch, or under `NAME-2` and so on if it is another's; the name it has."""
    if git.ask("check-ref-format", f"refs/heads/{name}") is None or f"refs/heads/{name}" in (MAIN, STAGING):
        raise PulseError(f"{name!r} can't be the name of a branch that keeps a commit; try 'rejected/NAME'")
    whole = git.existing_commit(commit)
    for number in count(1):
        called = name if number == 1 else f"{name}-{number}"
        before = git.commit(f"refs/heads/{called}")
        if before is None:
            git("update-ref", "-m", "pulse: kept", f"refs/heads/{called}", whole, NEW)
        if before in (None, whole):
            return called
    raise AssertionError("the numbers have ended")
