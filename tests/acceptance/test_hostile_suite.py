"""Attacks on a whole daemon of one user: what is guarded is back as if nobody attacked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from tests.acceptance.conftest import Served
from tests.hostile_engines import AUTHOR
from tests.hostile_suite import ACTIONS_APART, CLASSES, attack, config
from tests.long_form import sample


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two daemons, the second of which nobody attacks."""
    hostile, harmless = Served(tmp_path / "hostile"), Served(tmp_path / "harmless")
    try:
        for one in (hostile, harmless):
            one.configure(config(one.home.path))
            Repository.create(one.home.path, template_folder(), AUTHOR)
            one.start()
        yield hostile, harmless
    finally:
        hostile.close()
        harmless.close()


@pytest.mark.wall_clock
@pytest.mark.timeout(sample(600, 3000))
@pytest.mark.parametrize("name", [name for name in CLASSES if name != ACTIONS_APART])
def test_what_is_guarded_is_back_as_soon_as_where_nobody_attacks(
    both: tuple[Served, Served], name: str
) -> None:
    outcome = attack(name, *(one.home for one in both))
    print(f"{name}: {outcome}")
    assert outcome.verdict() == ""
