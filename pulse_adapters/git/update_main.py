"""Making a commit main: the branch in one step, then the files of `engine/`, then staging.

Killed after any step, the same call does what is left, and nothing twice.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.git.commits import commit_tree, keep_branch
from pulse_adapters.git.errors import GitFailed, MainMoved
from pulse_adapters.git.git_command import FOLLOWED, MAIN, NEW, PULSE, STAGING, Git, GitResult
from pulse_adapters.git.rejected_commits import rejected_commit
from pulse_adapters.git.stage_files import MOST_BYTES, refuse_pipes, stage_files
from pulse_adapters.workers.plain_file import open_plain, read_plain
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine_repository import rejected_staging_advice

_FORWARDING, _LAYING_OUT = "refs/pulse/forwarding", "refs/pulse/laying-out"
"""Name the commits that staging is just being moved to, and whose files are just being laid out in `engine/`."""
_WROTE_IN_PART = re.compile(r"unable to (create|write) file|cannot create directory")
"""How git says that it could not lay out files, after it had begun."""


class MainUpdate(NamedTuple):
    """What main is now. stray: the branch that keeps what lay about in `engine/`, if something did;
    notes: what did not follow main, and why, in sentences; fault: that of them after which the call is to be made again."""

    commit: str
    stray: str = ""
    notes: tuple[str, ...] = ()
    fault: str = ""


def point_main(git: Git, commit: str, expected: str) -> MainUpdate:
    """Make the commit main, if main is `expected`; raises MainMoved if it is neither of them."""
    target, before = git.existing_commit(commit), git.existing_commit(expected)
    _swap(git, target, before)
    notes: list[str] = []
    stray = fault = ""
    try:
        _complete(git, git.engine, _LAYING_OUT, FOLLOWED)
        stray = _follow(git, target, before, notes)
    except GitFailed as error:
        notes.append(fault := f"the files of {git.engine} do not follow main: {error}")
    try:
        if git.staging_folder() and git.branch_at(git.staging) == STAGING:
            _complete(git, git.staging, _FORWARDING, STAGING)
        notes += _forward(git, target)
    except GitFailed as error:
        notes.append(words := f"staging stays behind main: {error}")
        if git.commit(_FORWARDING):  # a half of it may lie there
            fault = fault or words
    return MainUpdate(target, stray, tuple(notes), fault)


def finish(git: Git) -> None:
    """Lay out what a call that was killed, or whose git was, has left: whoever commits staging would commit it as edits."""
    if (git.commit(_LAYING_OUT) or git.commit(_FORWARDING)) and (main := git.main()):
        point_main(git, main, main)


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
    lying, stray = stage_files(git, git.engine), ""
    if lying != git.tree(target):
        listed = {*git("ls-files", "-z").split("\0")}
        new = git.differing(lying, target) - listed
        # What is ignored git would write over.
        if ignored := [name for name in new if os.path.lexists(git.engine / name)]:
            lying = stage_files(git, git.engine, also=ignored)
        bases = (git.commit(FOLLOWED) or before, before, target)
        # Files that are partly the old and partly the new commit's are those of a call that was killed, not somebody's.
        if set.intersection(*(git.differing(base, lying) for base in bases)):
            stray = f"stray/{lying[:12]}"
            if not (old := git.commit(f"refs/heads/{stray}")) or git.tree(old) != lying:
                kept = commit_tree(git, lying, "what lay about in engine/", PULSE, bases[0])
                stray = keep_branch(git, stray, kept)
        git("update-ref", _LAYING_OUT, target)
        words = ("read-tree", "-m", "-u", lying, target)
        answer = git.run(*words)
        if answer.exit:
            _put_back(git, git.engine, lying, target, answer)
            raise git.failure(words, answer)
        _sync(git.engine, git.differing(lying, target))
    git.run("merge", "--quit")
    git("update-ref", FOLLOWED, target)
    git("update-ref", "-d", _LAYING_OUT)
    return stray


def _forward(git: Git, target: str) -> tuple[str, ...]:
    """Let staging follow, where nobody's work is lost or taken from under their hands by it; or why not."""
    tip = git.commit(STAGING)
    if tip == target:
        git("update-ref", "-d", _FORWARDING)
        return ()
    taken_back = rejected_commit(git, target, tip) if tip else None
    if tip is not None and not git.contains(target, tip):
        git("update-ref", "-d", _FORWARDING)  # else what somebody deletes from now on would be laid out again
        if taken_back:
            return (rejected_staging_advice(git.staging, taken_back),)
        return (
            f"staging has commits that main lacks and stays; merge with: git -C {git.staging} merge main",
        )
    if git.staging_folder() and git.branch_at(git.staging) == STAGING:
        return _forward_files(git, target, tip or target, taken_back)
    git("update-ref", "-m", "pulse: follows main", STAGING, target, tip or NEW)
    return ()


