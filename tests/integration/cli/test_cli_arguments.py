"""Whatever a command is given: an answer or a sentence, with an exit code that is documented, and never a traceback."""

import io
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.integration.cli.cli_home import UPULSE, CliHome
from tests.long_form import sample
from upulse_cli import command_line
from upulse_cli.__main__ import main
from upulse_cli.app import app

ODD = (
    "", " ", "-", "--", "\udcff", "a\0b", "9" * 5_000, "99999999999999999999", "18446744073709551616d", "-1", "0", "1e999",
    "nan", "[" * 5_000, '{"a":' * 300, "null", "\u202e\x1b[31m", "../../x", "~", "~nobody/x", "x" * 10_000, "100000d", "1us",
    "0001-01-01", "9999-12-31T23:59:59-23:59", "1s ago", "%s%n", "a=b", "a=" + "[" * 5_000, 'a="\\ud800"', "a=1e999",
    "a=" + "9" * 5_000, "rule", "HEAD", "main", "*", "(", "\n", "restart-process:x", "acked", "--no-such-option", "demo",
)  # fmt: skip
ENDLESS = {"follow", "watch", "wait"}
"""Flags with which a command goes on until it is ended."""

OF_THE_MACHINE = {
    "daemon start", "daemon restart", "daemon install", "daemon uninstall", "demo", "dev", "shadow start"
}  # fmt: skip
"""Commands that start what stays, or change the machine: they get no home."""


def commands(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command by its words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
    for name, one in (inner or {}).items():
        yield from commands(f"{words} {name}".strip(), one)


COMMANDS = dict(commands("", get_command(app)))


def odd_arguments(words: str, home: Path, dice: random.Random) -> list[str]:
    """A call of this command, most of its arguments and some of its options odd."""
    call = words.split()
    for param in COMMANDS[words].params:
        if param.param_type_name == "argument":
            call += [dice.choice(ODD)] if dice.random() < 0.95 else []
        elif param.name in {*ENDLESS, "help", "home"}:
            continue
        elif param.is_flag:
            call += [param.opts[0]] if dice.random() < 0.2 else []
        elif dice.random() < (0.9 if param.required else 0.3):
            call += [param.opts[0], dice.choice(ODD)]
    call += [dice.choice(ODD)] if dice.random() < 0.1 else []
    has_home = any(param.name == "home" for param in COMMANDS[words].params)
    return [*call, "--home", str(home / "none" if words in OF_THE_MACHINE else home)] if has_home else call


@pytest.mark.parametrize("seed", range(sample(1, 10)))
def test_odd_arguments_are_answered_with_a_sentence(
    quiet: CliHome, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place := tmp_path / "here").mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    dice = random.Random(seed)
    for _ in range(sample(1, 200)):
        for words in COMMANDS:
            call = odd_arguments(words, quiet.path, dice)
            with redirect_stdout(out := io.StringIO()), redirect_stderr(out):
                code = main(call)
            said = out.getvalue()
            assert code in (0, 1, 2, 3), (call, said)
            assert code == 0 or said.strip(), call
            assert "Traceback" not in said, call


@pytest.mark.parametrize("word", ["\udcff", "a\0b"])
def test_an_argument_that_is_no_text_is_refused(quiet: CliHome, word: str) -> None:
    assert "is no text in UTF-8" in quiet.upulse("process", "stop", word, code=2).err


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000 + "]" * 5_000,
        "[" * 100_000,
        "[" * 65 + "]" * 65,
        "9" * 5_000,
        "1e999",
        "-Infinity",
        '["\\ud800"]',
    ],
)
def test_json_that_nothing_can_use_is_told_with_its_name(quiet: CliHome, text: str) -> None:
    said = quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", f"argv={text}", code=2)
    assert "'argv' is JSON that nothing can use: " in said.err


def test_a_bug_is_one_sentence_that_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> None:
        raise RecursionError("first line\nsecond line")

    monkeypatch.setattr(command_line, "tree_for", lambda word: broken)
    assert main(["status"]) == 70
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "RecursionError: first line \u21b5 second line" in said
    assert "UPULSE_DEBUG=1" in said
    monkeypatch.setenv("UPULSE_DEBUG", "1")
    assert main(["status"]) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
def test_a_terminal_of_no_size_is_no_bug(
    quiet: CliHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "9" * 5_000)
    assert main(["status", "--home", str(quiet.path)]) != 70
    assert "bug" not in capsys.readouterr().err


def called(home: Path, *words: str | bytes, **environment: str) -> tuple[int, bytes]:
    """The command as a process in this environment: its exit code, and what it said."""
    given = {**os.environ, **environment}
    done = subprocess.run([*UPULSE, *words, "--home", home], env=given, capture_output=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_no_locale_and_no_byte_makes_a_traceback(quiet: CliHome) -> None:
    ascii_alone = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    silence = ("silence", "add", "--for", "1h")
    code, said = called(quiet.path, *silence, b"caf\xe9:*")
    assert (code, b"'caf\\udce9:*' is no text in UTF-8" in said) == (2, True)
    code, said = called(quiet.path, *silence, "caf\u00e9:*", **ascii_alone)
    assert code == 0, said
    code, said = called(quiet.path, "silence", "list", **ascii_alone)
    assert (code, b"caf\\xe9:*" in said) == (0, True)
    without = {name: value for name, value in ascii_alone.items() if name != "PYTHONIOENCODING"}
    code, said = called(quiet.path, "silence", "list", **without)
    assert (code, b"caf\\xe9:*" in said) == (0, True)


@pytest.mark.parametrize("zone", ["XXX+24", "XXX-167:59:59"])
def test_a_zone_that_python_does_not_have_is_shown_as_utc(quiet: CliHome, zone: str) -> None:
    code, said = called(quiet.path, "events", TZ=zone)
    assert (code, b"times in UTC" in said) == (0, True), said


def test_a_home_whose_path_is_no_text_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UPULSE_HOME", "/tmp/caf\udce9")
    assert main(["init"]) == 1
    assert "'/tmp/caf\\udce9' is no text in UTF-8" in capsys.readouterr().err


MANIFESTS = {
    "digits": b'{"format": ' + b"9" * 5_000 + b"}",
    "depth": b"[" * 100_000,
    "a list": b"[1]",
    "no UTF-8": b"\xff{}",
    "a directory": None,
    "a pipe": None,
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_backup_that_says_nothing_of_use_is_refused(quiet: CliHome, tmp_path: Path, what: str) -> None:
    manifest = tmp_path / "backup" / "backup.json"
    manifest.parent.mkdir()
    if (content := MANIFESTS[what]) is not None:
        manifest.write_bytes(content)
    elif what == "a pipe":
        os.mkfifo(manifest)
    else:
        manifest.mkdir()
    assert f"{manifest} " in quiet.upulse("restore", str(manifest.parent), code=1).err
