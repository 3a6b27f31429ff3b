"""From staging to main and back: commits as objects first, then one step, then the files follow."""

import asyncio
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.git import update_main
from pulse_adapters.git.commits import merge_candidate
from pulse_adapters.git.errors import GitFailed, MainMoved, MergeConflict, NoGit
from pulse_adapters.git.git_client import GitClient
from pulse_adapters.git.git_command import PULSE, Git, GitResult
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.staging import commit_staging
from pulse_adapters.git.update_main import point_main
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine_repository import NothingToPromote
from tests.integration.git.git_scene import (
    ADA,
    FILES,
    Killed,
    MortalGit,
    edited,
    files,
    git,
    is_clean,
    made,
    newest,
    promoted,
    write,
)
from tests.long_form import sample, sampled

EACH = sample(16, 1)
"""Of the calls of git, one in so many is killed."""


def refs(repository: Repository) -> str:
    return git(repository.home / "engine", "for-each-ref")


def test_a_candidate_is_the_merge_and_nothing_moves(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging, main = edited(repository), repository.head()
    write(repository.home / "staging" / "engine.py", "RULES = [1]\n")
    before = refs(repository)
    candidate = repository.candidate("one more rule", ADA)
    assert refs(repository) == before
    assert files(repository.home / "engine") == FILES
    assert repository.staging().dirty == ("engine.py",)
    entry = git(repository.home / "engine", "log", "-1", "--format=%P|%an <%ae>|%s", candidate)
    assert entry == f"{main} {staging}|{ADA}|one more rule"


def test_main_and_both_folders_follow(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commit = promoted(repository)
    assert repository.head() == repository.resolve("staging") == commit
    for name in ("engine", "staging"):
        assert files(repository.home / name) == {**FILES, "rules/a.py": "A = 1\n"}
        assert is_clean(repository.home / name)


@pytest.mark.parametrize("behind", [False, True])
def test_with_nothing_new_there_is_nothing_to_promote(tmp_path: Path, behind: bool) -> None:
    repository = made(tmp_path)
    if behind:
        git(repository.home / "engine", "commit", "--quiet", "--allow-empty", "-m", "by hand")
    with pytest.raises(NothingToPromote):
        repository.candidate("nothing", ADA)


def test_what_main_has_already_is_nothing_new(tmp_path: Path) -> None:
    repository = made(tmp_path)
    edited(repository)
    for name in ("a", "b"):
        write(repository.home / "engine" / "rules" / f"{name}.py", "A = 1\n")
    git(repository.home / "engine", "add", "--all")
    git(repository.home / "engine", "commit", "--quiet", "-m", "by hand")
    with pytest.raises(NothingToPromote, match="nothing that main lacks"):
        repository.candidate("nothing", ADA)


def test_a_conflict_names_the_files_and_the_way_out(tmp_path: Path) -> None:
    repository = made(tmp_path)
    for name in ("rules/ä b.py", "rules/fine.py", "rules/two.py"):
        edited(repository, name, "A = 1\n")
    for name in ("rules/ä b.py", "rules/two.py"):
        write(repository.home / "engine" / name, "A = 2\n")
    git(repository.home / "engine", "add", "--all")
    git(repository.home / "engine", "commit", "--quiet", "-m", "by hand")
    before = refs(repository)
    with pytest.raises(MergeConflict, match="merge main into staging") as conflict:
        repository.candidate("too much", ADA)
    assert conflict.value.files == ("rules/two.py", "rules/ä b.py")
    assert refs(repository) == before


def test_an_old_git_is_said_to_be_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = made(tmp_path)
    edited(repository)
    old = tmp_path / "bin" / "git"
    real = subprocess.run(
        ["/usr/bin/which", "git"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
    write(
        old,
        f'#!/bin/sh\ncase "$*" in *merge-tree*) echo usage >&2; exit 129;;'
        f' *version) echo git version 2.34.1;; *) exec {real} "$@";; esac\n',
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(NoGit, match=r"needs git 2\.38 or newer, and this is 2\.34\.1"):
        repository.candidate("too new", ADA)


def test_no_git_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = made(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGit, match="git can't be run"):
        repository.head()


def test_of_two_promotes_at_once_the_second_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    repository = made(tmp_path)
    before = repository.head()
    edited(repository, "rules/a.py")
    first = repository.candidate("first", ADA)
    edited(repository, "rules/b.py")
    second = repository.candidate("second", ADA)
    repository.point_main(second, before)
    after = refs(repository)
    with pytest.raises(MainMoved, match=f"main is {second[:12]} and not {before[:12]}"):
        repository.point_main(first, before)
    assert refs(repository) == after
    assert repository.head() == second


async def test_many_at_the_same_moment_have_one_winner(tmp_path: Path) -> None:
    repository = made(tmp_path)
    before = repository.head()
    candidates = []
    for number in range(4):
        edited(repository, f"rules/r{number}.py")
        candidates.append(repository.candidate(f"number {number}", ADA))
    client = GitClient(repository.home)
    outcomes = await asyncio.gather(
        *(client.point_main(candidate, before) for candidate in candidates), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes if outcome != ""] == [MainMoved] * 3
    assert repository.head() == candidates[outcomes.index("")]
    assert is_clean(repository.home / "engine")


def test_main_only_goes_forwards(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    with pytest.raises(PulseError, match="main only goes forwards"):
        repository.point_main(first, second)
    with pytest.raises(PulseError, match="there is no commit 1234567"):
        repository.point_main("1234567", second)


def test_what_git_can_not_read_is_not_said_to_be_missing(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    (repository.home / "engine" / ".git" / "shallow").write_text("nonsense\n")
    with pytest.raises(GitFailed, match="bad shallow line: nonsense"):
        repository.point_main(second, first)
    with pytest.raises(GitFailed, match="bad shallow line: nonsense"):
        repository.head()


def test_repeated_it_does_nothing_more(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    before = refs(repository)
    assert repository.point_main(second, first) == (second, "", (), "")
    assert refs(repository) == before


@pytest.mark.parametrize("after", sampled([False, True], 2))
def test_killed_at_any_call_of_git_the_same_call_finishes_it(tmp_path: Path, after: bool) -> None:
    repository = made(tmp_path)
    expected = {**FILES, "rules/a.py": "A = 0\n"}
    promoted(repository, "rules/a.py", "A = 0\n")
    calls, survived = sample(4 * after - EACH + 1, 0), False
    while not survived:
        calls += EACH
        name, old = f"rules/r{calls}.py", repository.head()
        (repository.home / "staging" / "rules" / "a.py").write_text(f"A = {calls}\n")
        edited(repository, name, "R = 1\n")
        expected |= {name: "R = 1\n", "rules/a.py": f"A = {calls}\n"}
        new = repository.candidate(f"promote {calls}", ADA)
        try:
            point_main(MortalGit(repository.home, calls, after=after), new, old)
            survived = True
        except Killed:
            assert repository.head() in (old, new)
            assert repository.point_main(new, old) == (new, "", (), "")
        for folder in ("engine", "staging"):
            assert files(repository.home / folder) == expected
            assert is_clean(repository.home / folder)
    assert calls > 15
    assert "stray" not in refs(repository)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_call_of_git_before_main_moves_the_same_calls_make_the_candidate(
    tmp_path: Path, after: bool
) -> None:
    repository = made(tmp_path)
    main, calls, survived = repository.head(), sample(4 * after - EACH + 1, 0), False
    while not survived:
        calls += EACH
        write(repository.home / "staging" / "rules" / "a.py", f"A = {calls}\n")
        mortal = MortalGit(repository.home, calls, after=after)
        try:
            commit_staging(mortal, "a", ADA)
            merge_candidate(mortal, "a", ADA)
            survived = True
        except Killed:
            repository.commit_staging("a", ADA)
        assert repository.head() == main
        assert files(repository.home / "engine") == FILES
        assert (
            git(repository.home / "engine", "show", f"{repository.candidate('a', ADA)}:rules/a.py")
            == f"A = {calls}"
        )
        assert is_clean(repository.home / "staging")
    assert calls > 10


def test_files_that_were_half_laid_out_when_git_was_killed_are_nobodys(tmp_path: Path) -> None:
    repository = made(tmp_path)
    old = promoted(repository, "rules/a.py", "A = 1\n")
    for name in ("rules/a.py", "rules/b.py", "rules/c.py"):
        edited(repository, name, "A = 2\n")
    new = repository.candidate("more", ADA)
    engine = repository.home / "engine"
    git(engine, "update-ref", "refs/heads/main", new, old)
    write(engine / "rules" / "b.py", "A = 2\n")
    (engine / "rules" / "a.py").unlink()
    (engine / "rules" / "a.py").write_text("A = 2\n")
    write(engine / ".git" / "index.lock", "half of it")
    os.utime(engine / ".git" / "index.lock", (0, 0))
    assert repository.point_main(new, old) == (new, "", (), "")
    assert is_clean(engine)
    assert files(engine) == files(repository.home / "staging")


def test_files_of_an_earlier_commit_that_was_never_followed_are_nobodys(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    edited(repository, "rules/a.py", "A = 1\n")
    second = repository.candidate("second", ADA)
    git(repository.home / "engine", "update-ref", "refs/heads/main", second, first)
    for name in ("rules/a.py", "engine.py"):
        edited(repository, name, "A = 2\n")
    third = repository.candidate("third", ADA)
    assert repository.point_main(third, second) == (third, "", (), "")
    assert is_clean(repository.home / "engine")


def test_a_half_forwarded_staging_is_finished_with_the_edits_it_has(tmp_path: Path) -> None:
    repository = made(tmp_path)
    old = promoted(repository)
    new = repository.reverting(f"{old}~1", "back", ADA)
    staging = repository.home / "staging"
    write(staging / "engine.py", "RULES = [1]\n")
    git(staging, "read-tree", "-m", "-u", old, new)
    assert repository.point_main(new, old).notes == ()
    assert repository.staging().commit == new
    assert repository.staging().dirty == ("engine.py",)


@pytest.mark.parametrize("name", ["index.lock", "worktrees/staging/index.lock"])
def test_a_lock_that_a_person_s_git_takes_meanwhile_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository = made(tmp_path)
    before = repository.head()
    edited(repository)
    commit = repository.candidate("promote", ADA)
    lock, swap = repository.home / "engine/.git" / name, update_main._swap
    left = threading.Timer(0.3, lock.unlink)

    def beside_a_person(*values: Any) -> None:
        swap(*values)
        lock.touch()
        left.start()

    monkeypatch.setattr(update_main, "_swap", beside_a_person)
    assert repository.point_main(commit, before) == (commit, "", (), "")
    left.join(60)
    assert repository.staging().commit == commit
    assert is_clean(repository.home / "engine")


def test_what_lies_about_in_the_engine_is_kept_on_a_branch(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    edited(repository)
    write(engine / "engine.py", "RULES = [42]\n")
    write(engine / "rules" / "mine.py", "MINE = 1\n")
    write(engine / "rules" / "a.py", "A = 'in the way'\n")
    write(engine / "rules" / "__pycache__" / "a.pyc", "ignored")
    before = repository.head()
    commit = repository.candidate("promote", ADA)
    pointed = repository.point_main(commit, before)
    assert pointed.stray.startswith("stray/")
    assert is_clean(engine)
    expected = {**FILES, "rules/a.py": "A = 1\n", "rules/__pycache__/a.pyc": "ignored"}
    assert files(engine) == expected
    for name, text in (
        ("engine.py", "RULES = [42]"),
        ("rules/mine.py", "MINE = 1"),
        ("rules/a.py", "A = 'in the way'"),
    ):
        assert git(engine, "show", f"{pointed.stray}:{name}") == text
    assert repository.point_main(commit, before) == (commit, "", (), "")


def test_an_ignored_file_in_the_engine_that_main_comes_to_hold_is_kept_on_a_branch(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine, staging = repository.home / "engine", repository.home / "staging"
    promoted(repository, ".gitignore", "notes.md\n")
    write(engine / "notes.md", "of somebody\n")
    write(staging / ".gitignore", "")
    edited(repository, "notes.md", "of main\n")
    before, commit = repository.head(), repository.candidate("notes", ADA)
    moved = repository.point_main(commit, before)
    assert (moved.notes, git(engine, "show", f"{moved.stray}:notes.md")) == ((), "of somebody")
    assert (engine / "notes.md").read_text() == "of main\n"
    assert is_clean(engine)


def test_the_files_of_a_home_that_was_copied_follow_main(tmp_path: Path) -> None:
    promoted(made(tmp_path))
    shutil.copytree(tmp_path / "home", tmp_path / "copy", symlinks=True)  # as a restore does: other inodes
    copy = Repository(tmp_path / "copy")
    copy.mend()
    promoted(copy, text="A = 2\n")
    assert (copy.home / "engine/rules/a.py").read_text() == "A = 2\n"


def test_an_engine_on_another_branch_is_left_alone_and_that_is_said(tmp_path: Path) -> None:
    repository = made(tmp_path)
    git(repository.home / "engine", "switch", "--quiet", "-c", "looking")
    edited(repository)
    before = repository.head()
    pointed = repository.point_main(repository.candidate("promote", ADA), before)
    assert "is not on main, so its files stay" in pointed.notes[0]
    assert files(repository.home / "engine") == FILES
    assert repository.head() == pointed.commit


def test_edits_in_staging_survive_when_main_goes_on(tmp_path: Path) -> None:
    repository = made(tmp_path)
    edited(repository)
    before = repository.head()
    candidate = repository.candidate("promote", ADA)
    write(repository.home / "staging" / "rules" / "b.py", "B = 1\n")
    write(repository.home / "staging" / "rules" / "a.py", "A = 'edited since'\n")
    assert repository.point_main(candidate, before).notes == ()
    state = repository.staging()
    assert (state.commit, state.dirty) == (candidate, ("rules/a.py", "rules/b.py"))


def test_edits_in_the_way_keep_staging_where_it_is_and_that_is_said(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    old = promoted(repository)
    write(repository.home / "staging" / "rules" / "a.py", "A = 'precious'\n")
    back = repository.reverting(first, "back", ADA)
    pointed = repository.point_main(back, old)
    assert "staging stays behind main" in pointed.notes[0]
    assert "rules/a.py" in pointed.notes[0]
    assert (repository.home / "staging" / "rules" / "a.py").read_text() == "A = 'precious'\n"
    assert (repository.staging().commit, repository.staging().behind) == (old, 1)


def test_an_ignored_file_that_a_rollback_would_bring_back_stays_as_somebody_has_it(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging, before = repository.home / "staging", promoted(repository, "notes.md", "as committed\n")
    git(staging, "rm", "--quiet", "--cached", "notes.md")
    after = promoted(repository, ".gitignore", "notes.md\n")
    write(staging / "notes.md", "written since\n")
    (note,) = repository.point_main(repository.reverting(before, "back", ADA), after).notes
    assert "staging stays behind main: " in note
    assert "notes.md" in note
    assert (staging / "notes.md").read_text() == "written since\n"


class FullDiskGit(Git):
    """Git on a disk that takes but the beginning of what is to be laid out."""

    def run(self, *words: str, **more: Any) -> GitResult:
        if (words[0] == "merge" and "--ff-only" in words) or words[:3] == ("read-tree", "-m", "-u"):
            ((more.get("at") or self.engine) / "rules" / "a.py").write_text("A =")
            return GitResult(1, "", "error: unable to write file rules/a.py\n")
        return super().run(*words, **more)


class KilledGit(Git):
    """Git that somebody kills while it lays out files."""

    def run(self, *words: str, **more: Any) -> GitResult:
        if (words[0] == "merge" and "--ff-only" in words) or words[:3] == ("read-tree", "-m", "-u"):
            rules = (more.get("at") or self.engine) / "rules"
            (rules / "a.py").write_text("A =")
            (rules / "b.py").unlink()
            (rules / "new.py").write_text("")
            raise GitFailed(f"git {words[0]} did not end, or was killed")
        return super().run(*words, **more)


def half_laid_out(place: Path) -> tuple[Repository, str, str]:
    """A repository of which git was killed while it laid out a promote, and the commits before and after that."""
    repository = made(place)
    promoted(repository, "rules/b.py", "B = 1\n")
    before, staging = promoted(repository), repository.home / "staging"
    for name, text in (("a.py", "A = 2\n"), ("b.py", "B = 2\n")):
        write(staging / "rules" / name, text)
    edited(repository, "rules/new.py", "N = 1\n")
    git(staging, "switch", "--quiet", "--detach")
    commit = repository.candidate("promote", ADA)
    git(staging, "update-ref", "refs/heads/staging", before)
    git(staging, "switch", "--quiet", "staging")
    write(staging / "engine.py", "RULES = [1]\n")
    moved = point_main(KilledGit(repository.home), commit, before)
    assert ["was killed" in note for note in moved.notes] == [True, True]
    assert "was killed" in moved.fault
    return repository, before, commit


LAID_OUT = {"rules/a.py": "A = 2\n", "rules/b.py": "B = 2\n", "rules/new.py": "N = 1\n"}


def assert_nothing_is_half(repository: Repository) -> None:
    home = repository.home
    assert files(home / "engine") == {**FILES, **LAID_OUT}
    assert files(home / "staging") == {**FILES, **LAID_OUT, "engine.py": "RULES = [1]\n"}
    assert is_clean(home / "engine")
    assert repository.staging().dirty == ("engine.py",)
    assert "stray" not in refs(repository)
    assert "refs/pulse/laying-out" not in refs(repository)
    assert "refs/pulse/forwarding" not in refs(repository)


def test_what_a_killed_git_has_laid_out_in_part_passes_for_nobodys_edit(tmp_path: Path) -> None:
    repository, before, commit = half_laid_out(tmp_path)
    assert repository.point_main(commit, before) == (commit, "", (), "")
    assert_nothing_is_half(repository)


def test_what_a_killed_git_has_laid_out_in_part_is_not_committed_with_staging(tmp_path: Path) -> None:
    repository, _, _ = half_laid_out(tmp_path)
    repository.mend()
    assert_nothing_is_half(repository)


def test_what_somebody_deletes_long_after_git_was_killed_stays_deleted(tmp_path: Path) -> None:
    """Staging had a commit by then, and was not forwarded: that it was being laid out was noted for good."""
    repository, before, commit = half_laid_out(tmp_path)
    staging = repository.home / "staging"
    git(staging, "commit", "--quiet", "-m", "mine", "engine.py")
    assert "staging has commits that main lacks" in repository.point_main(commit, before).notes[0]
    git(staging, "checkout", "--quiet", "--", "rules")
    (staging / "rules" / "a.py").unlink()
    write(staging / "rules" / "b.py", "B")
    repository.mend()
    assert not (staging / "rules" / "a.py").exists()
    assert (staging / "rules" / "b.py").read_text() == "B"


def test_what_somebody_has_edited_in_a_half_laid_out_engine_is_kept_on_a_branch(tmp_path: Path) -> None:
    repository, before, commit = half_laid_out(tmp_path)
    write(repository.home / "engine" / "rules" / "a.py", "A = 2  # mine\n")
    moved = repository.point_main(commit, before)
    assert git(repository.home / "engine", "show", f"{moved.stray}:rules/a.py") == "A = 2  # mine"
    assert files(repository.home / "engine") == {**FILES, **LAID_OUT}


@pytest.mark.parametrize("left", ["", "\0\0\0\0\0\0"])
def test_files_that_a_cut_of_power_has_emptied_amid_a_promote_are_nobodys_edit(
    tmp_path: Path, left: str
) -> None:
    repository = made(tmp_path)
    before = promoted(repository)
    edited(repository, text="A = 2\n")
    commit = repository.candidate("promote", ADA)
    repository.point_main(commit, before)
    for folder, mark in (("engine", "laying-out"), ("staging", "forwarding")):
        git(repository.home / folder, "update-ref", f"refs/pulse/{mark}", commit)
        write(repository.home / folder / "rules" / "a.py", left)
    assert repository.point_main(commit, before) == (commit, "", (), "")
    for folder in ("engine", "staging"):
        assert (repository.home / folder / "rules" / "a.py").read_text() == "A = 2\n"
        assert is_clean(repository.home / folder)


def test_what_a_full_disk_takes_but_a_part_of_passes_for_nobodys_edit(tmp_path: Path) -> None:
    repository = made(tmp_path)
    before, after = promoted(repository), promoted(repository, text="A = 2\n")
    back = repository.reverting(before, "back", PULSE)
    moved = point_main(FullDiskGit(repository.home), back, after)
    assert ["unable to write" in note for note in moved.notes] == [True, True]
    for folder in ("engine", "staging"):
        assert (repository.home / folder / "rules" / "a.py").read_text() == "A = 2\n"
    assert repository.point_main(back, after) == (back, "", (), "")
    for folder in ("engine", "staging"):
        assert (repository.home / folder / "rules" / "a.py").read_text() == "A = 1\n"
        assert is_clean(repository.home / folder)


def test_commits_made_in_staging_meanwhile_stay(tmp_path: Path) -> None:
    repository = made(tmp_path)
    edited(repository)
    before = repository.head()
    candidate = repository.candidate("promote", ADA)
    later = edited(repository, "rules/b.py")
    pointed = repository.point_main(candidate, before)
    assert "staging has commits that main lacks" in pointed.notes[0]
    assert repository.staging().commit == later


def test_a_rollback_is_a_commit_on_top_with_the_old_content(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good = promoted(repository, "rules/a.py")
    bad = promoted(repository, "rules/b.py")
    before = refs(repository)
    back = repository.reverting(good, "back to the good one", ADA)
    assert refs(repository) == before
    repository.point_main(back, bad)
    assert newest(repository, "%P") == bad
    assert files(repository.home / "engine") == {**FILES, "rules/a.py": "A = 1\n"}
    assert repository.diff(good, back) == ""


def test_a_rollback_that_was_done_already_is_main_itself(tmp_path: Path) -> None:
    repository = made(tmp_path)
    good = repository.head()
    bad = promoted(repository)
    back = repository.reverting(good, "back", ADA)
    repository.point_main(back, bad)
    assert repository.reverting(good, "again", ADA) == back


def test_a_branch_keeps_a_commit_and_is_never_moved(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    assert repository.keep_branch("rejected/x", first) == "rejected/x"
    assert repository.keep_branch("rejected/x", first) == "rejected/x"
    assert repository.keep_branch("rejected/x", second) == "rejected/x-2"
    assert repository.keep_branch("rejected/x", second) == "rejected/x-2"
    assert repository.resolve("rejected/x") == first
    for name in ("main", "staging", "a..b", "-x y"):
        with pytest.raises(PulseError, match="can't be the name of a branch"):
            repository.keep_branch(name, second)


def test_a_merge_begun_in_the_engine_is_kept_and_forgotten(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    git(engine, "switch", "--quiet", "-c", "other")
    write(engine / "engine.py", "RULES = [1]\n")
    git(engine, "commit", "--quiet", "-am", "one")
    git(engine, "switch", "--quiet", "main")
    git(engine, "merge", "--quiet", "--no-ff", "--no-commit", "other")
    edited(repository)
    before = repository.head()
    pointed = repository.point_main(repository.candidate("promote", ADA), before)
    assert git(engine, "show", f"{pointed.stray}:engine.py") == "RULES = [1]"
    assert is_clean(engine)
    assert not (engine / ".git" / "MERGE_HEAD").exists()


def test_a_commit_made_by_hand_on_main_is_merged_and_nobodys_stray(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    lines = [f"L{number} = 0" for number in range(20)]
    old = promoted(repository, "rules/long.py", "\n".join(lines) + "\n")
    write(engine / "rules" / "long.py", "\n".join(["L0 = 'by hand'", *lines[1:]]) + "\n")
    git(engine, "commit", "--quiet", "-am", "by hand")
    edited(repository, "rules/long.py", "\n".join([*lines[:-1], "L19 = 'staging'"]) + "\n")
    candidate = repository.candidate("both", ADA)
    with pytest.raises(MainMoved):
        repository.point_main(candidate, old)
    pointed = repository.point_main(candidate, repository.head())
    assert (pointed.stray, pointed.notes) == ("", ())
    assert (engine / "rules" / "long.py").read_text() == "\n".join(
        ["L0 = 'by hand'", *lines[1:-1], "L19 = 'staging'"]
    ) + "\n"
