"""`Repository.create`: an engine and its staging, whatever was there before, and however often it is begun."""

import os
import shutil
from pathlib import Path

import pytest

from pulse_adapters.git.create_repository import create_repository
from pulse_adapters.git.errors import CannotMend, GitFailed, NoRepository
from pulse_adapters.git.git_command import author_environment, login_author
from pulse_adapters.git.repository import Repository
from pulse_core.model.errors import PulseError
from tests.integration.git.git_scene import (
    ADA,
    FILES,
    Killed,
    MortalGit,
    files,
    git,
    is_clean,
    made,
    newest,
    template,
    write,
)
from tests.long_form import sample, sampled


def is_whole(home: Path) -> bool:
    """Whether both folders are there with the template's files, each on its branch, with nothing to be committed."""
    for name, branch in (("engine", "main"), ("staging", "staging")):
        assert files(home / name) == FILES
        assert git(home / name, "symbolic-ref", "--short", "HEAD") == branch
        assert is_clean(home / name)
    return True


def test_it_makes_main_and_a_worktree_for_staging(tmp_path: Path) -> None:
    repository = made(tmp_path)
    assert is_whole(repository.home)
    assert (
        git(repository.home / "engine", "log", "--format=%an <%ae>|%cn <%ce>")
        == f"{ADA}|Pulse <pulse@localhost>"
    )
    assert list(repository.staging().advice()) == []


def test_made_again_it_leaves_everything_as_it_is(tmp_path: Path) -> None:
    repository = made(tmp_path)
    write(repository.home / "staging" / "rules" / "mine.py", "MINE = 1\n")
    write(repository.home / "engine" / "engine.py", "RULES = [1]\n")
    before = repository.head()
    again, done = Repository.create(repository.home, tmp_path / "template", ADA)
    assert (done, again.head()) == ((), before)
    (tmp_path / "fresh").mkdir()
    fresh = Repository.create(tmp_path / "fresh", tmp_path / "template", ADA)[1]
    assert fresh == (f"{tmp_path / 'fresh/engine'} and {tmp_path / 'fresh/staging'} are made",)
    assert repository.staging().dirty == ("rules/mine.py",)
    assert (repository.home / "engine" / "engine.py").read_text() == "RULES = [1]\n"


@pytest.mark.parametrize("after", sampled([False, True], 2))
def test_killed_at_any_call_of_git_the_next_one_finishes_it(tmp_path: Path, after: bool) -> None:
    source, each = template(tmp_path / "template"), sample(8, 1)
    calls = sample(2 * after - each + 1, 0)
    while True:
        calls += each
        home = tmp_path / f"home-{calls}"
        home.mkdir()
        try:
            list(create_repository(MortalGit(home, calls, after=after), source, ADA))
            break
        except Killed:
            Repository.create(home, source, ADA)
            assert is_whole(home)
    assert calls > 12


def _no_files_yet(home: Path) -> None:
    git(home / "engine", "update-ref", "-d", "refs/pulse/followed")
    (home / "engine" / ".git" / "index").unlink()
    shutil.rmtree(home / "engine" / "rules")


def _worktree_only_announced(home: Path) -> None:
    shutil.rmtree(home / "staging")
    (home / "engine" / ".git" / "worktrees" / "staging" / "HEAD").unlink()
    (home / "engine" / ".git" / "worktrees" / "staging" / "gitdir").unlink()


def _worktree_without_files(home: Path) -> None:
    admin = home / "engine" / ".git" / "worktrees" / "staging"
    (admin / "index").unlink()
    shutil.rmtree(home / "staging" / "rules")
    (home / "staging" / "engine.py").unlink()


def _init_half_done(home: Path) -> None:
    shutil.rmtree(home / "staging")
    for path in (home / "engine").iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)
    (home / "engine" / ".git" / "objects").mkdir(parents=True)


@pytest.mark.parametrize(
    "halfway", [_no_files_yet, _worktree_only_announced, _worktree_without_files, _init_half_done]
)
def test_a_git_killed_in_the_middle_is_made_good(tmp_path: Path, halfway: object) -> None:
    home = made(tmp_path).home
    assert callable(halfway)
    halfway(home)
    Repository.create(home, tmp_path / "template", ADA)
    assert is_whole(home)


@pytest.mark.parametrize("raw", [b"", b"x" * 300, b"DIRC\0\0\0\x09" + bytes(300)])
@pytest.mark.parametrize("folder", ["engine", "staging"])
def test_a_damaged_index_is_said_with_what_helps_and_made_anew(
    tmp_path: Path, folder: str, raw: bytes
) -> None:
    repository = made(tmp_path)
    home = repository.home
    write(home / folder / "engine.py", "RULES = [1]\n")
    Path(git(home / folder, "rev-parse", "--absolute-git-dir"), "index").write_bytes(raw)
    if folder == "staging":
        with pytest.raises(GitFailed, match=r"git's index.* is damaged .*upulse init"):
            repository.commit_staging("a change", ADA)
    Repository.create(home, tmp_path / "template", ADA)
    assert git(home / folder, "status", "--porcelain").split() == ["M", "engine.py"]
    assert (home / folder / "engine.py").read_text() == "RULES = [1]\n"


