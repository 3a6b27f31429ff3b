"""The answer to a machine that is short of memory or room, as the whole daemon lives it, in virtual time."""

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_core.model.kinds import EffectCancelRequested, Paused, Resumed
from pulse_core.rules.survival.resource_guard import BUDGET, STOPS
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded
from tests.long_form import sampled
from tests.simulation.machine import Machine, Story, consumer, failing, live

MINUTE, HOUR = 60, 3_600


# Evidence


def test_a_machine_that_is_well_is_left_alone() -> None:
    async def tell(story: Story) -> None:
        await asyncio.sleep(HOUR)
        assert (story.news(), story.wishes()) == ([], [])

    live(tell)


@pytest.mark.parametrize("seconds", [5, 25])
def test_a_short_burst_is_no_shortage(seconds: int) -> None:
    async def tell(story: Story) -> None:
        story.machine.memory = 0.95
        await asyncio.sleep(seconds)
        story.machine.memory = 0.5
        await asyncio.sleep(HOUR)
        assert story.wishes() == []

    live(tell)


def test_hysteresis_keeps_a_shortage_that_trembles_from_being_many() -> None:
    async def tell(story: Story) -> None:
        story.machine.memory = 0.95
        await asyncio.sleep(2 * MINUTE)
        for share in (0.89, 0.91, 0.81, 0.95) * 20:
            story.machine.memory = share
            await asyncio.sleep(10)
        assert story.news() == ["raised memory"]
        assert [title for title in story.titles() if "nothing helped" not in title] == ["memory is short"]

    live(tell, {"stop": []})


# Disks: warn, clean, archive


def test_a_full_disk_is_told_and_cleaned_at_once() -> None:
    async def tell(story: Story) -> None:
        story.hands["clean-paths"].helps = lambda _: setattr(story.machine, "disk", 0.5)
        await asyncio.sleep(10)
        story.machine.disk = 0.93
        await asyncio.sleep(5)
        assert (story.titles(), story.actions()) == (["/ is nearly full"], ["clean-paths"])
        (_, wish) = story.wishes()[-1] if story.wishes()[-1][1]["action"] != "notify" else story.wishes()[0]
        assert wish["key"] == "clean-paths:/"
        assert wish["params"] == {
            "near": "/",
            "for_condition": "disk:/",
            "roots": ["~/.cache/agent"],
            "older_than_us": HOUR * 1_000_000,
        }
        assert wish["survival"]
        await asyncio.sleep(HOUR)
        assert story.news() == ["raised disk:/", "cleared disk:/"]
        assert story.titles() == ["/ is nearly full", "resolved: / is nearly full"]
        assert story.actions() == ["clean-paths"]
        assert "deletes what nobody touched for 1 h in ~/.cache/agent" in story.texts()[0]
        assert story.texts()[1] == "It is over; tried before: clean-paths (done); it is 50.0% now."

    live(tell)


def test_what_holds_a_notice_back_is_told_like_what_holds_back_anything_else() -> None:
    async def tell(story: Story) -> None:
        await story.world.ask(Paused())
        story.machine.memory = 0.95
        await asyncio.sleep(2 * MINUTE)
        daemon = story.world.daemon
        assert daemon is not None
        (condition,) = daemon.report()["conditions"]
        held = condition.get("held")
        assert held
        assert held["by"] == "a pause of person"
        await story.world.ask(Resumed())
        await asyncio.sleep(5)
        (notice,) = (json.loads(one.data) for one in story.world.events("effect"))
        assert notice["reason"].endswith("; held back until now: Pulse was paused by person")
        await asyncio.sleep(HOUR)
        *_, ended = (json.loads(one.data) for one in story.world.events("answer-delayed"))
        assert (ended["held_by"], ended.get("lasts", False)) == ("a pause of person", False)

    live(tell, {"stop": []})


def test_what_holds_cleaning_back_is_told_while_it_lasts_and_recorded_when_that_ends() -> None:
    async def tell(story: Story) -> None:
        await story.world.ask(Paused())
        story.machine.disk = 0.95
        await asyncio.sleep(60)
        daemon = story.world.daemon
        assert daemon is not None
        (condition,) = daemon.report()["conditions"]
        held = condition.get("held")
        assert held
        assert held["by"] == "a pause of person"
        await story.world.ask(Resumed())
        await asyncio.sleep(5)
        assert "clean-paths" in story.actions()
        lasting, ended = (json.loads(one.data) for one in story.world.events("answer-delayed"))
        assert (lasting["lasts"], lasting["held_by"], lasting["since"]) == (
            True,
            ended["held_by"],
            ended["since"],
        )
        assert 50 < ended["held_us"] / 1e6 < 61

    live(tell)


