"""Somebody is told of a disk while there is still time."""

from pulse_core.testing import Story, given

from rules.disk_fills_up import disk_fills_up

GIB = 1 << 30


def minute(*free: float, used: float = 0.8) -> Story:
    """Twenty seconds between samples, with so many GiB free in each."""
    story = given(disk_fills_up)
    for gibibytes in free:
        story.after("20s").sample("system-resource", disks={"/": {"used": used, "free": int(gibibytes * GIB)}})
    story.tick()
    return story


def test_a_disk_that_will_be_full_soon_is_told() -> None:
    notice = minute(10.02, 10.01, 10).expect("notify", key="notify:disk-fills-up:/")
    assert notice.params["title"] == "/ will be full in 5.6 hours"


def test_what_is_left_is_told_in_minutes_when_it_is_less_than_an_hour() -> None:
    notice = minute(1.2, 1.1, 1).expect("notify", key="notify:disk-fills-up:/")
    assert notice.params["title"] == "/ will be full in 3.3 minutes"


def test_a_disk_that_is_full_is_not_said_to_become_so() -> None:
    minute(0.2, 0.1, 0, used=1.0).expect_nothing()


def test_a_disk_that_has_time_is_not() -> None:
    minute(20.02, 20.01, 20).expect_nothing()


def test_a_disk_that_is_nearly_empty_is_not() -> None:
    minute(10.02, 10.01, 10, used=0.1).expect_nothing()


def test_one_jump_is_no_growth() -> None:
    minute(10.02, 10, 10).expect_nothing()


def test_one_look_says_nothing() -> None:
    minute(10).expect_nothing()


def test_who_knows_is_not_told_again() -> None:
    story = minute(10.02, 10.01, 10)
    story.acked("notify:disk-fills-up:/")
    story.after("20s").sample("system-resource", disks={"/": {"used": 0.8, "free": 9 * GIB}})
    story.tick()
    story.expect_nothing()


def test_a_disk_that_does_not_answer_is_passed_over() -> None:
    story = given(disk_fills_up).sample("system-resource", disks={"/far": {"error": "did not answer"}})
    story.tick()
    story.expect_nothing()
