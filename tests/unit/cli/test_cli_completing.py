"""What may come next on a command line, whatever is on it already."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from pulse_adapters.config.home import Home
from pulse_core.model.errors import PulseError
from upulse_cli.app import app
from upulse_cli.candidates import SOURCES
from upulse_cli.commands.completion import SHELLS
from upulse_cli.completing import Candidate, candidates, split

ROOT = get_command(app)


def names(home: Home, begun: str) -> Iterator[Candidate]:
    yield from (Candidate(name, "a process") for name in ("gateway", "worker", f"of-{home.path.name}"))


def refusing(home: Home, begun: str) -> Iterator[Candidate]:
    raise PulseError("there is no home")


KNOWN = {"process stop name": names, "why effect": names, "events kind": names, "instance": names}


def words(line: str, sources: object = KNOWN) -> list[str]:
    return [one.word for one in candidates(ROOT, line, sources)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("upulse stat", ["status", "state"]),
        ("upulse process ", ["list", "stop", "start"]),
        ("upulse process sto", ["stop"]),
        ("/some/where/upulse process sto", ["stop"]),
        ("upulse --debug process sto", ["stop"]),
        ("upulse --instance blue process sto", ["stop"]),
        ("upulse process stop g", ["gateway"]),
        ("upulse process stop --why x g", ["gateway"]),
        ("upulse process stop --why=x g", ["gateway"]),
        ("upulse process stop --why 'x y' g", ["gateway"]),
        ("upulse process stop --why g", []),
        ("upulse process stop gateway --f", ["--for"]),
        ("upulse process stop -- -", []),
        ("upulse process stop -- g", ["gateway"]),
        ("upulse events --kind w", ["worker"]),
        ("upulse events --kind=w", ["--kind=worker"]),
        ("upulse events --nonsense=w", []),
        ("upulse events --kind worker --ki", ["--kind"]),
        ("upulse events --follow --fo", []),
        ("upulse status -", ["--watch", "--json", "--home", "--instance", "--help"]),
        ("upulse status --json ", ["--watch", "--home", "--instance", "--help"]),
        ("upulse restore x --", ["--tail", "--no-tail", "--json", "--home", "--instance", "--help"]),
        ("upulse restore --no-tail x --no", []),
        ("upulse config check /etc/pa", []),
        ("upulse nonsense st", []),
        ("upulse process nonsense ", []),
        ("upulse --instance w", ["worker"]),
        ("upulse status --instance w", ["worker"]),
        ("upulse why 'gate", ["gateway"]),
        ("upulse", []),
    ],
)
def test_what_fits_is_offered(line: str, found: list[str]) -> None:
    assert words(line) == found


def test_without_a_word_all_commands_are_offered_each_with_what_it_does() -> None:
    offered = dict(candidates(ROOT, "upulse ", KNOWN))
    assert offered["why"] == "Explain an effect, from sample to outcome."
    assert {"daemon", "process", "effect", "profile", "completion"} <= offered.keys()


@pytest.mark.parametrize(
    ("line", "home"),
    [
        ("upulse process stop --home /x/blue o", "of-blue"),
        ("upulse process stop --home=/x/blue o", "of-blue"),
        ("upulse process stop --instance green o", "of-.upulse-green"),
        ("upulse --instance green process stop o", "of-.upulse-green"),
    ],
)
def test_names_are_those_of_the_home_that_the_line_names(line: str, home: str) -> None:
    assert words(line) == [home]


@pytest.mark.parametrize("named", ["--home ''", "--instance a/b"])
def test_where_no_home_can_be_meant_nothing_is_offered(named: str) -> None:
    assert words(f"upulse process stop {named} ") == []


def test_what_a_home_cannot_tell_is_not_complained_of() -> None:
    assert words("upulse process stop ", {"process stop name": refusing}) == []


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("upulse process st", (["upulse", "process"], "st")),
        ("upulse process ", (["upulse", "process"], "")),
        ("upulse why 'a b", (["upulse", "why"], "a b")),
        ("upulse why 'a b' ", (["upulse", "why", "a b"], "")),
        ("upulse why a\\ b", (["upulse", "why"], "a b")),
        ("upulse why a\\ ", (["upulse", "why"], "a ")),
        ("upulse why \"it's ", (["upulse", "why"], "it's ")),
        ("upulse why a#b", (["upulse", "why"], "a#b")),
        ("upulse why ''", (["upulse", "why"], "")),
        ("", ([], "")),
    ],
)
def test_a_line_is_split_as_a_shell_would(line: str, parts: tuple[list[str], str]) -> None:
    assert split(line) == parts


def test_every_source_is_of_a_parameter_that_there_is() -> None:
    def parameters(command: object, path: tuple[str, ...]) -> Iterator[str]:
        for param in command.params:  # type: ignore[attr-defined]
            yield from (" ".join((*path, param.name)), param.name)
        for name, one in getattr(command, "commands", {}).items():
            yield from parameters(one, (*path, name))

    assert SOURCES.keys() <= set(parameters(ROOT, ()))


def test_every_shell_has_its_script() -> None:
    scripts = {path.name for path in (Path(__file__).parents[3] / "upulse_cli/shells").glob("upulse.*")}
    assert scripts == {f"upulse.{shell}" for shell in SHELLS}


@pytest.mark.parametrize(
    ("shell", "line", "spelled"),
    [
        ("bash", "upulse why ", r"a\ b:c\$d"),
        ("bash", "upulse why 'a", "a b:c$d"),
        ("zsh", "upulse why ", r"a b\:c$d:what: it is"),
        ("fish", "upulse why ", "a b:c$d\twhat: it is"),
    ],
)
def test_every_shell_gets_words_as_it_wants_them(shell: str, line: str, spelled: str) -> None:
    assert SHELLS[shell](Candidate("a b:c$d", "what: it is"), line) == spelled
