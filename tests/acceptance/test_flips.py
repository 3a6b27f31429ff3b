"""Flipped bits are said by everybody and healed from a backup; the long form, 200 places, is `make campaign`."""

import os
from pathlib import Path

import pytest

from tests.campaign.flips import campaign


@pytest.mark.timeout(600)
def test_no_flipped_bit_goes_unsaid_and_a_backup_heals_every_one(tmp_path: Path) -> None:
    seen = campaign(tmp_path, count=5, seed=int(os.environ.get("PULSE_SEED", "7")))
    assert seen["refused"] > 1
    assert seen.total() == 5
