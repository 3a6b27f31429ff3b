"""What may come next on a command line, as a shell asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import PulseError
from upulse_cli.__main__ import main
from upulse_cli.commands.completion import SHELLS
from upulse_cli.output import say
from upulse_cli.wiring import completion


def names(home: HomeContext, begun: str) -> Iterator[str]:
    say("the log is shorter than is known")  # as of a home whose end is lost
    yield from ("gateway", "worker", f"of-{home.layout.path.name}")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source knows the same names."""
    monkeypatch.setattr(completion, "SOURCES", dict.fromkeys(completion.SOURCES, names))
    monkeypatch.setenv("_UPULSE_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Words":
    return Words(monkeypatch, capsys)


class Words:
    """Asks as the scripts do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, line: str) -> list[str]:
        self.monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        assert main([]) == 0
        out, err = self.capsys.readouterr()
        assert err == ""
        return [one.partition("\t")[0] for one in out.splitlines() if one]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("upulse stat", ["status", "state"]),
        ("upulse process ", ["list", "show", "logs", "stop", "start", "restart"]),
        ("/some/where/upulse process sto", ["stop"]),
        ("upulse --debug process sto", ["stop"]),
        ("upulse --instance blue process sto", ["stop"]),
        ("upulse process stop g", ["gateway"]),
        ("upulse process stop --why 'x y' g", ["gateway"]),
        ("upulse process stop --why g", []),
        ("upulse process stop gateway --f", ["--for"]),
        ("upulse process stop -- g", ["gateway"]),
        ("upulse events --kind w", ["worker"]),
        ("upulse events --kind=w", ["worker"]),
        ("upulse events --nonsense=w", []),
        ("upulse config check /etc/pa", []),
        ("upulse --instance w", ["worker"]),
        ("upulse status --instance w", ["worker"]),
        ("upulse why 'gate", ["gateway"]),
        ("upulse effect cancel g", ["gateway"]),
        ("upulse state g", ["gateway"]),
        ("upulse vitals g", ["gateway"]),
        ("upulse demo g", ["gateway"]),
        ("upulse completion z", ["zsh"]),
    ],
)
def test_what_fits_is_offered(words: Words, line: str, found: list[str]) -> None:
    assert words(line) == found


@pytest.mark.parametrize(
    ("line", "home"),
    [
        ("upulse process stop --home /x/blue o", "of-blue"),
        ("upulse process stop --home=/x/blue o", "of-blue"),
        ("upulse process stop --instance green o", "of-.upulse-green"),
        ("upulse --instance green process stop o", "of-.upulse-green"),
    ],
)
def test_names_are_those_of_the_home_that_the_line_names(words: Words, line: str, home: str) -> None:
    assert words(line) == [home]


@pytest.mark.parametrize("named", ["--home ''", "--instance a/b"])
def test_where_no_home_can_be_meant_there_is_no_complaint(words: Words, named: str) -> None:
    assert words(f"upulse process stop {named} x") == []


def test_what_a_home_cannot_tell_is_not_complained_of(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(home: HomeContext, begun: str) -> Iterator[str]:
        raise PulseError("there is no home")

    monkeypatch.setattr(completion, "SOURCES", {"processes": refusing})
    assert words("upulse process stop ") == []


def test_every_shell_has_its_script() -> None:
    scripts = {path.name for path in (Path(__file__).parents[3] / "upulse_cli/shells").glob("upulse.*")}
    assert scripts == {f"upulse.{shell}" for shell in SHELLS}
