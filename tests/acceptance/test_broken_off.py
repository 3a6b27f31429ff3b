"""Backups and restores that are killed on the way; the long form is `make campaign`."""

from pathlib import Path

import pytest

from tests.campaign.broken_off import broken_backups, broken_restores
from tests.long_form import sample


@pytest.mark.timeout(600)
def test_a_backup_that_is_killed_is_whole_or_not_there(tmp_path: Path) -> None:
    assert len(list(broken_backups(tmp_path, stride=sample(40, 20)))) > 2


@pytest.mark.timeout(600)
def test_a_restore_that_is_killed_has_changed_nothing_or_can_only_be_finished(tmp_path: Path) -> None:
    found = list(broken_restores(tmp_path, stride=10))
    assert any("was broken off" in words for words in found)
    assert any("altered" in words for words in found)
