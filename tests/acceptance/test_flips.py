"""Flipped bits are said by everybody and healed from a backup; the long form, 200 places, is `make campaign`."""

import os
from pathlib import Path

import pytest

from tests.campaign.flips import campaign
from tests.long_form import sample

COUNT = sample(3, 5)
"""Flipped bits; `python -m tests.campaign --heals` does more."""


@pytest.mark.timeout(600)
def test_no_flipped_bit_goes_unsaid_and_a_backup_heals_every_one(tmp_path: Path) -> None:
    seen = campaign(tmp_path, count=COUNT, seed=int(os.environ.get("PULSE_SEED", "7")))
    assert seen["refused"] > 1
    assert seen.total() == COUNT
