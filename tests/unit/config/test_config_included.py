"""Settings in several files: what `conf.d/*.toml` add to `config.toml`."""

import os
import pwd
from pathlib import Path

import pytest

from pulse_adapters.config.file import load, load_to_start
from pulse_adapters.config.home import Home, refuse_strangers
from pulse_core.model.errors import PulseError, SettingsRefused
from tests.engine_user import ROOT_ALONE


def process(name: str, more: str = "") -> str:
    return f'[[process]]\nname = "{name}"\nstart = ["sleep", "1"]\n{more}'


def written(home: Path, config: str, **parts: str) -> Path:
    (home / "conf.d").mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    for name, text in parts.items():
        (home / "conf.d" / f"{name}.toml").write_text(text)
    return home / "config.toml"


def refused(path: Path) -> list[str]:
    """The faults, with places relative to the home."""
    with pytest.raises(SettingsRefused) as caught:
        load(path)
    return [fault.replace(f"{path.parent}/", "") for fault in caught.value.faults]


def test_tables_of_all_files_are_settings_in_the_order_of_their_names(tmp_path: Path) -> None:
    config = "[budget]\nactions_per_minute = 7\n# no line break at the end"
    more = process("c", "[process.restart]\nmax = 2\n") + '[[log]]\npath = "/var/log/x"\nkeywords = ["x"]\n'
    path = written(tmp_path, config, b=more, a=process("a") + process("b"))
    (tmp_path / "conf.d" / "notes.txt").write_text("no settings")
    (tmp_path / "conf.d" / ".a.toml").write_text("no settings either")
    settings = load(path)
    assert [one.name for one in settings.process] == ["a", "b", "c"]
    assert [one.restart.max for one in settings.process] == [5, 5, 2]
    assert (settings.budget.actions_per_minute, settings.log[0].path) == (7, "/var/log/x")
    assert load_to_start(path) == (settings, ())


def test_a_fault_names_its_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"), b=process("b"), c="\n" + process("c", "nise = 3\n"))
    (fault,) = refused(path)
    assert fault.startswith("conf.d/c.toml:5: process.c.nise: ")
    path.write_text("[budget]\nactions = 1\n")
    first, second = refused(path)
    assert first.startswith("config.toml:2: budget.actions: ")
    assert second.startswith("conf.d/c.toml:5: ")


