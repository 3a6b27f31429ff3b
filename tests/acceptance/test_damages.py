"""Every store of a home is damaged by chance, and nothing of it is silent; the long form is `make campaign`."""

import os
from pathlib import Path

import pytest

from tests.campaign.damages import campaign


@pytest.mark.timeout(600)
def test_no_damage_of_any_store_goes_unsaid_and_a_restore_heals_it(tmp_path: Path) -> None:
    seen = campaign(tmp_path, count=7, seed=int(os.environ.get("PULSE_SEED", "5")))
    assert seen.total() == 7
    assert {one.partition(":")[0] for one in seen} == {"down", "running", "restored"}
