"""A candidate as a promote has it: staging with these files, committed and laid out, before the real gates."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from pulse_core.app.engine.candidate_checks import GATES, Candidate
from pulse_core.ports.engine import Revision
from tests.repositories import repository_of
from tests.types_cache import warm
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.home import home_context

ADA = "Ada Lovelace <ada@example.org>"
TESTS_OF_RULES = "test_*_*.py"
"""Most of the template's tests: they take longer than what is tested of a gate."""


class GateScene(NamedTuple):
    """A home, and the revision that is to be promoted there."""

    home: Home
    revision: Revision


def candidate(path: Path, files: Mapping[str, str] = {}, left_out: str = TESTS_OF_RULES) -> GateScene:
    """A home with an engine of the template and these files; one of no text is none."""
    home, template = Home(path / "home"), path / "template"
    home.create()
    home.config.write_text("# secret: in the settings\n")
    shutil.copytree(template_folder(), template, ignore=shutil.ignore_patterns("__pycache__", left_out))
    repository_of(home.path, template, ADA)
    warm(home.path / "cache")
    return another(home, files)


def another(home: Home, files: Mapping[str, str]) -> GateScene:
    """The same home's next candidate."""
    repository = Repository(home.path)
    for name, text in files.items():
        file = repository.staging().path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text) if text else file.unlink()
    repository.commit_staging("made for a test", ADA)
    commit = repository.candidate("made for a test", ADA) if files else repository.head()
    return GateScene(home, repository.ensure(commit))


def passed(gate: str, scene: GateScene) -> str:
    """What a gate says of a candidate."""
    return GATES[gate](workflow_context(home_context(scene.home)), Candidate(scene.revision))


compiles, types, loads, tests = (partial(passed, gate) for gate in ("compiles", "types", "loads", "tests"))


def contents(folder: Path) -> Mapping[str, bytes]:
    """Every file beneath a folder."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
