"""What an agent proposes: it stays in staging if all gates take it, and is taken back else."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_core.app.engine.candidate_checks import GateResult, pass_gates
from pulse_core.model.errors import PulseError
from tests.integration.engine.engine_home import new_home
from upulse_cli.wiring.engine import propose_rule
from upulse_cli.wiring.home import home_context

ADA = "ada <ada@localhost>"
RULE = '''"""Passes on."""

from pulse_core import Inner, Snapshot, Verdict


async def quiet(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Pass on."""
    return await inner(prev, curr)
'''
TEST = '''"""Its test."""

from rules.quiet import quiet


def test_it_has_a_name() -> None:
    assert quiet.__name__ == "quiet"
'''


def test_a_rule_that_passes_stays_in_staging_and_one_that_does_not_is_taken_back(tmp_path: Path) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository, staging = Repository(home.layout.path), tmp_path / "home/staging"
    main, before = repository.head(), repository.staging().commit
    bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    assert ([one.outcome for one in bad.gates], bad.in_staging) == (["failed"], False)
    assert (repository.staging().commit, repository.staging().dirty) == (before, ())
    with pytest.raises(PulseError, match="can't be a name"):
        propose_rule(home, ADA, False, "../quiet", (RULE, TEST))
    good = propose_rule(home, ADA, False, "quiet", (RULE, TEST))
    assert [one.name for one in good.gates] == ["compiles", "types", "loads", "tests", "replay"], good.gates
    assert (good.in_staging, good.in_force, repository.head()) == (True, False, main)
    assert (staging / "rules/quiet.py").read_text() == RULE
    assert (
        "    quiet,\n" in (staging / "engine.py").read_text()
        or "quiet]" in (staging / "engine.py").read_text()
    )
    (staging / "rules/quiet.py").write_text("a person's\n")
    with pytest.raises(PulseError, match="not committed"):
        propose_rule(home, ADA, False, "quiet", (RULE, TEST))
    assert (staging / "rules/quiet.py").read_text() == "a person's\n"


def test_what_a_person_does_in_staging_while_the_gates_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository, staging = Repository(home.layout.path), tmp_path / "home/staging"
    before, listed = repository.staging().commit, (staging / "engine.py").read_bytes()

    def beside_a_person(*values: Any) -> Iterator[GateResult]:
        (staging / "rules/theirs.py").write_text("a person's\n")
        (staging / "rules/own.py").write_text("a person's edit\n")
        (staging / "tests/test_quiet.py").write_text("a person's test\n")
        yield from pass_gates(*values)

    monkeypatch.setattr("pulse_core.app.engine.promote.pass_gates", beside_a_person)
    bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    assert (bad.in_staging, bad.left) == (False, ["tests/test_quiet.py"])
    assert (staging / "rules/theirs.py").read_text() == "a person's\n"
    assert (staging / "rules/own.py").read_text() == "a person's edit\n"
    assert (staging / "tests/test_quiet.py").read_text() == "a person's test\n"
    assert not (staging / "rules/quiet.py").exists()
    assert (staging / "engine.py").read_bytes() == listed
    after = repository.staging()
    assert after.commit == before
    assert set(after.dirty) == {"rules/own.py", "rules/theirs.py", "tests/test_quiet.py"}


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        ("# a person's\n", []),
        ("again = quiet\n", ["rules/quiet.py", "tests/test_quiet.py", "engine.py"]),
        ("(\n", ["rules/quiet.py", "tests/test_quiet.py", "engine.py"]),
    ],
)
def test_staging_can_be_loaded_after_a_person_has_edited_the_engine_while_the_gates_run(
    edit: str, left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    staging = tmp_path / "home/staging"
    engine = staging / "engine.py"
    before = engine.read_text()

    def beside_a_person(*values: Any) -> Iterator[GateResult]:
        engine.write_text(engine.read_text() + edit)
        yield from pass_gates(*values)

    monkeypatch.setattr("pulse_core.app.engine.promote.pass_gates", beside_a_person)
    bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    assert (bad.in_staging, bad.left) == (False, left)
    assert ("rules.quiet" in engine.read_text()) == (staging / "rules/quiet.py").exists() == bool(left)
    if not left:
        assert engine.read_text() == before + edit


def test_a_commit_that_a_person_makes_while_the_gates_run_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository, staging = Repository(home.layout.path), tmp_path / "home/staging"

    def beside_a_person(*values: Any) -> Iterator[GateResult]:
        (staging / "rules/theirs.py").write_text("a person's\n")
        repository.commit_staging("Add mine", "eve <eve@localhost>")
        yield from pass_gates(*values)

    monkeypatch.setattr("pulse_core.app.engine.promote.pass_gates", beside_a_person)
    bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    after = repository.staging()
    assert (bad.in_staging, bad.left, after.ahead) == (False, [], 2)
    assert (staging / "rules/theirs.py").read_text() == "a person's\n"
    assert not (staging / "rules/quiet.py").exists()
    assert set(after.dirty) == {"engine.py", "rules/quiet.py", "tests/test_quiet.py"}


def test_a_second_proposal_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository = Repository(home.layout.path)
    before = repository.staging().commit
    monkeypatch.setattr("pulse_adapters.git.locks.WAIT_S", 0.0)
    other = RULE.replace("quiet", "other"), TEST.replace("quiet", "other")

    def beside_another(*values: Any) -> Iterator[GateResult]:
        with pytest.raises(PulseError, match="another proposal is being tried"):
            propose_rule(home, "bob <bob@localhost>", False, "other", other)
        yield from pass_gates(*values)

    with monkeypatch.context() as patch:
        patch.setattr("pulse_core.app.engine.promote.pass_gates", beside_another)
        bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    assert (bad.in_staging, repository.staging().commit, repository.staging().dirty) == (False, before, ())
    assert propose_rule(home, "bob <bob@localhost>", False, "other", other).in_staging


KILLED = """
import os, sys
from pathlib import Path
from pulse_adapters.config.home import Home
from pulse_adapters.git import staging
from pulse_core.app.engine import promote
from upulse_cli.wiring.engine import propose_rule
from upulse_cli.wiring.home import home_context

commit_staging = staging.commit_staging

def commit_and_die(*values):
    commit_staging(*values)
    os._exit(9)

def stage_and_die(git, *_values):
    staging.stage_files(git, git.staging)
    os._exit(9)

if sys.argv[2] == "as it was committed":
    staging.commit_staging = commit_and_die
elif sys.argv[2] == "before it was committed":
    staging.commit_staging = stage_and_die
promote.pass_gates = lambda *_values: os._exit(9)
propose_rule(home_context(Home(Path(sys.argv[1]))), "bob <bob@localhost>", False, "broken", ("def (:", ""))
"""


@pytest.mark.parametrize("when", ["before it was committed", "as it was committed", "as it was tried"])
def test_what_was_proposed_by_one_that_was_killed_is_taken_back_and_no_gate_holds_it_against_the_next(
    tmp_path: Path, when: str
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository, staging = Repository(home.layout.path), tmp_path / "home/staging"
    (link := tmp_path / "link").symlink_to(home.layout.path)  # whoever proposes next knows it by another path
    argv = (sys.executable, "-c", KILLED, str(link), when)
    assert subprocess.run(argv, timeout=60, check=False).returncode == 9
    assert (staging / "rules/broken.py").exists()
    for name in ("quiet", "other"):  # and of one that was seen to its end nothing is
        texts = RULE.replace("quiet", name), TEST.replace("quiet", name)
        good = propose_rule(home, ADA, False, name, texts)
        assert (good.in_staging, repository.staging().dirty) == (True, ()), good.gates
    assert (staging / "rules/quiet.py").exists()
    assert not (staging / "rules/broken.py").exists()
    assert "broken" not in (staging / "engine.py").read_text()


def test_nothing_is_taken_back_of_what_a_person_has_promoted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository = Repository(home.layout.path)

    def beside_a_person(*values: Any) -> Iterator[GateResult]:
        commit = repository.candidate("Promote", "eve <eve@localhost>")
        repository.point_main(commit, repository.head())
        yield from pass_gates(*values)

    monkeypatch.setattr("pulse_core.app.engine.promote.pass_gates", beside_a_person)
    bad = propose_rule(home, ADA, False, "quiet", ("async def quiet(:\n", TEST))
    assert bad.left == ["rules/quiet.py", "tests/test_quiet.py", "engine.py"]
    assert (repository.staging().commit, repository.staging().dirty) == (repository.head(), ())


def test_nobody_else_commits_a_proposal_that_waits_for_another_promote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_context(Home(new_home(tmp_path / "home", RULE.replace("quiet", "calm")).path))
    repository = Repository(home.layout.path)
    before = repository.staging().commit

    def beside_a_person(*_values: Any) -> None:
        repository.commit_staging("Add mine", "eve <eve@localhost>")
        raise PulseError("not done after 30 s")

    monkeypatch.setattr("pulse_core.app.engine.promote.wait_for_answers", beside_a_person)
    with pytest.raises(PulseError, match=r"not done after 30 s$"):
        propose_rule(home, ADA, True, "quiet", (RULE, TEST))
    assert (repository.staging().commit, repository.staging().dirty) == (before, ())
