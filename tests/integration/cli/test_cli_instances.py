"""Several instances beside each other, each by its name, on every command."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pulse_adapters.systemd.manager import unit_text
from tests.integration.cli.cli_home import UPULSE, CliHome, Said, sleeper
from upulse_cli.__main__ import main

Run = Callable[..., Said]


@pytest.fixture
def user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """The command line of a user who has no home yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("UPULSE_HOME", "UPULSE_INSTANCE"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, code: int = 0) -> Said:
        capsys.readouterr()
        found = main(words)
        said = capsys.readouterr()
        assert found == code, said.err
        return Said(found, said.out, said.err)

    yield run
    for log in tmp_path.glob(".upulse*/events.db"):
        CliHome(log.parent).end_everything()


def test_a_name_stands_before_or_behind_the_command(user: Run, tmp_path: Path) -> None:
    user("--instance", "a", "init")
    user("init", "--instance", "b")
    user("init")
    for name, words in (
        ("-a", ("--instance", "a", "config", "path")),
        ("-b", ("config", "path", "--instance", "b")),
    ):
        assert user(*words).out == f"{tmp_path}/.upulse{name}/config.toml\n"
    assert user("--instance", "a", "config", "path", "--instance", "a").out.startswith(
        f"{tmp_path}/.upulse-a/"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("status", "--instance", "a", "--home", "/x"), "give one of the two"),
        (("--instance", "a", "status", "--home", "/x"), "give one of the two"),
        (("--instance", "a", "status", "--instance", "b"), "two instances are named"),
        (("status", "--instance", "../x"), "write 1 to 32 letters"),
        (("--instance", "", "status"), "write 1 to 32 letters"),
    ],
)
def test_what_is_not_clear_is_refused(user: Run, words: tuple[str, ...], why: str) -> None:
    assert why in user(*words, code=2).err.replace("\n", " ")


def test_an_instance_that_is_not_there_says_how_to_make_it(user: Run, tmp_path: Path) -> None:
    said = user("status", "--instance", "a", code=1).err
    assert (
        said
        == f"no Pulse home at {tmp_path}/.upulse-a; make one with: upulse init --home {tmp_path}/.upulse-a\n"
    )


def test_two_run_beside_each_other_and_know_nothing_of_each_other(user: Run, tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        user("--instance", name, "init")
        CliHome(tmp_path / f".upulse-{name}").configure(sleeper(f"of-{name}", 86_300 + number))
        subprocess.run([*UPULSE, "--instance", name, "daemon", "start"], check=True, timeout=60)
    found = {one["name"]: one for one in user("instances", "--json").json}
    assert {name: one["state"] for name, one in found.items()} == {"a": "running", "b": "running"}
    assert found["a"]["pid"] != found["b"]["pid"]
    for name in found:
        guarded = user("--instance", name, "process", "list", "--json").json
        assert [process["name"] for process in guarded] == [f"of-{name}"]
    user("--instance", "a", "daemon", "stop")
    found = {one["name"]: one for one in user("instances", "--json").json}
    assert {name: one["state"] for name, one in found.items()} == {"a": "stopped", "b": "running"}


def test_the_list_names_every_home_that_can_be_known(user: Run, tmp_path: Path) -> None:
    assert user("instances").err == "There is no home; make one with: upulse init\n"
    user("init")
    user("--instance", "b", "init")
    user("init", "--home", str(tmp_path / "elsewhere"))
    (tmp_path / ".upulse-not a name").mkdir()
    (tmp_path / ".upulse-empty").mkdir()
    units = tmp_path / "config" / "systemd" / "user"
    units.mkdir(parents=True)
    for home, file in ((".upulse-b", "upulse@b.service"), (".upulse-gone", "upulse@gone.service")):
        text = unit_text(home=tmp_path / home, python="/bin/true", user=True, run_as=None)
        (units / file).write_text(text)
    found = user("instances", "--json", "--home", str(tmp_path / "elsewhere")).json
    assert [(one["name"], Path(one["home"]).name, one["state"]) for one in found] == [
        (None, ".upulse", "stopped"),
        (None, "elsewhere", "stopped"),
        ("b", ".upulse-b", "stopped"),
        ("gone", ".upulse-gone", "missing"),
    ]
    assert [one["unit"] and Path(one["unit"]).name for one in found] == [
        None,
        None,
        "upulse@b.service",
        "upulse@gone.service",
    ]
    table = user("instances").out
    assert "upulse@gone.service" in table
    assert json.dumps(found)
    shutil.rmtree(in_its_place := tmp_path / ".upulse-b" / "run", ignore_errors=True)
    in_its_place.touch()
    states = {one["name"]: one["state"] for one in user("instances", "--json").json}
    in_its_place.unlink()
    assert states == {None: "stopped", "b": "not-readable", "gone": "missing"}


def test_the_environment_names_an_instance(
    user: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user("--instance", "a", "init")
    monkeypatch.setenv("UPULSE_INSTANCE", "a")
    assert user("config", "path").out == f"{tmp_path}/.upulse-a/config.toml\n"
    assert user("config", "path", "--instance", "b").out == f"{tmp_path}/.upulse-b/config.toml\n"