def test_what_does_not_help_is_followed_by_what_is_harsher_each_with_its_patience() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.93
        await asyncio.sleep(8 * MINUTE)
        (cleaned,), (archived,) = story.times("clean-paths"), story.times("archive-sessions")
        assert cleaned < 6
        assert 60 <= archived - cleaned <= 63
        assert story.titles() == ["/ is nearly full", "/ is nearly full, and nothing helped"]
        (told,) = [second for second, wish in story.wishes() if "helped" in wish["params"].get("title", "")]
        assert 60 <= told - archived <= 63
        assert story.texts()[1] == (
            "Tried: clean-paths (done), archive-sessions (done)."
            " It was first seen 2 min ago; it was 93.0%, and is 93.0% now."
        )

    live(tell)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"clean": []}, ["archive-sessions"]),
        ({"sessions": None}, ["clean-paths"]),
        ({"clean": [], "sessions": None}, []),
    ],
)
def test_only_what_is_allowed_is_done(resources: dict[str, Any], expected: list[str]) -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.93
        await asyncio.sleep(8 * MINUTE)
        assert story.actions() == expected
        assert story.titles()[0] == "/ is nearly full"
        if not expected:
            assert "neither clean nor sessions" in story.texts()[0]
            assert len(story.titles()) == 1

    live(tell, resources)


def test_rounds_that_do_not_help_come_ever_more_rarely_and_never_end() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.93
        await asyncio.sleep(6 * HOUR)
        cleaned = story.times("clean-paths")
        gaps = [round(later - earlier) for earlier, later in pairwise(cleaned)]
        assert gaps == sorted(gaps)
        assert gaps[0] == pytest.approx(11 * MINUTE, abs=10)
        assert gaps[-1] == pytest.approx(161 * MINUTE, abs=10)
        assert len(story.actions()) == 12

    live(tell)


def test_a_measure_that_fails_is_not_waited_for_and_its_failure_told() -> None:
    async def tell(story: Story) -> None:
        story.hands["clean-paths"].helps = failing("no such directory")
        story.hands["archive-sessions"].helps = failing("no room")
        story.machine.disk = 0.93
        await asyncio.sleep(10)
        assert story.actions() == ["clean-paths", "archive-sessions"]
        assert "Tried: clean-paths (no such directory), archive-sessions (no room)." in story.texts()[-1]

    live(tell)


def test_space_and_inodes_of_one_disk_are_answered_together() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = story.machine.inodes = 0.95
        await asyncio.sleep(8 * MINUTE)
        assert story.actions() == ["clean-paths", "archive-sessions"]
        assert set(story.titles()) >= {"/ is nearly full", "/ has hardly any inodes left"}

    live(tell)


def test_a_disk_that_trembles_around_its_bound_is_not_cleaned_all_the_time() -> None:
    async def tell(story: Story) -> None:
        for _ in range(60):
            story.machine.disk = 0.93
            await asyncio.sleep(10)
            story.machine.disk = 0.5
            await asyncio.sleep(10)
        assert 5 <= len(story.actions()) <= 21

    live(tell)


def test_a_disk_that_does_not_answer_is_told_and_not_cleaned() -> None:
    async def tell(story: Story) -> None:
        story.machine.error = "did not answer within 2 s"
        await asyncio.sleep(10 * MINUTE)
        assert (story.titles(), story.actions()) == (["/ does not tell how full it is"], [])
        assert "did not answer within 2 s" in story.texts()[0]
        story.machine.error = ""
        await asyncio.sleep(10)
        assert story.titles()[1:] == ["resolved: / does not tell how full it is"]

    live(tell)


# Memory: warn, stop


def short(story: Story, share: float = 0.95) -> None:
    story.machine.memory = share
    story.machine.consumers = [consumer(7, 2), consumer(8, 5), consumer(9, 1)]


