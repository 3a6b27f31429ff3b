"""What the daemon has done for it: by a child, which may fail, hang, or be told to stop."""

import asyncio
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pulse_adapters.git import worker as worker_module
from pulse_adapters.git.errors import MainMoved
from pulse_adapters.git.git_client import GitClient
from pulse_adapters.git.git_files import revision_folder
from pulse_adapters.git.worker import answer
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import Revision
from tests.integration.git.git_scene import ADA, FILES, edited, files, git, laid_out, made, newest, write
from tests.long_form import sampled


async def test_the_daemons_verbs_do_what_the_repositorys_do(tmp_path: Path) -> None:
    repository = made(tmp_path)
    child = GitClient(repository.home)
    edited(repository)
    first, candidate = await child.head(), repository.candidate("promote", ADA)
    laid = await child.ensure(candidate)
    assert files(Path(laid.path)) == {**FILES, "rules/a.py": "A = 1\n"}
    assert await child.ensure(candidate) == Revision(candidate, laid.path)
    assert await child.point_main(candidate, first) == ""
    assert await child.head() == candidate
    back, branch = await child.going_back(first, candidate, "zurück, weil es schadet")
    assert files(Path(back.path)) == FILES
    assert repository.resolve(branch) == candidate
    overwrite(repository.home / "engine" / "rules" / "a.py", b"A = 'by hand'\n")
    stray = await child.point_main(back.commit, candidate)
    assert git(repository.home / "engine", "show", f"{stray}:rules/a.py") == "A = 'by hand'"
    assert await child.head() == repository.head() == back.commit
    assert newest(repository, "%B") == f"Go back to {first[:12]}: zurück, weil es schadet"


async def test_what_keeps_the_files_of_the_engine_from_following_is_told_until_they_do(
    tmp_path: Path,
) -> None:
    repository = made(tmp_path)
    child, engine = GitClient(repository.home), repository.home / "engine"
    edited(repository)
    first, candidate = await child.head(), repository.candidate("promote", ADA)
    os.mkfifo(engine / ".gitattributes")
    for _ in range(2):
        with pytest.raises(PulseError, match=r"do not follow main: .* is a pipe"):
            await child.point_main(candidate, first)
        assert (await child.head(), files(engine)) == (candidate, FILES)
    (engine / ".gitattributes").unlink()
    assert await child.point_main(candidate, first) == ""
    assert files(engine) == {**FILES, "rules/a.py": "A = 1\n"}


def test_a_way_back_needs_no_room_where_temporary_files_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = made(tmp_path)
    edited(repository)
    before, candidate = repository.head(), repository.candidate("promote", ADA)
    repository.point_main(candidate, before)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    back, branch = answer({
        "home": str(repository.home), "verb": "going-back", "words": [before, candidate, "as it was"],
    })  # fmt: skip
    assert (files(Path(back.path)), repository.resolve(branch)) == (FILES, candidate)


def loose(folder: Path, commit: str) -> Path:
    return folder / "objects" / commit[:2] / commit[2:]


def overwrite(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(content)


def flip(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))


SEEN_IN_FILES: Mapping[str, Callable[[Path, str], object]] = {
    "is gone": lambda folder, commit: shutil.rmtree(folder),
    "HEAD can't be read": lambda folder, commit: (folder / "HEAD").unlink(),
    "HEAD names no branch": lambda folder, commit: (folder / "HEAD").write_bytes(bytes(20)),
    "names no branch that is there": lambda folder, commit: flip(folder / "HEAD", b"main", b"mahn"),
    "which commit main is": lambda folder, commit: (folder / "refs/heads/main").unlink(),
    "objects is gone": lambda folder, commit: shutil.rmtree(folder / "objects"),
}
SEEN_BY_GIT: Mapping[str, Callable[[Path, str], object]] = {
    "missing blob": lambda folder, commit: loose(folder, git(folder, "rev-parse", "main:engine.py")).unlink(),
    "corrupt": lambda folder, commit: overwrite(
        loose(folder, git(folder, "rev-parse", "main^{tree}")), b"x" * 40
    ),
    "object missing": lambda folder, commit: loose(folder, commit).unlink(),
    "can't read all branches": lambda folder, commit: (folder / "packed-refs").write_text('" pack-refs\n'),
    "bad config line 1": lambda folder, commit: flip(folder / "config", b"[core]", b"[coreY"),
    "core.bare is 'falsd'": lambda folder, commit: flip(folder / "config", b"false", b"falsd"),
}


