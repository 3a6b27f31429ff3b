"""A machine for each module of this folder; it boots when the first test wants it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.systemd.systemd_machine import Machine, impossible


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.systemd)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with a real systemd for each module, so that none meets what another one has left.

    Without the rights for it the test is skipped, but never in CI.
    """
    if reason := impossible():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    booted = Machine()
    try:
        yield booted
    finally:
        booted.close()