def freeing(story: Story, share: float) -> Callable[[Any], None]:
    """The stop of the worst, after which this much memory is used."""

    def stop(_event: Any) -> None:
        worst = max(story.machine.consumers, key=lambda one: one["rss"])
        story.machine.consumers.remove(worst)
        story.machine.memory = share

    return stop


def test_a_person_has_the_time_of_patience_before_the_worst_is_stopped() -> None:
    async def tell(story: Story) -> None:
        story.hands["stop-process"].helps = freeing(story, 0.5)
        short(story)
        await asyncio.sleep(30 + 55)
        assert (story.titles(), story.actions()) == (["memory is short"], [])
        assert story.texts() == [
            "memory is used to 95.0%, 1 B are available, for at least 30 s."
            " If it lasts for 1 min, Pulse stops the worst of batch."
        ]
        await asyncio.sleep(20)
        assert story.stopped() == [8]
        await asyncio.sleep(HOUR)
        assert story.titles() == ["memory is short", "resolved: memory is short"]
        assert story.stopped() == [8]
        (wish,) = [wish for _, wish in story.wishes() if wish["action"] == "stop-process"]
        assert wish["params"]["consumer"] == {"pid": 8, "started": 80, "pattern": "batch"}
        assert "process 8 (batch) holds 5.0 GiB of memory" in wish["reason"]

    live(tell)


def test_what_is_over_before_the_patience_is_costs_nobody_a_life() -> None:
    async def tell(story: Story) -> None:
        short(story)
        await asyncio.sleep(30 + 50)
        story.machine.memory = 0.5
        await asyncio.sleep(HOUR)
        assert story.stopped() == []

    live(tell)


def test_the_next_worst_is_stopped_only_if_it_is_still_short() -> None:
    async def tell(story: Story) -> None:
        story.hands["stop-process"].helps = freeing(story, 0.95)
        short(story)
        await asyncio.sleep(6 * MINUTE)
        assert story.stopped() == [8, 7, 9]
        gaps = [later - earlier for earlier, later in pairwise(story.times("stop-process"))]
        assert all(60 <= gap < 75 for gap in gaps)
        assert story.titles() == ["memory is short", "memory is short, and nothing helped"]
        assert story.texts()[1].startswith(
            "Tried: stop-process (done), stop-process (done), stop-process (done). It was first seen 4.6 min ago;"
        )

    live(tell)


def test_no_more_than_the_budget_is_stopped_however_often_it_comes_again() -> None:
    """Each stop helps for a moment, and somebody else starts it again: each time it is a new episode."""

    async def tell(story: Story) -> None:
        story.hands["stop-process"].helps = lambda _: setattr(story.machine, "memory", 0.5)
        for _ in range(90):
            short(story)
            await asyncio.sleep(2 * MINUTE)
            story.machine.memory = 0.5
            await asyncio.sleep(10)
        times = story.times("stop-process")
        assert len(times) > 20
        for first, fourth in zip(times, times[STOPS:], strict=False):
            assert fourth - first >= BUDGET / 1e6

    live(tell)


def test_who_is_alone_in_being_allowed_is_not_stopped_for_ever() -> None:
    async def tell(story: Story) -> None:
        short(story)
        await asyncio.sleep(6 * HOUR)
        assert 12 <= len(story.stopped()) <= 18

    live(tell)


def test_without_anybody_who_may_be_stopped_a_person_is_told() -> None:
    async def tell(story: Story) -> None:
        story.machine.memory = 0.95
        story.machine.consumers = [consumer(7, 0.1)]  # stopping it would not help
        await asyncio.sleep(10 * MINUTE)
        assert story.stopped() == []
        assert story.titles() == ["memory is short", "memory is short, and nothing helped"]
        assert "Nothing could be tried: nobody who may be stopped holds much" in story.texts()[1]

    live(tell)


def test_nobody_is_stopped_where_nobody_may_be() -> None:
    async def tell(story: Story) -> None:
        short(story)
        await asyncio.sleep(HOUR)
        assert (story.actions(), story.titles()) == ([], ["memory is short"])
        assert "allows to stop nobody" in story.texts()[0]

    live(tell, {"stop": []})


def test_the_worst_for_swap_is_who_has_most_of_it() -> None:
    async def tell(story: Story) -> None:
        story.machine.swap = 0.95
        story.machine.consumers = [consumer(7, 5, 0.1), consumer(8, 1, 0.8)]
        await asyncio.sleep(3 * MINUTE)
        assert story.stopped()[0] == 8

    live(tell)


