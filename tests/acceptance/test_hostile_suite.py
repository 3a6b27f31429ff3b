"""Attacks on a whole daemon of one user: what is guarded is back as if nobody attacked."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from tests.acceptance.conftest import Served
from tests.hostile_engines import AUTHOR
from tests.hostile_suite import ACTIONS_APART, CLASSES, attack, config
from tests.long_form import sample, sampled


def started(home: Path) -> Served:
    """A daemon with an engine."""
    served = Served(home)
    try:
        served.configure(config(home))
        Repository.create(home, template_folder(), AUTHOR)
        return served.start()
    except BaseException:
        served.close()
        raise


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with closing(started(tmp_path_factory.mktemp("harmless") / "home")) as served:
        yield served


@pytest.fixture
def both(tmp_path: Path, unharmed: Served) -> Iterator[tuple[Served, Served]]:
    """Two daemons, the second of which nobody attacks; all classes have that one in common."""
    assert unharmed.answers(), unharmed.said.read_text()
    with closing(started(tmp_path / "hostile")) as hostile:
        yield hostile, unharmed


@pytest.mark.wall_clock
@pytest.mark.timeout(sample(600, 3000))
@pytest.mark.parametrize("name", sampled([name for name in CLASSES if name != ACTIONS_APART], 2))
def test_what_is_guarded_is_back_as_soon_as_where_nobody_attacks(
    both: tuple[Served, Served], name: str
) -> None:
    outcome = attack(name, *(one.home for one in both))
    print(f"{name}: {outcome}")
    assert outcome.verdict() == ""
