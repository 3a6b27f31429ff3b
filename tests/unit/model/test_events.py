"""Events as people and programs get them."""

import pytest

from pulse_core.model.errors import Damaged
from pulse_core.model.kinds import Paused
from tests.events import event


def test_an_event_is_spelled_with_what_it_says() -> None:
    assert event(1, Paused(why="lunch")).spelled()["data"] == {"why": "lunch"}


@pytest.mark.parametrize("data", ['{"why":"lun', '{"why":"\x02"}', "", "ok"])
def test_what_was_altered_on_the_disk_says_so_in_its_place(data: str) -> None:
    spelled = event(1, Paused())._replace(data=data).spelled()
    assert "upulse verify" in str(spelled["data"]["$damaged"])


@pytest.mark.parametrize("data", ['{"cause":"lunch"}', '{"why":"lun', "[]"])
def test_data_that_its_kind_does_not_have_is_damage(data: str) -> None:
    with pytest.raises(Damaged, match="row 1 has data that no paused has"):
        _ = event(1, Paused())._replace(data=data).payload
