"""Whoever deletes a capability's line and its folders has removed it, and everything else goes on."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from pulse_core.capabilities import CAPABILITIES, NEEDS
from tests.capabilities.capability_tree import LIST, PACKAGES, ROOT, Importer, Tree
from tests.long_form import sampled

STILL_GREEN = (
    "tests/unit/model/test_events.py",
    "tests/unit/model/test_model_json.py",
    "tests/unit/model/test_payloads.py",
    "tests/simulation/test_ticks.py",
)
"""Events, and a whole daemon in simulation: none of them is about a capability."""


@pytest.fixture(scope="module")
def importer() -> Iterator[Importer]:
    importer = Importer()
    yield importer
    importer.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sampled(CAPABILITIES, 5))
def test_a_capability_can_be_deleted(tmp_path: Path, importer: Importer, name: str) -> None:
    tree = Tree(tmp_path / "tree")
    for above in (one for one in CAPABILITIES if name in NEEDS.get(one, ())):
        tree.remove(above)
    tree.remove(name)
    assert "stopped" in importer.use(tree.path, tmp_path / "home")


@pytest.mark.timeout(400)
def test_all_of_them_can_be_deleted_together(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    for name in CAPABILITIES:
        tree.remove(name)
    tests = tree.run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *STILL_GREEN)
    assert tests.returncode == 0, tests.stdout


@cache
def sources() -> Mapping[str, str]:
    """The text of every file of the packages, by its path."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files}


@pytest.mark.parametrize("name", CAPABILITIES)
def test_nothing_but_its_own_folders_imports_a_capability(name: str) -> None:
    """Found by its name alone: in the tree there is no import of it, but by those that say that they need it."""
    users = [name, *(one for one in CAPABILITIES if name in NEEDS.get(one, ()))]
    places = ("pulse_core/", "pulse_adapters/", "upulse_cli/capabilities/")
    own = tuple(f"{place}{user}/" for place in places for user in users)
    word = re.compile(rf"\bpulse_(?:core|adapters)\.{name}\b|\bupulse_cli\.capabilities\.{name}\b")
    found = [file for file, text in sources().items() if word.search(text)]
    assert [file for file in found if not file.startswith(own)] == []
    assert f'    "{name}",\n' in (ROOT / LIST).read_text()
