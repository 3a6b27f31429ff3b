"""Deaths and a storm of log lines on a disk that takes nothing; the long form, ten minutes, is `make campaign`."""

import os
from pathlib import Path

import pytest

from tests.campaign.bad_disk import NoSuchDisk, campaign


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_every_death_is_answered_and_said_while_the_disk_takes_nothing(tmp_path: Path, kind: str) -> None:
    try:
        seen = campaign(kind, tmp_path, seconds=1.0, seed=int(os.environ.get("PULSE_SEED", "7")))
    except NoSuchDisk as error:
        must = kind == "full" and os.environ.get("CI")
        (pytest.fail if must else pytest.skip)(f"this machine makes no such disk: {error}")
    assert seen["deaths"] >= 3
    assert kind == "read-only" or seen["left out"] > 0  # more than there is room for