def test_no_toml_is_told_with_its_own_line(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"), b="[[process]]\nname =\n")
    (fault,) = refused(path)
    assert fault.startswith("conf.d/b.toml:2: no valid TOML")
    path = written(tmp_path, 'process = [{ name = "a", start = ["a"] }]\n', b=process("b"))
    (fault,) = refused(path)
    assert fault.startswith("conf.d/b.toml:1: no valid TOML")


def test_one_name_twice_tells_both_places(tmp_path: Path) -> None:
    path = written(tmp_path, "\n" + process("a"), b=process("b"), c=process("c") + process("a"))
    (fault,) = refused(path)
    assert fault.startswith("conf.d/c.toml:5: ")
    assert fault.endswith("; the first one is at config.toml:3")


def test_what_is_no_list_of_tables_belongs_into_the_main_file(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"), b="\n[budget]\nactions_per_minute = 1\n")
    assert refused(path) == [
        "conf.d/b.toml:2: budget: here only tables under double brackets may be, as [[process]]; put this into config.toml"
    ]
    path = written(tmp_path, process("a"), b="[process.restart]\nmax = 1\n")
    assert refused(path)[0].startswith("conf.d/b.toml:1: process: here only tables")


def test_number_and_size_are_bounded(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"))
    for number in range(65):
        (tmp_path / "conf.d" / f"{number}.toml").write_text("# nothing\n")
    assert refused(path) == ["conf.d:1: there are 65 files; at most 64 are read"]
    (tmp_path / "conf.d" / "64.toml").unlink()
    assert len(load(path).process) == 1
    for number in range(2):
        (tmp_path / "conf.d" / f"{number}.toml").write_text("# " + "x" * 140_000)
    (fault,) = refused(path)
    assert "with it the settings have more than 262144 characters" in fault


def test_a_pipe_among_them_is_refused_and_a_folder_that_is_none_too(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"))
    os.mkfifo(tmp_path / "conf.d" / "b.toml")
    assert refused(path) == ["conf.d/b.toml:1: this is no regular file; the settings must be a file"]
    (tmp_path / "conf.d" / "b.toml").unlink()
    (tmp_path / "conf.d").rmdir()
    (tmp_path / "conf.d").write_text("")
    assert refused(path) == ["conf.d:1: can't be read: Not a directory"]


@ROOT_ALONE
@pytest.mark.parametrize("whose", ["conf.d", "conf.d/b.toml"])
def test_what_belongs_to_somebody_else_is_refused_as_config_toml_is(tmp_path: Path, whose: str) -> None:
    written(tmp_path, process("a"), b=process("b"))
    refuse_strangers(Home(tmp_path))
    os.chown(tmp_path / whose, 4242, -1)
    with pytest.raises(PulseError, match="belongs to user 4242"):
        refuse_strangers(Home(tmp_path))


@ROOT_ALONE
@pytest.mark.parametrize("whose", ["config.toml", "conf.d", "conf.d/b.toml"])
def test_what_another_user_owns_is_refused_whenever_it_is_read(tmp_path: Path, whose: str) -> None:
    path = written(tmp_path, process("a"), b=process("b"))
    os.chown(tmp_path / whose, 65534, 65534)
    assert refused(path) == [
        f"{whose}:1: it belongs to user 65534, whose home this is not; see: upulse doctor"
    ]
    with pytest.raises(SettingsRefused):
        load_to_start(path)
    os.chown(tmp_path, 65534, 65534)
    assert [one.name for one in load(path).process] == ["a", "b"]


@ROOT_ALONE
def test_a_link_is_of_who_made_it(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"))
    (tmp_path / "elsewhere").write_text(process("b"))
    os.chown(tmp_path / "elsewhere", 65534, 65534)
    (tmp_path / "conf.d" / "b.toml").symlink_to(tmp_path / "elsewhere")
    assert [one.name for one in load(path).process] == ["a", "b"]
    os.chown(tmp_path / "conf.d" / "b.toml", 65534, 65534, follow_symlinks=False)
    assert "belongs to user 65534" in refused(path)[0]


@pytest.mark.parametrize("whose", ["config.toml", "conf.d", "conf.d/b.toml"])
def test_what_others_may_write_to_is_refused_whenever_it_is_read(tmp_path: Path, whose: str) -> None:
    path = written(tmp_path, process("a"), b=process("b"))
    for mode in (0o666, 0o777, 0o602):
        (tmp_path / whose).chmod(mode)
        words = f"{whose}:1: every user may write to it (mode {mode:04o}); chmod go-w {whose}"
        assert refused(path) == [words]
        with pytest.raises(SettingsRefused):
            load_to_start(path)
    (tmp_path / whose).chmod(0o775)  # as a umask of 0002 makes it, in the user's own group
    assert [one.name for one in load(path).process] == ["a", "b"]


@ROOT_ALONE
@pytest.mark.parametrize("whose", ["config.toml", "conf.d", "conf.d/b.toml"])
def test_what_a_group_of_others_may_write_to_is_refused(tmp_path: Path, whose: str) -> None:
    path = written(tmp_path, process("a"), b=process("b"))
    nobody = pwd.getpwnam("nobody")
    os.chown(tmp_path / whose, -1, nobody.pw_gid)
    (tmp_path / whose).chmod(0o770)
    words = f"{whose}:1: group {nobody.pw_gid} may write to it (mode 0770); chmod go-w {whose}"
    assert refused(path) == [words]
    (tmp_path / whose).chmod(0o750)
    assert [one.name for one in load(path).process] == ["a", "b"]


def test_a_fault_is_one_line_whatever_the_name_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, process("a"), **{"b\n<0>": "[[process]]\nname ="})
    (fault,) = refused(path)
    assert fault.startswith("conf.d/b \u21b5 <0>.toml:2: no valid TOML")
    written(tmp_path, process("a"), **{"b\n<0>": process("b", "nise = 3\n")})
    (fault,) = refused(path)
    assert fault.startswith("conf.d/b \u21b5 <0>.toml:4: process.b.nise")
