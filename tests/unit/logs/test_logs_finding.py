"""Which files a pattern means, and what is a rotated file of what."""

import os
from pathlib import Path

import pytest

from pulse_adapters.logs.file_discovery import path_matches, path_of_inode, scan, unrotated_paths
from pulse_adapters.logs.rotated_files import subject_name


def files(pattern: str | Path) -> list[str]:
    return [Path(hit.path).name for hit in scan(str(pattern)).files]


def test_wildcards_are_those_of_a_shell(tmp_path: Path) -> None:
    for name in ("a.log", "b.log", "ab.log", ".hidden.log", "a.txt", "a.log.gz"):
        (tmp_path / name).touch()
    (tmp_path / "directory.log").mkdir()
    assert files(tmp_path / "*.log") == ["a.log", "ab.log", "b.log"]
    assert files(tmp_path / "?.log") == ["a.log", "b.log"]
    assert files(tmp_path / ".*.log") == [".hidden.log"]
    assert files(tmp_path / "a.log") == ["a.log"]
    assert files(tmp_path / "a*") == ["a.log", "a.txt", "ab.log"]
    assert files(tmp_path / "a.log.gz") == ["a.log.gz"]
    assert files(tmp_path / "[ab].log") == ["a.log", "b.log"]


def test_only_regular_files_are_meant(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "nowhere.log").symlink_to(tmp_path / "missing")
    assert files(tmp_path / "*.log") == []


def test_directories_may_have_wildcards_too(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / f"{name}.log").touch()
    (tmp_path / "three").mkdir()
    found = scan(f"{tmp_path}/*/logs/*.log")
    assert [Path(hit.path).name for hit in found.files] == ["one.log", "two.log"]
    expected = [tmp_path, tmp_path / "one/logs", tmp_path / "three", tmp_path / "two/logs"]
    assert sorted(found.watched) == sorted(map(str, expected))
    assert found.watched[str(tmp_path / "three")] == {"logs"}


def test_a_missing_directory_is_waited_for_in_the_nearest_one_that_exists(tmp_path: Path) -> None:
    assert scan(f"{tmp_path}/not/yet/*.log").watched == {str(tmp_path): {"not"}}


@pytest.mark.parametrize(
    ("pattern", "path", "meant"),
    [
        ("/var/log/*.log", "/var/log/a.log", True),
        ("/var/log/*.log", "/var/log/deep/a.log", False),
        ("/var/log/*.log", "/var/log/.a.log", False),
        ("/var/*/a.log", "/var/log/a.log", True),
        ("/a", "/a", True),
    ],
)
def test_a_pattern_means_paths_that_are_not_there(pattern: str, path: str, meant: bool) -> None:
    assert path_matches(pattern, path) is meant


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("app.log.1", "app.log"),
        ("app.log-20260131", "app.log"),
        ("app.log.2026-01-31", "app.log"),
        ("app.log~", "app.log"),
        ("app-20260131.log", "app.log"),
        ("app.2026-01-31.log", "app.log"),
        ("app.1.log", "app.log"),
        ("app_2026-01-31T08.15.log", "app.log"),
    ],
)
def test_rotated_names(name: str, original: str) -> None:
    assert f"/var/log/{original}" in unrotated_paths(f"/var/log/{name}")


@pytest.mark.parametrize(
    "name", ["app.log.1.gz", "app.log.2.zst", "app.log", "app-2.log", "application.log", "xapp.log.1"]
)
def test_names_that_are_not_rotated_files_of_it(name: str) -> None:
    assert "/var/log/app.log" not in unrotated_paths(f"/var/log/{name}")


def test_a_file_is_found_beside_a_path_by_its_number(tmp_path: Path) -> None:
    old = tmp_path / "app.log.7"
    old.touch()
    inode = old.stat().st_ino
    assert path_of_inode(str(tmp_path / "app.log"), inode) == str(old)
    assert path_of_inode(str(tmp_path / "app.log"), inode + 10**9) is None
    assert path_of_inode(str(tmp_path / "gone" / "app.log"), 1) is None


def test_a_source_is_named_so_that_it_fits_into_a_key() -> None:
    assert subject_name("/var/log/a.log") == "/var/log/a.log"
    assert subject_name("/a\nforged\x1b[0m") == "/a?forged?[0m"
    assert subject_name(os.fsdecode(b"/a\xff")) == "/a?"
    assert subject_name("/a\u202egol.b") == "/a?gol.b"  # nothing that can't be shown, as in a notice's topic
    long = subject_name("/" + "x" * 4_000 + "/end.log")
    assert len(long) == 300
    assert long.endswith("/end.log")
