"""Worktrees of tasks in a real repository with a bare remote: made once, kept while anything in them could be lost."""

import asyncio
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pulse_adapters.agents.disk_run_files import DiskRunFiles
from pulse_adapters.agents.worktrees import COMMITS, Worktree, branch_of
from pulse_core.agents.run_files import Workspace
from pulse_core.model.errors import PulseError
from pulse_core.model.payload import encode_checked
from pulse_core.settings.settings import Settings
from pulse_core.tasks.events import TaskAcked
from pulse_core.tasks.task import Project
from tests.integration.agents import fake_gh
from tests.long_form import sampled

TASK = "task_000001"
BRANCH = f"feat/{TASK}-mend-it"


def git(at: Path, *words: str) -> str:
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    done = subprocess.run(
        ("git", "-C", str(at), *named, *words), capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone with one commit, and its bare remote."""
    made, remote = tmp_path / "repository", tmp_path / "remote"
    subprocess.run(("git", "init", "-q", "--bare", str(remote)), check=True, timeout=60)
    subprocess.run(("git", "init", "-q", "-b", "main", str(made)), check=True, timeout=60)
    (made / "README").write_text("hello\n")
    git(made, "add", "-A")
    git(made, "commit", "-q", "-m", "begin")
    git(made, "remote", "add", "origin", str(remote))
    git(made, "push", "-q", "origin", "main")
    return made


@pytest.fixture
def worktree(repository: Path, tmp_path: Path) -> Worktree:
    return Worktree(Project(repository=str(repository)), tmp_path / "work" / TASK)


def test_a_task_gets_a_worktree_on_a_branch_of_its_own_from_the_base(
    worktree: Worktree, repository: Path, tmp_path: Path
) -> None:
    made = worktree.make(TASK, "Mend it!")
    path = tmp_path / "work" / TASK
    assert made == Workspace(str(path), BRANCH)
    assert (path / "README").read_text() == "hello\n"
    assert git(path, "rev-parse", "HEAD") == git(repository, "rev-parse", "main")
    assert git(repository, "rev-parse", "--abbrev-ref", "HEAD") == "main"


@pytest.mark.parametrize(
    ("title", "branch"),
    [
        ("Über: `rm -rf /` & more", f"feat/{TASK}-ber-rm-rf-more"),
        ("x" * 99, f"feat/{TASK}-{'x' * 40}"),
        ("…", f"feat/{TASK}"),
    ],
)
def test_a_branch_is_named_after_task_and_title(title: str, branch: str) -> None:
    assert branch_of(TASK, title) == branch


def test_the_same_one_is_found_again_with_what_is_not_committed(worktree: Worktree) -> None:
    made = worktree.make(TASK, "Mend it")
    (Path(made.path) / "half.txt").write_text("half")
    assert worktree.make(TASK, "Another title") == made
    assert (Path(made.path) / "half.txt").read_text() == "half"


def test_its_branch_is_found_again_after_it_was_removed(worktree: Worktree, repository: Path) -> None:
    made = worktree.make(TASK, "Mend it")
    (Path(made.path) / "done.txt").write_text("done")
    git(Path(made.path), "add", "-A")
    git(Path(made.path), "commit", "-q", "-m", "mend it")
    git(Path(made.path), "push", "-q")  # nothing else has to be said
    assert worktree.remove() == ""
    assert not Path(made.path).exists()
    assert worktree.make(TASK, "Mend it") == made
    assert (Path(made.path) / "done.txt").exists()
    assert git(repository, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_crash_has_left_of_one_is_made_anew(
    worktree: Worktree, repository: Path, is_new: bool
) -> None:
    path = Path(worktree.make(TASK, "Mend it").path)
    if is_new:  # killed before it was moved to its place
        git(repository, "worktree", "move", str(path), f"{path}.new")
    else:  # its folder was deleted, and git knows it still
        shutil.rmtree(path)
    assert worktree.make(TASK, "Mend it") == Workspace(str(path), BRANCH)
    assert git(path, "status", "--porcelain") == ""


KILLER = """#!/bin/sh
case "$KILL $*" in before*"$AT"*) kill -9 $PPID; exit 1;; esac
{git} "$@"; code=$?
case "$KILL $*" in after*"$AT"*) kill -9 $PPID;; esac
exit $code
"""
DEED = "from pulse_adapters.agents.worktrees import *; tree = Worktree(Project(repository={!r}), Path({!r}))"


@pytest.mark.parametrize(
    ("deed", "kill", "at"),
    sampled(
        [
            ("make", "before", "worktree prune"),
            ("make", "after", "worktree add"),
            ("make", "before", "worktree move"),
            ("make", "after", "worktree move"),
            ("remove", "before", "worktree remove"),
            ("remove", "after", "worktree remove"),
        ],
        5,
    ),
)
def test_who_is_killed_between_two_steps_leaves_what_the_next_one_goes_on_with(
    worktree: Worktree, repository: Path, tmp_path: Path, deed: str, kill: str, at: str
) -> None:
    path, program = tmp_path / "work" / TASK, tmp_path / "bin" / "git"
    if deed == "remove":
        worktree.make(TASK, "Mend it")
    program.parent.mkdir()
    program.write_text(KILLER.format(git=shutil.which("git")))
    program.chmod(0o755)
    call = f"tree.make({TASK!r}, 'Mend it')" if deed == "make" else "tree.remove()"
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "KILL": kill, "AT": at}
    done = subprocess.run(
        (sys.executable, "-c", f"{DEED.format(str(repository), str(path))}; {call}"),
        env=environment, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    if deed == "make":
        assert worktree.make(TASK, "Mend it") == Workspace(str(path), BRANCH)
        assert git(path, "status", "--porcelain") == ""
        assert git(repository, "worktree", "list").count("\n") == 1
    assert worktree.remove() == ""
    assert (path.exists(), git(repository, "worktree", "list").count("\n")) == (False, 0)


KEPT = [
    ("untracked", "it has 1 file not committed"),
    ("committed", "it has 1 commit neither pushed nor on main"),
]


@pytest.mark.parametrize(("what", "why"), KEPT)
def test_one_with_work_that_is_nowhere_else_is_kept(worktree: Worktree, what: str, why: str) -> None:
    path = Path(worktree.make(TASK, "Mend it").path)
    (path / "work.txt").write_text("work")
    if what == "committed":
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", "work")
    assert worktree.remove() == why
    assert (path / "work.txt").read_text() == "work"


def test_one_without_any_work_is_removed(worktree: Worktree, repository: Path) -> None:
    path = Path(worktree.make(TASK, "Mend it").path)
    assert worktree.remove() == ""
    assert not path.exists()
    assert worktree.remove() == ""
    assert git(repository, "worktree", "list").count("\n") == 0


def test_of_a_project_that_nobody_remembers_it_is_looked_at_and_removed_all_the_same(
    worktree: Worktree, repository: Path
) -> None:
    path = Path(worktree.make(TASK, "Mend it").path)
    forgotten = Worktree(Project(), path)
    (path / "work.txt").write_text("work")
    assert forgotten.remove() == "it has 1 file not committed"
    (path / "work.txt").unlink()
    assert forgotten.remove() == ""
    assert not path.exists()
    assert git(repository, "worktree", "list").count("\n") == 0


def test_the_newest_commits_that_the_base_does_not_have_are_told(worktree: Worktree) -> None:
    path = Path(worktree.make(TASK, "Mend it").path)
    assert worktree.commits() == []
    for number in range(COMMITS + 2):
        git(path, "commit", "-q", "--allow-empty", "-m", f"step {number}")
    told = worktree.commits()
    assert told[0] == f"{git(path, 'rev-parse', '--short', 'HEAD')} step {COMMITS + 1}"
    assert (len(told), told[-1]) == (COMMITS + 1, "and 2 older ones")


def test_what_git_tells_of_a_commit_can_be_recorded_whatever_bytes_its_subject_has(
    worktree: Worktree,
) -> None:
    """Else the end of its run could not be, nor that of any other one which is told with it."""
    path = Path(worktree.make(TASK, "Mend it").path)
    odd = ("-c", "i18n.commitEncoding=odd")  # else git makes UTF-8 of it
    words = ("git", "-C", str(path), *odd, "commit", "-q", "--allow-empty", "-F", "-")
    subprocess.run(words, input=b"caf\xe9", check=True, timeout=60, stderr=subprocess.DEVNULL)
    (told,) = worktree.commits()
    assert told.endswith(" caf\\xe9")
    assert encode_checked(TaskAcked(data={"commits": [told]}))


def test_a_pull_request_is_opened_once_for_a_branch_that_is_pushed(
    worktree: Worktree, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = Path(worktree.make(TASK, "Mend it").path), tmp_path / "pull-requests.json"

    def opened(draft: bool = False) -> str:
        return worktree.open_pull_request(BRANCH, "Mend it", "It is bounded.", draft)

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PulseError, match="there is no gh, the GitHub CLI, on the daemon's PATH"):
        opened()
    monkeypatch.setenv("PATH", f"{fake_gh.install(tmp_path / 'bin')}:{os.defpath}")
    monkeypatch.setenv("FAKE_GH", str(state))
    with pytest.raises(
        PulseError, match=f"the branch {BRANCH} is not pushed; push it first: git -C {path} push"
    ):
        opened()
    git(path, "push", "-q", "origin", "HEAD")
    git(path, "commit", "-q", "--allow-empty", "-m", "mend it")
    with pytest.raises(PulseError, match=f"1 commit of {BRANCH} is not pushed"):
        opened()
    git(path, "push", "-q", "origin", "HEAD")
    assert [opened(draft=True) for _ in range(2)] == ["https://github.com/ada/app/pull/1"] * 2
    (made,) = json.loads(state.read_text())
    assert {name: made[name] for name in ("baseRefName", "title", "body", "isDraft")} == {
        "baseRefName": "main", "title": "Mend it", "body": "It is bounded.", "isDraft": True,
    }  # fmt: skip
    state.write_text(json.dumps([{**made, "state": "CLOSED"}]))
    assert opened() == "https://github.com/ada/app/pull/2"
    state.write_text("nonsense")
    with pytest.raises(PulseError, match="gh pr failed in"):
        opened()


def test_the_base_may_be_a_branch_of_the_remote_alone(repository: Path, tmp_path: Path) -> None:
    git(repository, "push", "-q", "origin", "main:next")
    git(repository, "fetch", "-q")
    made = Worktree(Project(repository=str(repository), base="next"), tmp_path / "work" / TASK)
    assert made.make(TASK, "Mend it").branch == BRANCH


def test_what_is_wrong_is_said(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "work" / TASK
    with pytest.raises(PulseError, match="has no branch 'none'; its branches are: main"):
        Worktree(Project(repository=str(repository), base="none"), path).make(TASK, "x")
    with pytest.raises(PulseError, match="git worktree failed in"):
        Worktree(Project(repository=str(tmp_path)), path).make(TASK, "x")
    path.mkdir(parents=True)
    with pytest.raises(PulseError, match="is in the way of the task's worktree"):
        Worktree(Project(repository=str(repository)), path).make(TASK, "x")
    assert Worktree(Project(repository=str(repository)), path).remove().startswith("it is no worktree of")


@pytest.mark.parametrize(("blocks", "inodes"), [(0, 5), (5_000, 0)])
def test_of_a_full_disk_it_is_said_also_where_git_does_not_say_it(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch, blocks: int, inodes: int
) -> None:
    full = SimpleNamespace(f_blocks=9_000, f_bavail=blocks, f_frsize=4096, f_files=9, f_favail=inodes)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(PulseError, match=r"No space left on device: .*not-there"):
        worktree._git("not-there")


def test_hooks_of_the_repository_are_not_run(worktree: Worktree, repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    worktree.make(TASK, "Mend it")
    assert not (tmp_path / "ran").exists()


def test_what_its_filters_print_without_end_is_not_kept(worktree: Worktree, tmp_path: Path) -> None:
    worktree.make(TASK, "Mend it!")
    at = tmp_path / "work" / TASK
    git(at, "config", "filter.loud.clean", "exec yes >&2")
    (at / ".gitattributes").write_text("README filter=loud\n")
    (at / "README").write_text("hullo\n")
    with pytest.raises(PulseError, match=r"git printed more than 16\.0 MiB, and was ended"):
        worktree.remove()


async def test_a_plain_folder_is_removed_only_if_it_is_empty(tmp_path: Path) -> None:
    files, folder = DiskRunFiles(tmp_path, Settings), tmp_path / TASK
    folder.mkdir()
    (folder / "work.txt").write_text("work")
    assert await files.remove_workspace(str(folder), Project()) == "there are files in it"
    (folder / "work.txt").unlink()
    for _ in range(2):
        assert await files.remove_workspace(str(folder), Project()) == ""
    assert not folder.exists()


async def test_a_git_that_waits_for_ever_is_ended_with_what_it_has_begun(
    worktree: Worktree, repository: Path, tmp_path: Path
) -> None:
    os.mkfifo(begun := tmp_path / "begun")
    git(repository, "config", "filter.slow.smudge", f"exec sh -c 'echo $$ > {begun}; exec sleep 1000'")
    (repository / ".gitattributes").write_text("* filter=slow\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-q", "-m", "slow")
    making = asyncio.create_task(asyncio.to_thread(worktree.make, TASK, "x"))
    pid = int(await asyncio.to_thread(begun.read_text))
    handle = os.pidfd_open(pid)
    worktree.close()
    with pytest.raises(PulseError, match="git worktree failed"):
        await making
    assert await asyncio.to_thread(select.select, [handle], [], [], 60.0) == ([handle], [], [])
    os.close(handle)
    with pytest.raises(PulseError, match="it was called off"):
        worktree.make(TASK, "x")
