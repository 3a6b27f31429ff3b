"""A home is found, and made for its owner alone."""

import errno
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home, NotUsable, expand_path


def test_the_option_goes_before_the_environment_and_that_before_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    monkeypatch.setenv("UPULSE_HOME", "/from/environment")
    monkeypatch.chdir(tmp_path)
    assert Home.resolve("here").path == tmp_path / "here"
    assert Home.resolve("~/x").path == Path("/users/me/x")
    assert str(Home.resolve("//var/pulse").path) == "/var/pulse"
    assert Home.resolve().path == Path("/from/environment")
    monkeypatch.setenv("UPULSE_HOME", "")
    assert Home.resolve().path == Path("/users/me/.upulse")
    with pytest.raises(NotUsable, match="--home is empty"):
        Home.resolve("")


def test_a_setting_from_the_home_of_the_user_on_becomes_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    assert expand_path("~/.cache/agent") == Path("/users/me/.cache/agent")
    assert expand_path("~//etc") == Path("/users/me/etc")
    assert expand_path("/var/log/*.log") == Path("/var/log/*.log")
    for slashes in ("//", "///", "////"):
        assert str(expand_path(f"{slashes}srv")) == "/srv"
    for nowhere in ("", "relative"):
        monkeypatch.setenv("HOME", nowhere)
        assert expand_path("~/x") == Path(pwd.getpwuid(os.getuid()).pw_dir, "x")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user that nobody knows")
def test_a_user_without_a_home_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    child = os.fork()
    if child == 0:
        os.setresuid(*3 * (54_321,))
        try:
            expand_path("~/x")
        except NotUsable as error:
            os._exit(7 if "give an absolute path" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_relative_home_in_a_deleted_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(NotUsable, match="give an absolute path"):
        Home.resolve("here")


def test_the_home_of_another_user_is_said_to_be_that(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.path.chmod(0)
    child = os.fork()
    if child == 0:
        os.setresuid(*3 * (os.getuid() or 65_534,))
        try:
            home.exists()
        except NotUsable as error:
            os._exit(7 if "is not for this user" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    home.path.chmod(0o700)


def test_a_home_of_which_nothing_can_be_looked_at_is_said_to_be_guarded_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(path: Path) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))  # as of an xfs that has shut down

    monkeypatch.setattr(Path, "is_file", dead)
    with pytest.raises(
        NotUsable, match=r"\(Input/output error\).* guards on from memory, and no command reaches it"
    ):
        Home(tmp_path / "home").exists()


def test_a_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    home.create()
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.run.stat().st_mode & 0o777 == 0o700
    assert not home.exists()
    home.config.touch()
    assert home.exists()


def test_an_empty_directory_becomes_a_home_and_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    Home(tmp_path / "home").create()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_making_a_home_again_keeps_what_is_in_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.config.write_text("# mine")
    (home.path / "notes").touch()
    home.create()
    assert home.config.read_text() == "# mine"


def test_a_file_or_somebody_elses_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotUsable, match="is a file"):
        Home(tmp_path / "file").create()
    with pytest.raises(NotUsable, match="is a file"):
        Home(tmp_path / "file" / "below").create()
    (tmp_path / "project").mkdir(mode=0o755)
    (tmp_path / "project" / "config.toml").touch()
    (tmp_path / "project" / "main.py").touch()
    with pytest.raises(NotUsable, match=r"not empty \(there is 'main.py'\)"):
        Home(tmp_path / "project").create()
    assert sorted(path.name for path in (tmp_path / "project").iterdir()) == ["config.toml", "main.py"]
    assert (tmp_path / "project").stat().st_mode & 0o777 == 0o755


def test_the_command_line_can_import_it_without_pydantic_or_asyncio() -> None:
    code = (
        "import sys, pulse_adapters.config.home, pulse_adapters.ipc.client, pulse_adapters.ipc.lock;"
        "print(*{'pydantic', 'asyncio', 'typer', 'rich'} & set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        == "\n"
    )
