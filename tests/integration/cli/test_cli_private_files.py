"""What Pulse makes is its owner's alone, and a home in which others can write is closed or refused."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import ALLOW, AT_ONCE, CliHome, eventually


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(place: Path) -> list[str]:
    """What others could use, if they came that far: revisions are sealed for all, their owner too."""
    found = [path for path in (place, *place.rglob("*")) if not path.is_symlink()]
    return sorted(
        str(path.relative_to(place))
        for path in found
        if stat.S_IMODE(path.stat().st_mode) & (0o022 if "revisions/" in str(path) else 0o077)
    )


def test_whatever_is_made_is_the_owners_alone_and_what_is_started_has_the_given_umask(
    tmp_path: Path, open_umask: None
) -> None:
    home, told, backup = CliHome(tmp_path / "home"), tmp_path / "told", tmp_path / "backup"
    home.upulse("init")
    script = f"umask > {told}.part; mv {told}.part {told}; exec sleep 86391"
    home.configure(f'[[process]]\nname = "demo"\nstart = ["sh", "-c", "{script}"]\n{AT_ONCE}', ALLOW)
    home.upulse("daemon", "start")
    try:
        home.pid_when_up("demo")
        assert eventually(lambda: told.exists() and told.read_text(), "the process to tell") == "0000\n"
        home.upulse("new", "rule", "a-rule")
        home.upulse("effect", "add", "collect", "--key", "c", "--wait")
        home.upulse("backup", str(backup))
        assert open_to_others(home.path) == []
    finally:
        home.end_everything()
    home.upulse("restore", str(backup))
    home.upulse("pause")
    assert open_to_others(home.path) == []
    assert open_to_others(backup) == []
    assert os.umask(0) == 0


def test_a_home_that_others_can_write_is_closed_and_that_is_said(quiet: CliHome) -> None:
    for mode in (0o777, 0o770, 0o702):
        quiet.path.chmod(mode)
        assert (
            f"had mode {mode:04o}, so others could write there; it has mode 0700 now"
            in quiet.upulse("status").err
        )
        assert stat.S_IMODE(quiet.path.stat().st_mode) == 0o700
        assert "had mode" not in quiet.upulse("status").err


def test_a_daemon_closes_its_home_before_anything_else(tmp_path: Path) -> None:
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.path.chmod(0o777)
    assert "had mode 0777" in home.upulse("daemon", "start").err
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    (parts := home.path / "conf.d").mkdir()
    parts.chmod(0o777)
    words = f"{parts}:1: every user may write to it (mode 0777); chmod go-w {parts}"
    assert words in home.upulse("daemon", "reload", code=1).err
    assert home.status()["daemon"]["state"] == "running"
    home.end_everything()
    assert words in home.upulse("daemon", "start", code=1).err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_another_user_can_have_put_there_is_not_used(quiet: CliHome) -> None:
    quiet.path.chmod(0o777)
    os.chown(quiet.path, 65534, 65534)
    assert "others could write there; have its owner look" in quiet.upulse("status", code=1).err
    assert stat.S_IMODE(quiet.path.stat().st_mode) == 0o777
    os.chown(quiet.path, 0, 0)
    quiet.path.chmod(0o700)
    os.chown(quiet.path / "config.toml", 65534, 65534)
    assert (
        "config.toml:1: it belongs to user 65534, whose home this is not"
        in quiet.upulse("daemon", "start", code=1).err
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_root_closes_no_folder_that_another_user_leads_it_to(quiet: CliHome, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    (theirs / "home").symlink_to(quiet.path)  # it could be /tmp, with an events.db in it
    quiet.path.chmod(0o777)
    said = CliHome(theirs / "home").upulse("status", code=1).err
    assert f"others can change {theirs}" in said
    assert stat.S_IMODE(quiet.path.stat().st_mode) == 0o777