def _forward_files(git: Git, target: str, tip: str, taken_back: str | None) -> tuple[str, ...]:
    """Fast-forward, edits and all, where git can. A rollback takes no files from under edits."""
    refuse_pipes(git.staging)
    is_begun = git.commit(_FORWARDING) == target
    if taken_back and _is_edited(git, target, tip, is_begun):
        return (rejected_staging_advice(git.staging, taken_back),)
    git("update-ref", _FORWARDING, target)
    answer = git.run("merge", "--ff-only", "--no-overwrite-ignore", "--quiet", target, at=git.staging)
    if is_finished := bool(answer.exit) and is_begun and not _is_edited(git, target, tip, is_begun):
        # Lay out the half that whoever was killed had not.
        git("read-tree", "-m", "-u", stage_files(git, git.staging), target, at=git.staging)
        git("update-ref", "-m", "pulse: follows main", STAGING, target, tip)
    _sync(git.staging, git.differing(tip, target))
    git("update-ref", "-d", _FORWARDING)
    if answer.exit and not is_finished:
        _put_back(git, git.staging, tip, target, answer)
    if is_finished or not answer.exit:
        return ()
    return (f"staging stays behind main: {' '.join(answer.error.split())}",)


def _put_back(git: Git, at: Path, old: str, new: str, answer: GitResult) -> None:
    """Lay out again what git has replaced by a part of something new, as on a full disk: else that would pass for edits.

    It begins only where it has found no work of anybody's in these files, and nothing in the place of those that are new.
    """
    if _WROTE_IN_PART.search(answer.error):
        _lay_out_again(git, at, git.differing(old, new))


def _complete(git: Git, at: Path, mark: str, before: str) -> None:
    """Lay out again what a git that was killed, or a cut of power, has left of files: their beginning, or nothing.

    mark: names the commit that was being laid out, and nothing if none was; before: the one that had been.
    """
    if begun := git.commit(mark):
        names = {*git.differing(before, begun), *git("ls-files", "-z", "--modified", at=at).split("\0")} - {
            ""
        }
        cut = [
            name for name in names if _is_cut(at / name, [_text(git, one, name) for one in (before, begun)])
        ]
        _lay_out_again(git, at, cut)
        _sync(at, cut)


def _is_cut(path: Path, wholes: Sequence[str | None]) -> bool:
    """Whether a file holds no more than the beginning of one of these, so that nothing of anybody's can be in it."""
    try:
        text = os.fsdecode(read_plain(path, MOST_BYTES))
    except FileNotFoundError:
        return None not in wholes
    except OSError:
        return False
    begins = text.rstrip("\0")  # what a cut of power leaves of a file may be zeros
    return text not in wholes and any(whole and whole.startswith(begins) for whole in wholes)


def _text(git: Git, commit: str, name: str) -> str | None:
    answer = git.run("cat-file", "blob", f"{commit}:{name}")
    return None if answer.exit else answer.text


def _lay_out_again(git: Git, at: Path, names: Collection[str]) -> None:
    """Write these files anew, as the index has them; those that it lacks are gone."""
    for name in names:
        with suppress(OSError):
            (at / name).unlink()  # first all, which makes room
    git.run("checkout-index", "--quiet", "-z", "--stdin", at=at, told="".join(f"{one}\0" for one in names))


def _sync(at: Path, names: Iterable[str]) -> None:
    """Have files be on the disk, which git sees to for all but these."""
    for name in names:
        with suppress(OSError):
            handle = open_plain(at / name)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _is_edited(git: Git, target: str, tip: str, is_begun: bool) -> bool:
    """Whether staging holds what somebody wrote: where moving it was begun by one who was killed, neither old nor new."""
    if is_begun and git.ask("write-tree", at=git.staging) == git.tree(target):
        return False  # git has come so far that it will take edits along
    folder = git.folder_at(git.staging)
    if (folder / "index").exists():  # which stays as it is
        shutil.copyfile(folder / "index", folder / "pulse-index")
    try:
        lying = stage_files(git, git.staging, folder / "pulse-index")
    finally:
        (folder / "pulse-index").unlink(missing_ok=True)
    bases = (tip, target) if is_begun else (tip,)
    return bool(set.intersection(*(git.differing(base, lying) for base in bases)))
