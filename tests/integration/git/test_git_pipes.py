"""A pipe in the place of one of git's files is refused at once: whoever opened it would wait for its other end."""

import os
from pathlib import Path

import pytest

from pulse_adapters.git.errors import GitFailed
from pulse_adapters.git.git_files import read_main, tree_of_commit
from pulse_adapters.git.settings_folder import settings_folder
from tests.integration.git.git_scene import made

pytestmark = pytest.mark.timeout(120)


NAMES = [
    "config",
    "packed-refs",
    "refs/heads/main",
    "info/grafts",
    "index",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
    "objects/pack/multi-pack-index",
    f"objects/aa/{'a' * 38}",
    "logs/HEAD",
    "logs/refs/heads/staging",
    "worktrees/staging/logs/HEAD",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_that_git_would_read_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(GitFailed, match=f"{name} is no plain file; remove it"):
        settings_folder(tmp_path)


def test_a_pipe_in_a_folder_that_a_link_leads_to_is_refused_and_other_links_are_let_be(
    tmp_path: Path,
) -> None:
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    repository.mkdir()
    elsewhere.mkdir()
    (repository / "hooks").symlink_to(elsewhere)
    (repository / "dangling").symlink_to("nothing")
    os.mkfifo(elsewhere / "pipe")
    assert settings_folder(repository).is_dir()
    (repository / "objects").symlink_to(elsewhere)
    with pytest.raises(GitFailed, match="objects/pipe is no plain file; remove it"):
        settings_folder(repository)


@pytest.mark.parametrize(
    "name", ["info/alternates", "pack/multi-pack-index", "info/commit-graph", f"aa/{'a' * 38}"]
)
@pytest.mark.parametrize("line", ["{0}", "../../b", '"{0}"'])
def test_a_pipe_where_the_objects_of_another_repository_are_used_is_refused(
    tmp_path: Path, name: str, line: str
) -> None:
    repository, *others = (tmp_path / name for name in "abc")
    for at, said in (
        (repository / "objects", line.format(others[0])),
        (others[0], f"# c\n/none\n{others[1]}\n"),
    ):
        (at / "info").mkdir(parents=True)
        (at / "info" / "alternates").write_text(said)
    (others[0] / "unread").mkdir()
    os.mkfifo(others[0] / "unread" / "pipe")
    assert settings_folder(repository).is_dir()
    (others[1] / name).parent.mkdir(parents=True)
    os.mkfifo(others[1] / name)
    with pytest.raises(GitFailed, match=f"c/{name} is no plain file; remove it"):
        settings_folder(repository)


def test_a_pipe_among_very_many_objects_is_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "objects" / name for name in ("00", "01")]
    (tmp_path / "description").touch()
    for folder in folders:
        folder.mkdir(parents=True)
        for name in range(10_000):
            os.link(tmp_path / "description", f"{folder}/{name:038x}")
    assert settings_folder(tmp_path).is_dir()
    for folder in folders:
        os.mkfifo(pipe := folder / ("f" * 38))
        with pytest.raises(GitFailed, match=f"{pipe} is no plain file; remove it"):
            settings_folder(tmp_path)
        pipe.unlink()


def test_a_folder_is_looked_at_again_when_it_or_what_a_link_in_it_leads_to_has_changed(
    tmp_path: Path,
) -> None:
    objects = tmp_path / "objects"
    (objects / "pack").mkdir(parents=True)
    (objects / "info").mkdir()
    (objects / "info" / "alternates").symlink_to(outside := tmp_path.with_name(f"{tmp_path.name}-outside"))
    for folder in (objects / "pack", objects / "info", objects):
        os.utime(folder, (1_000, 1_000))
    assert settings_folder(tmp_path).is_dir()
    os.mkfifo(outside)
    with pytest.raises(GitFailed, match="info/alternates is no plain file"):
        settings_folder(tmp_path)
    outside.unlink()
    assert settings_folder(tmp_path).is_dir()
    os.mkfifo(objects / "pack" / "multi-pack-index")
    with pytest.raises(GitFailed, match="multi-pack-index is no plain file"):
        settings_folder(tmp_path)


@pytest.mark.parametrize("name", ["index", "ORIG_HEAD", "commondir"])
def test_a_pipe_that_git_would_read_for_staging_is_refused(tmp_path: Path, name: str) -> None:
    repository = made(tmp_path)
    place = repository.home / "engine/.git/worktrees/staging" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(GitFailed, match=f"staging/{name} is no plain file; remove it"):
        repository.mend()


@pytest.mark.parametrize("name", ["refs/heads/main", "packed-refs"])
def test_a_pipe_in_the_place_of_main_names_no_commit(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / "engine" / ".git" / name
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    assert read_main(tmp_path) == ""


def test_a_pipe_in_the_place_of_a_commit_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "engine/.git/objects/aa"
    folder.mkdir(parents=True)
    os.mkfifo(folder / ("a" * 38))
    assert tree_of_commit(tmp_path, "a" * 40) is None