def test_a_stop_that_failed_is_followed_by_another_ones() -> None:
    async def tell(story: Story) -> None:
        story.hands["stop-process"].helps = failing("not permitted")
        short(story)
        await asyncio.sleep(3 * MINUTE)
        assert story.stopped()[:2] == [8, 7]

    live(tell)


def test_without_a_fresh_look_nobody_is_stopped() -> None:
    async def tell(story: Story) -> None:
        story.machine.interval = 100.0  # slower than the settings say: what it saw is old when it is time
        short(story)
        await asyncio.sleep(199)  # raised at 100 s, looked at again at 200 s
        assert (story.news(), story.stopped()) == (["raised memory"], [])
        assert "memory: waits for a fresh look at who uses memory" in await story.notes()
        await asyncio.sleep(10)
        assert story.stopped() == [8]

    live(tell)


# Causes before symptoms


def test_who_is_short_of_memory_is_told_once_and_not_of_all_that_follows() -> None:
    async def tell(story: Story) -> None:
        story.machine.memory, story.machine.swap = 0.95, 0.95
        story.machine.stalled = {"memory": 0.9, "io": 0.9}
        await asyncio.sleep(20 * MINUTE)
        assert set(story.news()) == {
            "raised memory",
            "raised swap",
            "raised pressure:memory",
            "raised pressure:io",
        }
        assert [title for title in story.titles() if "nothing helped" not in title] == ["memory is short"]
        notes = await story.notes()
        assert "pressure:io: explained by memory" in notes
        assert "swap: explained by memory" in notes

    live(tell)


def test_disks_that_stall_are_told_and_nobody_is_stopped_for_it() -> None:
    async def tell(story: Story) -> None:
        short(story, 0.3)
        story.machine.stalled = {"io": 0.9}
        await asyncio.sleep(20 * MINUTE)
        assert (story.titles(), story.actions()) == (["everything waits for the disks"], [])

    live(tell)


def test_several_shortages_of_memory_share_their_stops() -> None:
    async def tell(story: Story) -> None:
        short(story)
        story.machine.swap = 0.95
        story.machine.stalled = {"memory": 0.9}
        await asyncio.sleep(10 * MINUTE)
        assert len(story.stopped()) == STOPS

    live(tell)


# Intent


def test_paused_it_watches_and_does_nothing_and_goes_on_afterwards() -> None:
    async def tell(story: Story) -> None:
        await story.world.ask(Paused())
        story.machine.disk = 0.95
        await asyncio.sleep(20 * MINUTE)
        assert (story.news(), story.wishes()) == (["raised disk:/"], [])
        await story.world.ask(Resumed())
        await asyncio.sleep(1)
        assert (story.titles(), story.actions()) == (["/ is nearly full"], ["clean-paths"])

    live(tell)


def test_what_a_person_cancels_is_not_done_to_another_one_at_once() -> None:
    async def tell(story: Story) -> None:
        story.hands["stop-process"].deed = lambda _event: asyncio.sleep(1_000)
        short(story)
        await asyncio.sleep(30 + 75)
        (wish,) = story.world.events("effect", subject="stop-process:worst:1")
        await story.world.ask(EffectCancelRequested(), wish.id)
        await asyncio.sleep(50)
        assert story.stopped() == [8]

    live(tell)


def test_a_wish_that_waited_until_it_was_over_is_not_carried_out() -> None:
    """One slot for all effects, and somebody has it: when the stop's turn comes, there is memory again."""

    async def tell(story: Story) -> None:
        story.hands["clean-paths"].deed = lambda _event: asyncio.sleep(120)
        story.machine.disk = 0.95
        short(story)
        await asyncio.sleep(30 + 75)
        assert story.stopped() == [8]
        story.machine.memory = 0.5
        await asyncio.sleep(5 * MINUTE)
        assert story.hands["stop-process"].began == []
        (end,) = [
            one for one in story.world.events("effect-cancelled") if "replaced" not in json.loads(one.data)
        ]
        assert json.loads(end.data)["why"] == "memory is over in the meantime"

    live(tell, {"patience": "1m"}, daemon={"concurrency": 1})


