"""The worktree for experiments: how it stands, committing it, and mending it."""

import os
import resource
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from pulse_adapters.git import stage_files
from pulse_adapters.git.errors import (
    AnotherRepository,
    CannotMend,
    GitFailed,
    MergeConflict,
    ReservedName,
    SpecialFile,
    UnsafeTree,
)
from pulse_adapters.git.git_command import PULSE
from pulse_adapters.git.git_files import DEEPEST
from pulse_adapters.git.repository import Repository
from pulse_core.app.engine.promote import staging_after_rollback
from tests.integration.git.git_scene import (
    ADA,
    FILES,
    edited,
    files,
    git,
    is_clean,
    laid_out,
    made,
    promoted,
    write,
)
from tests.processes import PATIENCE
from tests.special_files import bound_socket


def advice(repository: Repository) -> str:
    return "\n".join(repository.staging().advice())


def conflicting(repository: Repository) -> Path:
    """Staging in the middle of a merge that a person has to settle."""
    promoted(repository, "rules/a.py", "A = 0\n")
    staging = repository.home / "staging"
    git(staging, "switch", "--quiet", "-c", "other")
    write(staging / "rules" / "a.py", "A = 1\n")
    git(staging, "commit", "--quiet", "-am", "one")
    git(staging, "switch", "--quiet", "staging")
    edited(repository, "rules/a.py", "A = 2\n")
    with pytest.raises(AssertionError):
        git(staging, "merge", "other")
    return staging