@pytest.mark.parametrize("words", sampled([*SEEN_IN_FILES, *SEEN_BY_GIT], 3))
async def test_a_repository_that_is_broken_is_found_out(tmp_path: Path, words: str) -> None:
    repository = made(tmp_path)
    child, commit, folder = GitClient(repository.home), repository.head(), repository.home / "engine" / ".git"
    assert await child.fault(commit, thorough=True) == ""
    {**SEEN_IN_FILES, **SEEN_BY_GIT}[words](folder, commit)
    assert words in await child.fault(commit, thorough=words in SEEN_BY_GIT)


@contextmanager
def no_threads() -> Iterator[None]:
    usual = threading.stack_size(1 << 46)  # more than there are addresses
    try:
        yield
    finally:
        threading.stack_size(usual)


@contextmanager
def no_descriptors() -> Iterator[None]:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(lowest := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)


@pytest.mark.parametrize(
    ("lacking", "words"),
    [(no_threads, "no more threads can be had"), (no_descriptors, "Too many open files")],
)
async def test_a_shortage_says_nothing_about_the_repository(
    tmp_path: Path, lacking: Callable[[], AbstractContextManager[None]], words: str
) -> None:
    repository = made(tmp_path)
    child, main = GitClient(repository.home, files=FileThreads(is_needed=lambda: True)), repository.head()
    with lacking(), pytest.raises(PulseError, match=words):
        await child.fault(main, thorough=False)
    assert await child.fault(main, thorough=False) == ""


async def test_what_was_laid_out_long_ago_and_is_no_commit_of_main_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = made(tmp_path)
    edited(repository)
    tried = repository.candidate("tried", ADA)
    old = laid_out(repository, tried)
    request = {"home": str(repository.home), "verb": "ensure", "words": [repository.head()]}
    worker_module.answer(request)
    assert old.exists(), "somebody may just be trying it"
    monkeypatch.setattr(worker_module, "AGE_S", 0.0)
    worker_module.answer(request)
    assert not old.exists()
    assert revision_folder(repository.home, repository.head()).is_dir()


async def test_its_errors_are_the_repositorys_own(tmp_path: Path) -> None:
    repository = made(tmp_path)
    child = GitClient(repository.home)
    with pytest.raises(PulseError, match="is no whole commit hash"):
        await child.ensure("main")
    edited(repository, "rules/a.py")
    before = repository.head()
    first = repository.candidate("first", ADA)
    repository.point_main(repository.candidate("second", "Bob <bob@b>"), before)
    with pytest.raises(MainMoved, match="somebody else was first"):
        await child.point_main(first, before)


async def test_without_an_engine_that_is_what_it_says(tmp_path: Path) -> None:
    with pytest.raises(PulseError, match="make the engine with: upulse init"):
        await GitClient(tmp_path).head()


def hanging(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that never ends, as on a disk that does not answer; it says who it is in a file."""
    write(
        place / "bin" / "git",
        f"#!/bin/sh\necho $$ > {place}/pid.new; mv {place}/pid.new {place}/pid; exec sleep 600\n",
    )
    (place / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    return place / "pid"


def lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def until(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.01)


async def test_a_git_that_hangs_costs_the_timeout_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = made(tmp_path)
    child, main = GitClient(repository.home, timeout=1.0), repository.head()
    pid = hanging(tmp_path, monkeypatch)
    with pytest.raises(PulseError, match="git fault did not end within 1 s"):
        await child.fault(main, thorough=True)
    assert await child.head() == main, "which commit main is stands in a file"
    await until(lambda: not (pid.exists() and lives(int(pid.read_text()))))


async def test_whoever_is_cancelled_leaves_nobody_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = made(tmp_path)
    main = repository.head()
    pid = hanging(tmp_path, monkeypatch)
    asking = asyncio.ensure_future(GitClient(repository.home).fault(main, thorough=True))
    await until(pid.exists)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: not lives(int(pid.read_text())))


async def test_a_child_that_says_nothing_is_told_of_by_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PulseError, match="git head ended with status 1"):
        await GitClient(tmp_path).head()