def test_a_wish_that_waited_too_long_is_not_carried_out_either() -> None:
    async def tell(story: Story) -> None:
        story.hands["clean-paths"].deed = lambda _event: asyncio.sleep(1_000)
        story.machine.disk = 0.95
        short(story)
        await asyncio.sleep(1_100)
        cancelled = {json.loads(event.data)["why"] for event in story.world.events("effect-cancelled")}
        assert "its time was over before it could be begun" in cancelled

    live(tell, daemon={"concurrency": 1})


# Time survives restarts


def outcome(again: bool, machine: Callable[[Machine], None], seconds: int) -> list[tuple[str, int]]:
    """What was wished for, and when, with or without a daemon that dies every 17 seconds."""
    told: list[tuple[str, int]] = []

    async def tell(story: Story) -> None:
        story.hands["stop-process"].helps = lambda _: story.machine.consumers.pop(0)
        machine(story.machine)
        for _ in range(seconds // 17):
            await asyncio.sleep(17)
            if again:
                story.world.checkpoints = MemoryCheckpoints()
                await story.again()
        told.extend((wish["action"], round(second)) for second, wish in story.wishes())

    live(tell)
    return told


def full(machine: Machine) -> None:
    machine.disk = 0.95


def tight(machine: Machine) -> None:
    machine.memory = 0.95
    machine.consumers = [consumer(pid, 9 - pid) for pid in range(2, 8)]


@pytest.mark.parametrize("machine", sampled([full, tight], 2))
def test_restarts_in_between_neither_forget_nor_repeat(machine: Callable[[Machine], None]) -> None:
    without, within = outcome(False, machine, 900), outcome(True, machine, 900)
    assert [action for action, _ in within] == [action for action, _ in without]
    for (_, then), (_, now) in zip(without, within, strict=True):
        assert abs(then - now) <= 20


def test_what_lasted_while_no_daemon_ran_counts_from_when_it_was_seen() -> None:
    async def tell(story: Story) -> None:
        story.machine.memory = 0.95
        await asyncio.sleep(20)
        await story.world.crash()
        await asyncio.sleep(HOUR)
        await story.world.start()
        await asyncio.sleep(20)
        assert story.news() == []  # nobody knows whether it was short all the time
        await asyncio.sleep(15)
        assert story.news() == ["raised memory"]

    live(tell)


def test_what_was_over_when_the_next_daemon_came_is_called_off() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.95
        await asyncio.sleep(30)
        await story.world.crash()
        story.machine.disk = 0.3
        await asyncio.sleep(HOUR)
        await story.world.start()
        await asyncio.sleep(10)
        assert story.titles() == ["/ is nearly full", "resolved: / is nearly full"]

    live(tell)


# Reminders, silences, settings


def test_people_are_reminded_while_it_lasts() -> None:
    async def tell(story: Story) -> None:
        story.machine.stalled, story.machine.interval = {"io": 0.9}, 60.0
        await asyncio.sleep(2.25 * HOUR)
        assert story.titles() == [
            "everything waits for the disks",
            *["still: everything waits for the disks"] * 2,
        ]

    live(tell, notify={"remind": "1h"})


def test_a_disk_that_is_not_to_be_watched_any_more_is_called_off() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.95
        await asyncio.sleep(10)
        resources = {**story.world.settings.model_dump(by_alias=True)["resources"], "disk": []}
        story.world.settings = Settings.model_validate({"resources": resources})
        await asyncio.sleep(3 * MINUTE)
        assert story.news() == ["raised disk:/", "cleared disk:/"]
        assert story.titles()[-1] == "no longer watched: / is nearly full"

    live(tell)


def test_silenced_measures_are_held_back_and_the_rest_goes_on() -> None:
    async def tell(story: Story) -> None:
        await story.world.ask(SilenceAdded(expires_us=HOUR * 1_000_000, why="work"), "clean-paths:*")
        story.machine.disk = 0.95
        await asyncio.sleep(10 * MINUTE)
        assert (story.actions(), story.titles()) == ([], ["/ is nearly full"])
        await asyncio.sleep(51 * MINUTE)
        assert story.actions()[0] == "clean-paths"

    live(tell)


def test_explanations_say_what_is_waited_for() -> None:
    async def tell(story: Story) -> None:
        story.machine.disk = 0.95
        await asyncio.sleep(35)
        story.machine.nudge.set()
        await asyncio.sleep(15)
        assert any(note.startswith("disk:/: clean-paths is given") for note in await story.notes())

    live(tell)
