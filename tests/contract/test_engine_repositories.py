"""What the repository of an engine promises."""

from pathlib import Path

import pytest

from pulse_adapters.git.repository import Repository
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports.engine_repository import EngineRepository, NothingToPromote

ADA = "Ada Lovelace <ada@example.org>"


class Workplace:
    """A repository, and how somebody saves a file of staging."""

    def __init__(self, directory: Path) -> None:
        (template := directory / "template").mkdir()
        (template / "engine.py").write_text("RULES = []\n")
        (directory / "home").mkdir()
        self.repository: EngineRepository = Repository.create(directory / "home", template, ADA)[0]

    def save(self, text: str) -> None:
        (self.repository.staging().path / "engine.py").write_text(text)


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_what_is_saved_in_staging_becomes_main_by_way_of_a_candidate(workplace: Workplace) -> None:
    repository = workplace.repository
    first = repository.head()
    assert repository.commit_staging("nothing", ADA) is None
    with pytest.raises(NothingToPromote):
        repository.candidate("nothing", ADA)
    workplace.save("RULES = [1]\n")
    assert repository.staging().dirty == ("engine.py",)
    assert repository.commit_staging("one", ADA) == repository.resolve("staging")
    assert (repository.staging().dirty, repository.staging().ahead) == ((), 1)
    candidate = repository.candidate("one", ADA)
    assert repository.head() == repository.head_in_files() == first
    assert repository.contains(candidate, first)
    assert not repository.contains(first, candidate)
    assert repository.returning(candidate) is None
    assert repository.ensure(candidate).commit == candidate
    for _ in range(2):
        repository.point_main(candidate, first)
        assert repository.head() == repository.resolve("main") == candidate
    staging = repository.settled_staging()
    assert (staging.commit, staging.ahead, staging.behind) == (candidate, 0, 0)
    assert "RULES = [1]" in repository.diff(first, candidate)
    assert "engine.py" in repository.differing(first, candidate)
    assert not repository.differing(first, first)


def test_main_moves_only_from_where_it_was_expected(workplace: Workplace) -> None:
    repository = workplace.repository
    first = repository.head()
    workplace.save("RULES = [1]\n")
    repository.commit_staging("one", ADA)
    one = repository.candidate("one", ADA)
    repository.point_main(one, first)
    workplace.save("RULES = [2]\n")
    repository.commit_staging("two", ADA)
    two = repository.candidate("two", ADA)
    with pytest.raises(PulseError):
        repository.point_main(two, first)
    assert repository.head() == one


def test_a_word_means_a_branch_or_the_beginning_of_a_commit(workplace: Workplace) -> None:
    repository = workplace.repository
    assert repository.resolve(repository.head()[:10]) == repository.head()
    with pytest.raises(UnknownName):
        repository.resolve("no-such-branch")
