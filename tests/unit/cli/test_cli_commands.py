"""The command tree as a whole: what holds for every command."""

import ast
import errno
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from pulse_adapters.config.home import Home
from pulse_adapters.config.template import template
from pulse_core.model.errors import PulseError
from tests.long_form import sampled
from upulse_cli.__main__ import main
from upulse_cli.app import app
from upulse_cli.command_line import sentence, tree_for
from upulse_cli.shortages import NO_MEMORY_WORDS, NO_THREAD_WORDS
from upulse_cli.wiring.offline import write_settings

SLOW = {"pydantic", "rich", "asyncio", "sqlite3", "upulse_cli.wiring"}


def commands() -> Iterator[tuple[str, object]]:
    """Every command with its words."""
    waiting = [("", get_command(app))]
    while waiting:
        words, command = waiting.pop()
        if subs := getattr(command, "commands", None):
            waiting += [(f"{words} {name}".strip(), sub) for name, sub in subs.items()]
        else:
            yield words, command


COMMANDS = dict(commands())


OWN_HOME = {"completion", "demo"}
"""Commands that never touch a home of the user's, or only the one that a line on its way to another names."""


SOURCE = Path(__file__).parents[3]
NAMED = re.compile(r"(?<![\w/.-])upulse((?: [a-z][a-z-]*)+)")
VERBS = ("anew", "failed", "is")
"""What follows `upulse` where that is no command: `install upulse anew`."""


def named_commands() -> Iterator[tuple[str, int, str]]:
    """Whatever the code's texts name after `upulse`, with the file and the line."""
    for part in ("engine_template", "pulse_adapters", "pulse_core", "upulse_cli"):
        for path in (SOURCE / part).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "upulse " in text else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for words in NAMED.findall(node.value):
                        yield path.name, node.lineno, words.strip()


def test_every_command_that_a_text_of_the_code_names_exists() -> None:
    wrong = []
    for *where, words in named_commands():
        here = get_command(app)
        for word in words.split():
            if not (subs := getattr(here, "commands", None)):
                break
            if word in VERBS and words.startswith(word):
                break
            if word not in subs:
                wrong.append((*where, words))
                break
            here = subs[word]
    assert not wrong


def test_every_command_takes_a_home(capsys: pytest.CaptureFixture[str]) -> None:
    for words in sorted(COMMANDS.keys() - OWN_HOME):
        assert main([*words.split(), "--help"]) == 0, words
        assert "--home DIR" in capsys.readouterr().out, words


def test_the_first_sentence_of_every_help_is_shown_whole_in_the_list() -> None:
    for words, command in COMMANDS.items():
        short = command.get_short_help_str(limit=58)  # type: ignore[attr-defined]
        assert short.endswith("."), words
        assert not short.endswith("..."), words


def test_the_command_tree_imports_nothing_slow() -> None:
    code = "import sys, upulse_cli.command_line; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not SLOW & set(loaded.stdout.split())


@pytest.mark.parametrize("name", ["typer", "upulse_cli.app", "upulse_cli.wiring.home"])
def test_ctrl_c_while_a_command_begins_ends_it_silently(name: str, tmp_path: Path) -> None:
    ended = begin_command(name, "os.kill(os.getpid(), signal.SIGINT)", tmp_path)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("name", ["typer", "upulse_cli.app", "upulse_cli.wiring.home"])
def test_a_command_without_memory_says_that_it_ran_out(name: str, tmp_path: Path) -> None:
    has = "int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()"
    ended = begin_command(name, f"resource.setrlimit(resource.RLIMIT_AS, [{has}] * 2)", tmp_path)
    assert (ended.returncode, ended.stderr) == (71, f"{NO_MEMORY_WORDS}\n")


def test_a_command_without_threads_says_that_none_can_be_had(tmp_path: Path) -> None:
    assert begin_command("", "", tmp_path, "init").returncode == 0
    more_than_there_are_addresses = "__import__('threading').stack_size(1 << 46)"
    ended = begin_command("upulse_cli.app", more_than_there_are_addresses, tmp_path, "new", "rule", "one")
    assert (ended.returncode, ended.stderr) == (71, f"{NO_THREAD_WORDS}\n")


def begin_command(name: str, before: str, home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in which this is done before it imports the module of this name."""
    code = f"""if True:
        import os, resource, signal, sys

        class AtImport:
            def find_spec(name, *_):
                if name == {name!r}:
                    {before or None}

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, AtImport)
        from upulse_cli.__main__ import main
        sys.exit(main())
    """
    argv = [sys.executable, "-c", code, *(words or ("status",)), "--home", str(home)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words])
def test_a_command_is_the_same_where_no_other_one_was_built(words: str) -> None:
    first = words.partition(" ")[0]
    own = get_command(tree_for(first))
    assert list(own.commands) == [first]  # type: ignore[attr-defined]
    for word in words.split():
        own = own.commands[word]  # type: ignore[attr-defined]
    helps = [
        command.get_help(typer.Context(command, info_name=words))  # type: ignore[attr-defined,arg-type]
        for command in (own, COMMANDS[words])
    ]
    assert helps[0] == helps[1]


def test_a_wrong_command_is_answered_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statsu"]) == 2
    assert "Did you mean 'status'" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert "Exit codes: 0 done; 1 not done" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from pulse_core import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize("buffering", sampled(["", "PYTHONUNBUFFERED=1"], 3))
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize("words", ["--version", "--help", "config path"])
def test_a_stdout_that_takes_nothing_is_one_sentence(words: str, redirection: str, buffering: str) -> None:
    command = f"env -u PYTHONUNBUFFERED {buffering} {shlex.quote(sys.executable)} -m upulse_cli {words}"
    done = subprocess.run(f"{command} {redirection}", shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("stdout can't be written: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.EBADF, errno.ENOSPC])
def test_only_a_write_to_stdout_is_told_as_one(number: int) -> None:
    why = os.strerror(number)
    assert sentence(OSError(number, why)) == f"the system refused: {why}"


def test_what_the_system_refuses_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--home", "/" + "x" * 300]) == 1
    assert capsys.readouterr().err == f"/{'x' * 300}/events.db: File name too long\n"


def test_in_a_directory_that_is_gone_a_command_says_that_where_it_needs_one(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "config.toml").write_text('[notify]\nurls = ["json://127.0.0.1:1/x"]\n')
    check = f"exec {shlex.quote(sys.executable)} -P -m upulse_cli config check {tmp_path}/config.toml"
    command = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && {check}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (
        1,
        "the directory in which this runs is gone; change to another one\n",
    )


def test_a_traceback_is_shown_only_to_who_asks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UPULSE_DEBUG", "0")
    assert main(["status", "--home", "/nowhere/at/all"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--debug", "status", "--home", "/nowhere/at/all"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_settings_that_a_full_disk_takes_but_a_part_of_are_none(tmp_path: Path) -> None:
    home, limit = Home(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limit[1]))
    try:
        with pytest.raises(PulseError, match=r"config\.toml can't be written: File too large"):
            write_settings(home, demo=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not home.config.exists()
    assert (write_settings(home, demo=True), write_settings(home, demo=True)) == (True, False)
    assert home.config.read_text() == template(demo=True)
