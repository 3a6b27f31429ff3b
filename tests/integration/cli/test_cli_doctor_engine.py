"""What the doctor says of the engine."""

import subprocess
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.template import shipped
from upulse_cli.doctor.engine import engine
from upulse_cli.doctor.findings import OK, WARN, Ground

ADA = "Ada <ada@example.org>"


def made(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.create()
    Repository.create(home.path, shipped(), ADA)
    return home


def test_a_sound_engine_is_well(tmp_path: Path) -> None:
    (found,) = engine(Ground(made(tmp_path)))
    assert (found.level, found.words[:8]) == (OK, "main is ")


def test_a_home_without_one_is_well_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    (found,) = engine(Ground(home))
    assert found.level == OK
    assert "upulse init" in found.words


def test_a_repository_without_main_says_what_helps(tmp_path: Path) -> None:
    home = made(tmp_path)
    subprocess.run(
        ["git", "-C", str(home.path / "engine"), "update-ref", "-d", "refs/heads/main"], check=True
    )
    (found,) = engine(Ground(home))
    assert found.level == WARN
    assert "upulse init" in found.remedy


def test_work_in_staging_is_told(tmp_path: Path) -> None:
    home = made(tmp_path)
    (home.path / "staging" / "rules" / "new.py").write_text("A = 1\n")
    found = list(engine(Ground(home)))
    assert any(one.name == "staging" and "rules/new.py" in one.words for one in found)