def test_files_that_are_there_and_are_no_repository_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "home" / "engine" / "mine.txt", "mine")
    with pytest.raises(CannotMend, match="holds files and is no git repository; move it away"):
        Repository.create(tmp_path / "home", template(tmp_path / "template"), ADA)
    assert files(tmp_path / "home" / "engine") == {"mine.txt": "mine"}


def test_a_folder_in_stagings_place_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "home" / "staging" / "mine.txt", "mine")
    with pytest.raises(CannotMend, match="is no worktree of the engine; move it away"):
        Repository.create(tmp_path / "home", template(tmp_path / "template"), ADA)
    assert files(tmp_path / "home" / "staging") == {"mine.txt": "mine"}


def test_a_repository_without_main_is_not_given_another(tmp_path: Path) -> None:
    home = made(tmp_path).home
    git(home / "engine", "branch", "-m", "main", "trunk")
    with pytest.raises(CannotMend, match="has no branch main, but staging, trunk"):
        Repository.create(home, tmp_path / "template", ADA)


def test_a_home_within_another_repository_has_one_of_its_own(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "around it")
    around = git(tmp_path, "for-each-ref")
    home = made(tmp_path).home
    assert is_whole(home)
    _init_half_done(home)
    Repository.create(home, tmp_path / "template", ADA)
    assert is_whole(home)
    assert git(tmp_path, "for-each-ref") == around


def test_without_an_engine_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NoRepository, match="upulse init"):
        Repository(tmp_path)


def test_no_name_no_configuration_and_another_gits_variables_are_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / ".gitconfig", f"[core]\nexcludesFile = {elsewhere}/ignored\n")
    write(elsewhere / "ignored", "*.py\n")
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(elsewhere))
    monkeypatch.setenv("GIT_DIR", str(elsewhere / "nothing"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / "index"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody else")
    repository = made(tmp_path)
    assert is_whole(repository.home)
    assert newest(repository, "%an <%ae>") == ADA
    assert set(files(elsewhere)) == {".gitconfig", "ignored"}
    assert not (repository.home / "engine" / ".git" / "hooks").exists()


def test_names_beyond_ascii_come_through(tmp_path: Path) -> None:
    source = template(tmp_path / "template", {**FILES, "rules/größe ☃.py": "G = 1\n"})
    home = tmp_path / "häuschen"
    home.mkdir()
    repository, _ = Repository.create(home, source, "Zoë Ångström <zoë@example.org>")
    write(home / "staging" / "rules" / "größe ☃.py", "G = 2\n")
    assert repository.staging().dirty == ("rules/größe ☃.py",)
    assert repository.commit_staging("größer", "Zoë Ångström <zoë@example.org>")
    assert newest(repository, "%an <%ae>") == "Zoë Ångström <zoë@example.org>"


@pytest.mark.parametrize(
    "author", ["Ada", "<ada@x>", "Ada <a da>", "Ada\n<ada@x>", "Ada <ada@x> and", "... <a@x>"]
)
def test_an_author_is_a_name_and_an_address(author: str) -> None:
    with pytest.raises(PulseError, match="is no author; write it as"):
        author_environment(author)


def test_whoever_runs_it_is_an_author() -> None:
    assert author_environment(login_author())["GIT_AUTHOR_NAME"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_an_engine_of_another_user_is_left_to_its_owner(tmp_path: Path) -> None:
    repository = made(tmp_path)
    os.chown(repository.home / "engine", 4242, 4242)
    os.chown(repository.home / "engine" / ".git", 4242, 4242)
    with pytest.raises(PulseError, match="belongs to another user"):
        repository.head()


@pytest.mark.parametrize("name", ["the commit", "packed-refs", "refs/heads/main", "HEAD"])
def test_a_damaged_repository_is_called_that_and_not_founded_anew(tmp_path: Path, name: str) -> None:
    repository = made(tmp_path)
    folder = repository.home / "engine" / ".git"
    if name == "the commit":
        oid = git(repository.home / "engine", "rev-parse", "main")
        name = f"objects/{oid[:2]}/{oid[2:]}"
        (folder / name).unlink()
    (folder / name).write_text("garbage\n")
    with pytest.raises(GitFailed, match=r"\.git is damaged \(.*put engine/ back from a backup"):
        repository.head()
    with pytest.raises(GitFailed, match=r"\.git is damaged \("):
        Repository.create(repository.home, tmp_path / "template", ADA)
