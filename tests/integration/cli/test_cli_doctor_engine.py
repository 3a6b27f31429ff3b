"""What the doctor says of the engine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.engine_user.account import READABLE
from pulse_adapters.engine_user.account_setup import AccountChecks
from pulse_adapters.git.checks import RepositoryChecks
from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from pulse_core.app.doctor import FAIL, OK, WARN, Finding

ADA = "Ada <ada@example.org>"


def made(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    Repository.create(home.path, template_folder(), ADA)
    return home


def engine(home: Home) -> list[Finding]:
    return list(RepositoryChecks(home.path, lambda: "").engine())


def engine_user(home: Home) -> list[Finding]:
    return list(AccountChecks(home.path, lambda: None, lambda: False).engine_user())


def test_a_sound_engine_is_well(tmp_path: Path) -> None:
    (found,) = engine(made(tmp_path))
    assert (found.level, found.words[:8]) == (OK, "main is ")


def test_settings_of_the_repository_that_git_cannot_read_are_told(tmp_path: Path) -> None:
    home = made(tmp_path)
    (home.path / "engine" / ".git" / "config").write_text("[coreY\n")
    (found,) = engine(home)
    assert found.level == FAIL
    assert "config, which only your own calls of git need: fatal: bad config line 1" in found.words


def test_an_object_that_git_cannot_read_is_told_without_a_daemon(tmp_path: Path) -> None:
    home = made(tmp_path)
    objects = home.path / "engine" / ".git" / "objects"
    largest = max(objects.glob("??/*"), key=lambda path: path.stat().st_size)
    largest.chmod(0o600)
    os.truncate(largest, 20)
    (found,) = engine(home)
    assert found.level == FAIL
    assert "git fsck: " in found.words


def test_a_home_without_one_is_well_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    (found,) = engine(home)
    assert found.level == OK
    assert "upulse init" in found.words


def test_a_repository_without_main_says_what_helps(tmp_path: Path) -> None:
    home = made(tmp_path)
    subprocess.run(
        ["git", "-C", str(home.path / "engine"), "update-ref", "-d", "refs/heads/main"],
        check=True,
        timeout=60,
    )
    (found,) = engine(home)
    assert found.level == WARN
    assert "upulse init" in found.remedy


def test_work_in_staging_is_told(tmp_path: Path) -> None:
    home = made(tmp_path)
    (home.path / "staging" / "rules" / "new.py").write_text("A = 1\n")
    found = list(engine(home))
    assert any(one.name == "staging" and "rules/new.py" in one.words for one in found)


@pytest.mark.parametrize("what", ["leads elsewhere", "another repository", "no words"])
def test_a_staging_that_leads_elsewhere_has_failed(tmp_path: Path, what: str) -> None:
    home = made(tmp_path)
    link = home.path / "staging" / ".git"
    link.unlink()
    if what == "another repository":
        link.mkdir()
    else:
        link.write_text(f"gitdir: {tmp_path}\n" if what == "leads elsewhere" else "\0")
    (found,) = (one for one in engine(home) if one.name == "staging")
    assert found.level == FAIL
    assert f"{link} leads to no worktree of" in found.words
    assert "upulse init" in found.remedy


def test_a_staging_of_where_the_home_was_is_linked_again_by_a_repair(tmp_path: Path) -> None:
    there = made(tmp_path)
    copy, moved = Home(tmp_path / "copy"), Home(tmp_path / "moved")
    shutil.copytree(there.path, copy.path, symlinks=True)
    for home in (copy, moved):
        if home is moved:
            there.path.rename(moved.path)
        (found,) = (one for one in engine(home) if one.name == "staging")
        assert (found.level, found.words) == (
            FAIL,
            f"{home.path}/staging belongs to {there.path}, where this home was, or of which it is a copy",
        )
        assert found.repair
        assert found.repair() == f"{home.path}/staging is linked to {home.path}/engine again"
        assert {one.level for one in engine(home)} == {OK}


def test_a_home_without_an_engine_needs_no_user(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    assert list(engine_user(home)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a home away")
def test_a_daemon_that_is_not_root_has_no_user_to_give_and_that_is_no_fault(tmp_path: Path) -> None:
    home = made(tmp_path)
    home.config.write_text("# the defaults\n")
    os.chown(home.path, 65534, -1)
    (found,) = engine_user(home)
    assert (found.level, found.repair) == (OK, None)
    assert "isolation: partial (no user): the daemon runs as nobody, and only root can" in found.words
    assert "sudo upulse daemon install --home /var/lib/pulse" in found.remedy


@pytest.mark.skipif(os.geteuid() != 0, reason="only the home of root's daemon can have one")
def test_a_user_that_is_missing_or_can_read_too_little_is_told_with_what_helps(tmp_path: Path) -> None:
    home = made(tmp_path)
    home.config.write_text("# the defaults\n")
    (found,) = engine_user(home)
    if found.level == WARN:
        assert found.words.startswith("rules of your own run as root: ")
        assert found.remedy in ("upulse daemon install", READABLE)
        assert (found.repair is not None) == (found.remedy == "upulse daemon install")
    else:
        assert found.words == "rules of your own run as pulse-engine"
