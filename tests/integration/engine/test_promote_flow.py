"""Break, mend, promote, at the command line and with a daemon: what is said, and what is waited for."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.git.git_command import FOLLOWED
from pulse_adapters.git.repository import Repository
from pulse_adapters.host.clock import SystemClock
from pulse_core.app.engine.promote import ROLLBACK_UNDER_WAY, pending_request
from pulse_core.projections.engine import Engine
from tests.integration.cli.cli_home import UPULSE, CliHome, eventually
from tests.integration.engine.engine_home import CALM, PATIENT, engine_of, new_home, save
from tests.integration.rule_host.rule_host_engines import rule

ONE_GATE = ("--gate", "compiles", "-m", "other rules")
CALMER, CALMEST, MENDED = (CALM.replace("calm", name) for name in ("calmer", "calmest", "mended"))
BAD = rule("raise RuntimeError('always')", "hot")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CliHome]:
    """A home whose daemon runs and takes back what raises three errors."""
    home = new_home(
        tmp_path / "home", CALM, f'[daemon]\ntick_ms = 200\n[rollback]\nerrors = 3\n{PATIENT}repeat = "0s"\n'
    )
    home.start_daemon()
    try:
        eventually(lambda: engine_of(Home(home.path)).commit, "the first commit to be in force")
        yield home
    finally:
        home.end_everything()


def test_a_promote_and_a_rollback_say_what_an_author_has_to_know(served: CliHome) -> None:
    a_rule_that_is_mended_while_it_is_taken_back_is_promoted_without_a_word_of_git(served)
    a_main_that_was_moved_by_hand_is_said_everywhere(served)
    at_a_terminal_only_the_sentence_is_seen(served)
    a_rollback_says_what_became_of_staging(served)


def a_rule_that_is_mended_while_it_is_taken_back_is_promoted_without_a_word_of_git(served: CliHome) -> None:
    save(served, BAD)
    served.upulse("promote", *ONE_GATE)
    save(served, MENDED)
    Repository(served.path).commit_staging("mended", "Ada <ada@example.org>")
    eventually(lambda: engine_of(Home(served.path)).rolled_back, "it to be taken back")
    said = served.upulse("promote", *ONE_GATE)
    assert "this brings back what was taken back" in said.err
    assert "changed since: engine.py, rules/own.py" in said.err
    assert engine_of(Home(served.path)).commit == said.out.strip()
    eventually(lambda: served.status()["engine"]["rules"] == ["mended"], "it to run")
    a_script_finds_it_in_engine(served, said.out.strip())


def a_script_finds_it_in_engine(served: CliHome, commit: str) -> None:
    """As soon as the command has ended, main, the files and staging are that commit, and nobody is at git's index."""
    for folder, branch in (("engine", "main"), ("engine", FOLLOWED), ("staging", "HEAD")):
        argv = ["git", "-C", str(served.path / folder), "rev-parse", branch]
        done = subprocess.run(argv, check=True, timeout=60, capture_output=True, text=True)
        assert done.stdout.strip() == commit, (folder, branch)
    assert not list((served.path / "engine" / ".git").rglob("index.lock"))


def a_rollback_says_what_became_of_staging(served: CliHome) -> None:
    save(served, CALMEST)
    bad = served.upulse("promote", *ONE_GATE).out.strip()
    said = served.upulse("rollback")
    kept = f"rejected/{bad[:12]}"
    assert (
        f"staging follows; take your work from {kept} again with: git -C {served.path}/staging restore"
        in said.err
    )
    subprocess.run(
        ["git", "-C", served.path / "staging", "restore", "--source", kept, "."], check=True, timeout=60
    )
    again = served.upulse("promote", *ONE_GATE).out.strip()
    a_script_finds_it_in_engine(served, again)
    back = json.loads(served.upulse("rollback", "--json").out)
    a_script_finds_it_in_engine(served, back["subject"])
    assert [one["kind"] for one in served.upulse("engine", "log", "--json").json][:2] == [
        "rollback",
        "promote",
    ]
    subprocess.run(
        ["git", "-C", served.path / "staging", "restore", "--source", back["data"]["kept_as"], "."],
        check=True,
        timeout=60,
    )
    again = served.upulse("deploy", *ONE_GATE, "--json").json["commit"]
    save(served, BAD)
    assert (
        f"staging keeps your work, with what was taken back ({again[:12]})" in served.upulse("rollback").err
    )
    assert f"({again[:12]})" in served.upulse("engine", "status").out.replace("\n", " ")
    assert "always" in (served.path / "staging" / "rules" / "own.py").read_text()


def a_main_that_was_moved_by_hand_is_said_everywhere(served: CliHome) -> None:
    first = engine_of(Home(served.path)).commit
    (served.path / "engine" / "rules" / "own.py").write_text("def (\n")
    bob = ("-c", "user.name=Bob", "-c", "user.email=bob@example.org")
    subprocess.run(
        ["git", *bob, "-C", served.path / "engine", "commit", "-qam", "by hand"], check=True, timeout=60
    )
    words = f"main was moved by hand to {Repository(served.path).head()[:12]}; {first[:12]} is in force"
    assert words in served.upulse("status").err
    assert words in " ".join(served.upulse("engine", "status").out.split())
    save(served, CALMER)
    assert words in served.upulse("promote", *ONE_GATE, code=1).err
    subprocess.run(
        ["git", "-C", served.path / "engine", "reset", "-q", "--keep", first], check=True, timeout=60
    )
    assert "moved" not in served.upulse("status").err


def test_a_rollback_that_survival_wished_for_is_waited_for_and_not_for_ever() -> None:
    wished = SystemClock().now()
    engine = Engine(commit="a" * 40, asked=wished)
    assert pending_request(engine, True, wished.plus(ROLLBACK_UNDER_WAY - 1)) == "a rollback is under way"
    assert pending_request(engine, True, wished.plus(ROLLBACK_UNDER_WAY)) == ""
    assert pending_request(engine, False, wished) == ""


def at_a_terminal_only_the_sentence_is_seen(served: CliHome) -> None:
    save(served, CALMER)
    ours, theirs = pty.openpty()
    words = [*UPULSE, "promote", *ONE_GATE, "--home", str(served.path)]
    done = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        assert os.read(ours, 1_000) == b""
    except OSError:
        pass  # nothing was written there
    finally:
        os.close(ours)
    assert "is in force; undo it with: upulse rollback" in done.stderr