def test_every_kind_of_edit_is_seen_and_what_is_ignored_is_not(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    write(staging / "rules" / "new one.py", "A = 1\n")
    write(staging / "rules" / "__pycache__" / "x.pyc", "")
    write(staging / "engine.py", "RULES = [1]\n")
    (staging / ".gitignore").rename(staging / "renamed")
    git(staging, "add", "renamed")
    ignored = "rules/__pycache__/x.pyc"
    dirty = {".gitignore", "engine.py", "renamed", "rules/new one.py", ignored}
    assert set(repository.staging().dirty) == dirty
    (staging / "renamed").rename(staging / ".gitignore")
    assert ignored not in repository.staging().dirty
    assert "engine.py, rules/new one.py not committed" in advice(repository).replace("renamed, ", "")


def test_looking_at_it_writes_nothing(tmp_path: Path) -> None:
    repository = made(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in repository.home.rglob("*")}
    write(repository.home / "staging" / "engine.py", "RULES = [1]\n")
    assert repository.staging().dirty == ("engine.py",)
    changed = {path for path in repository.home.rglob("*") if before.get(path) != path.stat().st_mtime_ns}
    assert changed == {repository.home / "staging" / "engine.py"}


def test_a_commit_holds_everything_and_says_whose_it_is(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    write(staging / "rules" / "a.py", "A = 1\n")
    (staging / "engine.py").unlink()
    commit = repository.commit_staging("# not a comment", ADA)
    assert commit == repository.staging().commit == repository.resolve("staging")
    assert git(staging, "log", "-1", "--format=%an <%ae>|%cn|%s") == f"{ADA}|Pulse|# not a comment"
    names = git(staging, "ls-tree", "-r", "--name-only", "HEAD").split()
    assert names == [".gitignore", "rules/__init__.py", "rules/a.py"]
    assert is_clean(staging)


def test_without_an_edit_there_is_nothing_to_commit(tmp_path: Path) -> None:
    repository = made(tmp_path)
    left = repository.home / "staging" / "rules" / f".{'0123abcd' * 2}.unfinished"
    write(left, "RULES = [")
    assert repository.staging().dirty == (), "it was left by a write that was killed"
    assert repository.commit_staging("nothing", ADA) is None
    assert repository.staging().commit == repository.head()
    edited(repository, "rules/a.py")
    assert left.name not in str(repository.diff(repository.head(), repository.resolve("staging")))


def test_how_far_staging_and_main_are_apart_is_counted(tmp_path: Path) -> None:
    repository = made(tmp_path)
    edited(repository, "rules/a.py")
    edited(repository, "rules/b.py")
    assert (repository.staging().ahead, repository.staging().behind) == (2, 0)
    engine = repository.home / "engine"
    git(engine, "commit", "--quiet", "--allow-empty", "-m", "by hand")
    assert (repository.staging().ahead, repository.staging().behind) == (2, 1)
    assert "staging lacks 1 of main's commits" in advice(repository)


def test_a_merge_that_is_not_settled_is_never_committed(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = conflicting(repository)
    state = repository.staging()
    assert (state.conflicts, state.under_way) == (("rules/a.py",), "merge")
    assert "rules/a.py hold both sides of a merge" in advice(repository)
    with pytest.raises(MergeConflict, match=r"both changed rules/a\.py"):
        repository.commit_staging("half", ADA)
    assert "<<<<<<<" in (staging / "rules" / "a.py").read_text()


@pytest.mark.parametrize("settled", ["A = 3\n", "A = 2\n"])
def test_a_merge_that_is_settled_is_ended_by_a_commit(tmp_path: Path, settled: str) -> None:
    repository = made(tmp_path)
    staging = conflicting(repository)
    write(staging / "rules" / "a.py", settled)  # the second is what staging had: nothing is dirty then
    git(staging, "add", "--all")
    commit = repository.commit_staging("both", ADA)
    assert len(git(staging, "log", "-1", "--format=%P", str(commit)).split()) == 2
    assert repository.staging().under_way == ""


def test_a_missing_worktree_is_made_again(tmp_path: Path) -> None:
    repository = made(tmp_path)
    commit = edited(repository)
    shutil.rmtree(repository.home / "staging")
    assert repository.staging().missing
    assert "is missing; make it again with: upulse init" in advice(repository)
    with pytest.raises(CannotMend, match="is missing"):
        repository.commit_staging("nothing", ADA)
    assert repository.mend() == (f"{repository.home / 'staging'} is made",)
    assert repository.staging().commit == commit
    assert files(repository.home / "staging") == {**FILES, "rules/a.py": "A = 1\n"}


@pytest.mark.parametrize("name", ["engine", "staging"])
def test_files_that_cannot_be_laid_out_do_not_pass_for_deleted(tmp_path: Path, name: str) -> None:
    repository = made(tmp_path)
    promoted(repository)
    folder = repository.home / name
    shutil.rmtree(folder / "rules")
    (folder / "rules").write_text("in the way, as a disk may be that is full")
    Path(git(folder, "rev-parse", "--absolute-git-dir"), "index").unlink()
    for _ in range(2):
        with pytest.raises(GitFailed, match=r"checkout-index failed .*rules"):
            repository.mend()
    (folder / "rules").unlink()
    assert repository.mend() == (f"{folder} has its files",)
    assert is_clean(folder)


def test_what_a_disk_takes_but_a_part_of_is_laid_out_once_there_is_room(tmp_path: Path) -> None:
    repository = made(tmp_path)
    promoted(repository, "rules/large.py", "# large\n" * 100_000)
    staging, limit = repository.home / "staging", resource.getrlimit(resource.RLIMIT_FSIZE)
    shutil.rmtree(staging)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        with pytest.raises(GitFailed):
            repository.mend()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    repository.mend()
    assert is_clean(staging)


def test_a_missing_worktree_that_somebody_had_locked_is_made_again(tmp_path: Path) -> None:
    repository = made(tmp_path)
    git(
        repository.home / "engine",
        "worktree",
        "lock",
        "--reason",
        "travelling",
        str(repository.home / "staging"),
    )
    shutil.rmtree(repository.home / "staging")
    repository.mend()
    assert files(repository.home / "staging") == FILES


def test_a_missing_branch_is_made_again_and_edits_stay(tmp_path: Path) -> None:
    repository = made(tmp_path)
    write(repository.home / "staging" / "engine.py", "RULES = [1]\n")
    git(repository.home / "engine", "update-ref", "-d", "refs/heads/staging")
    assert repository.mend() == ("the branch staging is made anew, from main",)
    assert repository.staging().dirty == ("engine.py",)


@pytest.mark.parametrize("back", [0, 1])
def test_a_detached_head_is_put_back_with_the_edits_it_has(tmp_path: Path, back: int) -> None:
    repository = made(tmp_path)
    edited(repository, "rules/a.py")
    commit = edited(repository, "rules/b.py")
    staging = repository.home / "staging"
    git(staging, "switch", "--quiet", "--detach", f"HEAD~{back}")
    write(staging / "rules" / "c.py", "C = 1\n")
    assert repository.staging().detached
    assert "is on no branch; put it back with: upulse init" in advice(repository)
    with pytest.raises(CannotMend, match="is on no branch"):
        repository.commit_staging("nothing", ADA)
    assert repository.mend() == (f"{staging} is on staging again",)
    state = repository.staging()
    assert (state.branch, state.commit, state.dirty) == ("staging", commit, ("rules/c.py",))


def test_commits_made_on_a_detached_head_are_taken_along(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    git(staging, "switch", "--quiet", "--detach")
    git(staging, "commit", "--quiet", "--allow-empty", "-m", "lost?")
    lost = git(staging, "rev-parse", "HEAD")
    repository.mend()
    assert repository.resolve("staging") == lost


def test_commits_that_would_be_lost_are_a_persons_to_judge(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    git(staging, "switch", "--quiet", "--detach")
    git(staging, "commit", "--quiet", "--allow-empty", "-m", "aside")
    aside = git(staging, "rev-parse", "HEAD")
    git(staging, "switch", "--quiet", "staging")
    edited(repository)
    git(staging, "switch", "--quiet", "--detach", aside)
    with pytest.raises(CannotMend, match="which staging lacks; keep it with"):
        repository.mend()
    assert git(staging, "rev-parse", "HEAD") == aside


def test_another_branch_is_a_persons_to_leave(tmp_path: Path) -> None:
    repository = made(tmp_path)
    git(repository.home / "staging", "switch", "--quiet", "-c", "idea")
    assert "is on the branch idea; go back with" in advice(repository)
    with pytest.raises(CannotMend, match="is on the branch idea"):
        repository.mend()
    with pytest.raises(CannotMend, match="is on the branch idea"):
        repository.commit_staging("nothing", ADA)


def test_a_rebase_under_way_is_a_persons_to_end(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = conflicting(repository)
    git(staging, "merge", "--abort")
    with pytest.raises(AssertionError):
        git(staging, "rebase", "other")
    assert "a rebase is under way; end it with" in advice(repository)
    with pytest.raises(CannotMend, match="a rebase is under way"):
        repository.mend()


def test_a_home_that_was_moved_finds_its_worktree(tmp_path: Path) -> None:
    repository = made(tmp_path)
    write(repository.home / "staging" / "engine.py", "RULES = [1]\n")
    moved = Repository(repository.home.rename(tmp_path / "moved"))
    assert moved.staging().missing
    assert moved.mend() == (f"{moved.home / 'staging'} is linked to {moved.home / 'engine'} again",)
    assert moved.staging().dirty == ("engine.py",)


def test_the_engine_is_put_back_on_main(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine = repository.home / "engine"
    git(engine, "switch", "--quiet", "--detach")
    assert repository.mend() == (f"{engine} is on main again",)
    assert git(engine, "symbolic-ref", "--short", "HEAD") == "main"


def test_mending_what_is_whole_does_nothing(tmp_path: Path) -> None:
    assert made(tmp_path).mend() == ()


ODD = (b'a\tb "c".py', b"a\nb.py", b"\xff.py", "größe ☃.py".encode())


def tree_of(repository: Repository) -> dict[str, str]:
    """What staging's commit holds: for each name its mode and content."""
    staging = repository.home / "staging"
    lines = git(staging, "ls-tree", "-r", "-z", "HEAD").split("\0")
    entries = (line.partition("\t") for line in lines if line)
    return {
        name: f"{head.split()[0]} {git(staging, 'cat-file', 'blob', head.split()[2])}"
        for head, _, name in entries
    }


def test_each_kind_of_change_is_committed_as_it_lies_there(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging, outside = repository.home / "staging", tmp_path / "outside"
    for name in ("link.py", "file", "folder/a.py", "linked/a.py", "linked/b.py", "runs", "pipe", "kept.log"):
        write(staging / name, f"{name}\n")
        write(outside / Path(name).name, f"{name}\n" if name == "linked/a.py" else "SECRET\n")
    repository.commit_staging("before", ADA)
    for name in ("link.py", "file", "pipe"):
        (staging / name).unlink()
    for name in ("folder", "linked"):
        shutil.rmtree(staging / name)
    (staging / "link.py").symlink_to(outside / "link.py")
    write(staging / "file" / "inside.py", "inside\n")
    write(staging / "folder", "a file now\n")
    (staging / "linked").symlink_to(outside)
    (staging / "runs").chmod(0o755)
    write(staging / ".gitignore", "*.log\n")
    write(staging / "new.log", "ignored\n")
    repository.commit_staging("after", ADA)
    assert tree_of(repository) == {
        ".gitignore": "100644 *.log",
        "engine.py": "100644 RULES = []",
        "file/inside.py": "100644 inside",
        "folder": "100644 a file now",
        "kept.log": "100644 kept.log",
        "link.py": f"120000 {outside}/link.py",
        "linked": f"120000 {outside}",
        "rules/__init__.py": "100644 ",
        "runs": "100755 runs",
    }
    assert repository.staging().dirty == ()


def test_many_files_of_any_name_are_committed(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    for name in ODD:
        Path(os.fsdecode(os.fsencode(staging) + b"/" + name)).write_bytes(name)
    for number in range(250):
        write(staging / "rules" / f"r{number}.py", f"{number}\n")
    repository.commit_staging("many", ADA)
    assert repository.staging().dirty == ()
    laid = laid_out(repository, repository.staging().commit)
    assert [Path(os.fsdecode(os.fsencode(laid) + b"/" + name)).read_bytes() for name in ODD] == list(ODD)
    assert (laid / "rules" / "r249.py").read_text() == "249\n"


def test_what_is_too_much_to_be_code_is_refused_and_keeps_no_rollback_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = made(tmp_path)
    first, bad = repository.head(), promoted(repository)
    with (repository.home / "staging" / "data").open("w") as file:
        file.truncate(2**40)
    with pytest.raises(GitFailed, match=r"is larger than 256 MiB; list what is no code in \.gitignore"):
        repository.commit_staging("large", ADA)
    back = repository.reverting(first, "back", PULSE)
    moved = repository.point_main(back, bad)
    assert repository.head() == back
    assert "is larger than" in " ".join(moved.notes)
    write(repository.home / "staging" / ".gitignore", "data\n")
    assert repository.commit_staging("small", ADA)
    monkeypatch.setattr(stage_files, "MOST_FILES", 2)
    for number in range(3):
        write(repository.home / "staging" / f"{number}.py", "")
    with pytest.raises(GitFailed, match=r"more than 2 files changed in .*staging; list what is no code"):
        repository.commit_staging("many", ADA)


def test_what_lies_too_deep_is_neither_committed_nor_laid_out(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    deepest = "/".join("d" * DEEPEST)
    write(staging / deepest / "rule.py", "")
    laid = laid_out(repository, str(repository.commit_staging("deep", ADA)))
    assert (laid / deepest / "rule.py").is_file()
    write(staging / deepest / "d" / "rule.py", "")
    with pytest.raises(GitFailed, match=r"staging/d/d/.* is more than 90 folders deep; list what is no code"):
        repository.commit_staging("too deep", ADA)
    git(staging, "add", "--all")
    git(staging, "commit", "--quiet", "-m", "too deep")
    with pytest.raises(UnsafeTree, match="is more than 90 folders deep"):
        laid_out(repository, repository.staging().commit)


def test_a_file_whose_path_is_too_long_for_the_kernel_is_not_left_out_in_silence(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging, names = repository.home / "staging", ["d" * 200] * 25
    within = os.open(staging, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=within)
        outer, within = within, os.open(name, os.O_RDONLY, dir_fd=within)
        os.close(outer)
    os.close(os.open("rule.py", os.O_CREAT | os.O_WRONLY, dir_fd=within))
    os.close(within)
    with pytest.raises(
        SpecialFile, match=r"staging/d+/.*… is a folder that can't be opened \(File name too long\)"
    ):
        repository.commit_staging("too long", ADA)
    write(staging / ".gitignore", f"{names[0]}/\n")
    assert repository.commit_staging("without it", ADA)
    (staging / ".gitignore").unlink()
    shutil.rmtree(staging / names[0])
    write(staging.joinpath(*names[:16], "rule.py"), "")
    with pytest.raises(
        GitFailed, match=r"staging/d+… is a path of more than 3,000 bytes; list what is no code"
    ):
        repository.commit_staging("too long", ADA)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": bound_socket,
    "device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", ["rules/odd", "engine.py", "data/deep/odd"])
def test_what_no_commit_can_hold_is_named_and_not_left_out(tmp_path: Path, kind: str, name: str) -> None:
    repository = made(tmp_path)
    before, odd = repository.staging(), repository.home / "staging" / name
    odd.parent.mkdir(parents=True, exist_ok=True)
    odd.unlink(missing_ok=True)
    try:
        SPECIAL[kind](odd)
    except PermissionError:
        pytest.skip("only root makes devices")
    write(repository.home / "staging" / "rules" / "a.py", "A = 1\n")
    with pytest.raises(SpecialFile, match=rf"staging/{name} is a {kind}, which can't be part of the engine"):
        repository.commit_staging("odd", ADA)
    assert repository.staging().commit == before.commit
    if name == "engine.py":
        return
    write(repository.home / "staging" / ".gitignore", f"{name.partition('/')[0]}/*odd*\ndata/\n")
    assert repository.commit_staging("without it", ADA)
    odd.unlink()


def test_a_rollback_does_not_mind_a_pipe_in_staging(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first, bad = repository.head(), promoted(repository)
    os.mkfifo(repository.home / "staging" / "odd")
    repository.point_main(repository.reverting(first, "back", PULSE), bad)
    assert files(repository.home / "engine") == FILES


def test_a_repository_within_is_named_until_it_is_moved_away(tmp_path: Path) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    write(staging / "sub" / "a.py", "A = 1\n")
    git(staging / "sub", "init", "--quiet")
    git(staging / "sub", "add", "--all")
    git(staging / "sub", "commit", "--quiet", "-m", "another")
    assert repository.staging().dirty == ("sub/",)
    assert advice(repository).startswith(
        "sub/ can't be committed, as another repository; move it away, or name"
    )
    with pytest.raises(AnotherRepository, match=r"staging/sub is another repository"):
        repository.commit_staging("no", ADA)
    git(staging, "add", "--all")
    with pytest.raises(AnotherRepository, match=r"move it away, or name it in \.gitignore"):
        repository.commit_staging("no", ADA)
    (staging / "sub").rename(tmp_path / "sub")
    write(staging / "rules" / "a.py", "A = 1\n")
    assert repository.commit_staging("yes", ADA)
    assert is_clean(staging)


def test_a_worktree_of_somebody_s_is_not_taken_for_staging(tmp_path: Path) -> None:
    repository = made(tmp_path)
    engine, staging = repository.home / "engine", repository.home / "staging"
    git(engine, "worktree", "add", "--quiet", str(tmp_path / "idea"))
    shutil.rmtree(staging)
    shutil.copytree(tmp_path / "idea", staging)
    assert repository.staging().missing
    with pytest.raises(CannotMend, match="has lost its link"):
        repository.mend()
    shutil.rmtree(staging)
    repository.mend()
    assert is_clean(tmp_path / "idea")
    assert git(staging, "worktree", "list").count("\n") == 2


def test_a_pipe_that_git_would_read_holds_up_no_rollback(tmp_path: Path) -> None:
    repository = made(tmp_path)
    first, bad = repository.head(), promoted(repository)
    (repository.home / "staging" / ".gitignore").unlink()
    os.mkfifo(repository.home / "staging" / ".gitignore")
    back = repository.reverting(first, "back", PULSE)
    (note,) = repository.point_main(back, bad).notes
    assert (repository.head(), files(repository.home / "engine")) == (back, FILES)
    assert "staging stays behind main: " in note
    assert "staging/.gitignore is a pipe" in note
    with pytest.raises(SpecialFile, match="gitignore is a pipe"):
        repository.staging()
    answer = {"subject": back, "data": {"kept_as": "rejected/bad"}}
    assert "gitignore is a pipe" in staging_after_rollback(repository, answer)


@pytest.mark.parametrize("name", [".GIT/config", "git~1/x", "rules/.Git/a.py"])
def test_a_name_that_git_leaves_out_in_silence_is_refused(tmp_path: Path, name: str) -> None:
    repository = made(tmp_path)
    staging = repository.home / "staging"
    write(staging / name, "A = 1\n")
    with pytest.raises(ReservedName, match=r"rename it, or name it in \.gitignore") as refused:
        repository.commit_staging("more", ADA)
    assert str(staging / name) in str(refused.value)
    write(staging / ".gitignore", f"/{name}\n")
    assert repository.commit_staging("more", ADA)
    assert name not in tree_of(repository)


def test_a_link_that_goes_while_it_is_read_leaves_nothing_open(tmp_path: Path) -> None:
    link, has_ended = tmp_path / "link", threading.Event()

    def change() -> None:
        while not has_ended.is_set():
            link.symlink_to("nowhere")
            link.unlink()

    changing = threading.Thread(target=change)
    changing.start()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20_000):
        with ExitStack() as stack:
            stage_files._opened(stack, tmp_path, "link")
    has_ended.set()
    changing.join(PATIENCE)
    assert len(os.listdir("/proc/self/fd")) == before
