"""Completion as a person meets it: in a real bash, with the names of a real home."""

import io
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import PATIENCE, CliHome
from tests.long_form import sampled
from upulse_cli.__main__ import main

ASK = """
eval "$2"
COMP_LINE=$1 COMP_POINT=${#1}
_upulse upulse
((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"
"""


def environment(home: Path) -> dict[str, str]:
    """A user's who has this home, and the commands of this interpreter."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": programs, "UPULSE_HOME": str(home), "TERM": "dumb"}


@cache
def bash_script() -> str:
    """What `upulse completion bash` prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["completion", "bash"]) == 0
    return out.getvalue()


def offered(home: CliHome, line: str) -> list[str]:
    """What bash would put on the line."""
    argv = ["bash", "--norc", "--noprofile", "-c", ASK, "bash", line, bash_script()]
    done = subprocess.run(
        argv, env=environment(home.path), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


class Prompt:
    """An interactive bash on a terminal of its own."""

    def __init__(self, home: Path) -> None:
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment(home))
        self.type("PS1='> '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'\n")
        self.type('eval "$(upulse completion bash)"; echo ready-$((1 + 1))\n')
        self.read_until("ready-2\r\n> ")

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def read_until(self, wanted: str) -> str:
        said, until = "", time.monotonic() + PATIENCE
        while wanted not in said:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"waited in vain for {wanted!r}; it said {said!r}"
            said += os.read(self._terminal, 1 << 16).decode()
        return said

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@contextmanager
def prompt(home: CliHome) -> Iterator[Prompt]:
    made = Prompt(home.path)
    try:
        yield made
    finally:
        made.close()


def wished(home: CliHome, key: str) -> str:
    return home.upulse("effect", "add", "run-command", "--key", key, "--param", 'argv=["true"]').out.strip()


def test_bash_offers_commands_options_and_names_of_the_home(quiet: CliHome) -> None:
    id_ = wished(quiet, "command:first one")
    assert offered(quiet, "upulse process st") == ["stop", "start"]
    assert offered(quiet, "upulse process stop ") == ["demo"]
    assert offered(quiet, "upulse status --j") == ["--json"]
    assert offered(quiet, "upulse effect show com") == [r"command:first\ one"]
    assert offered(quiet, f"upulse effect show {id_[:20]}") == [id_]
    assert "process-died" in offered(quiet, "upulse events --kind ")


def test_bash_gets_what_is_behind_a_colon_or_an_equals_sign(quiet: CliHome) -> None:
    """It takes both for the beginning of a new word."""
    wished(quiet, "restart:web:now")
    assert offered(quiet, "upulse why restart:w") == ["web:now"]
    assert offered(quiet, "upulse why restart:web:") == ["now"]
    assert offered(quiet, "upulse why 'restart:w") == ["restart:web:now"]
    assert offered(quiet, "upulse events --kind=process-d") == ["process-died"]


def test_in_quotes_only_names_are_offered_that_no_shell_takes_for_more(quiet: CliHome) -> None:
    """Others choose names: a watcher those of vitals, a rule the keys of effects."""
    for key in ("k:$(touch x)`id`", "k:'\"; id", "k:plain"):
        wished(quiet, key)
    for line in ('"k:', "'k:", f'--home="" --home {quiet.path} k:'):
        assert "".join(offered(quiet, f"upulse why {line}")) in ("k:plain", "plain")
    assert len(offered(quiet, "upulse why k:")) == 3


def test_a_tab_completes_what_is_typed(quiet: CliHome) -> None:
    wished(quiet, "restart:web:now")
    with prompt(quiet) as bash:
        bash.type("upulse pro\t")
        bash.read_until("upulse pro")
        bash.type("c\t")
        bash.read_until("ess ")
        bash.type("sto\t")
        bash.read_until("p ")
        bash.type("d\t")
        bash.read_until("emo ")
        bash.type("\x15upulse why restart:w\t")
        assert bash.read_until("now ").replace("\a", "").endswith("upulse why restart:web:now ")


def test_files_are_completed_where_a_file_is_wanted(quiet: CliHome) -> None:
    with prompt(quiet) as bash:
        bash.type(f"upulse config check {quiet.path}/conf\t")
        bash.read_until("config.toml ")


def test_only_open_effects_are_offered_to_be_cancelled(quiet: CliHome) -> None:
    wished(quiet, "open")
    assert offered(quiet, "upulse effect cancel ") == ["open"]
    quiet.upulse("effect", "cancel", "open")
    assert offered(quiet, "upulse effect show ") == ["open"]


def test_silences_that_hold_are_offered_to_be_ended(quiet: CliHome) -> None:
    id_ = quiet.upulse("silence", "add", "notify:*", "--for", "1h").out.strip()
    assert offered(quiet, "upulse silence remove ") == [id_]


def test_what_was_sensed_is_offered_to_be_plotted(live: CliHome) -> None:
    assert "system-resource.memory" in offered(live, "upulse vitals system-resource.")


@pytest.mark.parametrize(
    "content", sampled([b"[[process]]\nname = ", b"\xff\xfe", b"process = 7\n", b'process = ["x"]\n'], 3)
)
def test_settings_that_cannot_be_read_keep_nothing_from_being_completed(
    quiet: CliHome, content: bytes
) -> None:
    (quiet.path / "config.toml").write_bytes(content)
    assert offered(quiet, "upulse process stop ") == []
    assert offered(quiet, "upulse process st") == ["stop", "start"]


def test_without_a_home_commands_and_options_are_completed(
    tmp_path: Path,
) -> None:
    nowhere = CliHome(tmp_path / "nowhere")
    assert offered(nowhere, "upulse process st") == ["stop", "start"]
    assert offered(nowhere, "upulse why x") == []
    assert not nowhere.path.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_how_it_is_used(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert f"upulse completion {shell}" in capsys.readouterr().out


def test_another_shell_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 1
    assert "bash, fish, zsh" in capsys.readouterr().err
    assert main(["completion", "bsah"]) == 1
    assert "did you mean 'bash'" in capsys.readouterr().err
