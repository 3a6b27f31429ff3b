"""A candidate as a promote has it: staging with these files, committed and laid out, before the real gates."""

from collections.abc import Mapping
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import RevisionStore
from pulse_adapters.git.template import shipped
from pulse_core.model.errors import PulseError
from pulse_core.ports import Loaded, Revision
from tests.types_cache import warm
from upulse_cli.engine.gates import Candidate
from upulse_cli.wiring.engine import code_checks

ADA = "Ada Lovelace <ada@example.org>"


def candidate(path: Path, files: Mapping[str, str] = {}) -> Candidate:
    """A home with an engine of the template and these files; one of no text is none."""
    home = Home(path / "home")
    home.create()
    home.config.write_text("# secret: in the settings\n")
    Repository.create(home.path, shipped(), ADA)
    warm(home.path)
    return another(home, files)


def another(home: Home, files: Mapping[str, str]) -> Candidate:
    """The same home's next candidate."""
    repository = Repository(home.path)
    for name, text in files.items():
        file = repository.staging().path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text) if text else file.unlink()
    repository.commit_staging("made for a test", ADA)
    commit = repository.candidate("made for a test", ADA) if files else repository.head()
    path = RevisionStore(home.path).ensure(commit)
    return Candidate(home, Revision(commit, str(path)), "", code_checks(home), not_loaded, not_replayed)


def not_loaded(revision: Revision) -> Loaded:
    raise PulseError("this gate is not the subject")


def not_replayed(candidate: Candidate) -> str:
    raise PulseError("nor is this one")


def contents(folder: Path) -> Mapping[str, bytes]:
    """Every file beneath a folder."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
