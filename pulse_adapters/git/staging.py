"""How the worktree for experiments stands, and what would help where it does not stand well."""

import os
from fnmatch import fnmatch
from pathlib import Path

from pulse_adapters.git.errors import CannotMend, MergeConflict
from pulse_adapters.git.git_command import MAIN, STAGING, Git, author_environment
from pulse_adapters.git.rejected_commits import rejected_commit
from pulse_adapters.git.stage_files import refuse_pipes, refuse_special_files, stage_files
from pulse_adapters.workers.plain_file import UNFINISHED
from pulse_core.ports.engine_repository import StagingState

UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}


def state(git: Git) -> StagingState:
    """How staging stands; writes nothing."""
    distance = git.ask("rev-list", "--left-right", "--count", f"{MAIN}...{STAGING}") or "0 0"
    behind, ahead = map(int, distance.split())
    back = (rejected_commit(git, MAIN, STAGING) or "") if behind else ""
    if not git.staging_folder():
        tip = git.commit(STAGING) or ""
        return StagingState(git.staging, tip, missing=True, ahead=ahead, behind=behind, taken_back=back)
    commit, branch, dirty, conflicts = _status(git)
    way = unfinished_operation(git, git.staging)
    return StagingState(git.staging, commit, branch, False, dirty, conflicts, way, ahead, behind, back)


def unfinished_operation(git: Git, at: Path) -> str:
    """The operation that was begun in a worktree and not ended, in git's word for it."""
    folder = git.folder_at(at)
    return next((word for mark, word in UNDER_WAY.items() if (folder / mark).exists()), "")


def _status(git: Git) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    options = "--porcelain=v2 --branch -z --untracked-files=all --no-renames --ignore-submodules=dirty"
    refuse_pipes(git.staging)
    head, dirty, conflicts = {"oid": "", "head": ""}, list[str](), list[str]()
    for line in git("status", *options.split(), at=git.staging).split("\0"):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            name, _, value = rest.removeprefix("branch.").partition(" ")
            head[name] = "" if value.startswith("(") else value
        elif kind:
            path = rest.split(" ", {"1": 7, "u": 9}.get(kind, 0))[-1]
            if kind == "?" and fnmatch(os.path.basename(path), UNFINISHED):
                continue  # whoever wrote it was killed
            (conflicts if kind == "u" else dirty).append(path)
    return head["oid"], head["head"], tuple(dirty), tuple(conflicts)


def commit_staging(git: Git, message: str, author: str) -> str | None:
    """Commit everything in `staging/` that is dirty and not ignored; the commit, or None if nothing is.

    Raises AnotherRepository, SpecialFile.
    """
    now = state(git)
    if now.conflicts:
        raise MergeConflict(now.conflicts, f"settle them in {git.staging}, then: git add --all")
    if not now.can_be_committed:
        raise CannotMend(next(now.advice()))
    refuse_special_files(git, git.staging)
    if not now.dirty and not now.under_way:
        return None
    stage_files(git, git.staging)
    options = ("--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace")
    text, env = message.strip() or "without a word", author_environment(author)
    answer = git.run("commit", *options, "-m", text, at=git.staging, env=env)
    if not answer.exit:
        return git.commit(STAGING)
    unchanged = ("diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD")
    if git.run(*unchanged, at=git.staging).exit == 0:
        return None  # what was dirty was so in name only, as a changed mode that git does not record
    raise git.failure(("commit",), answer)
