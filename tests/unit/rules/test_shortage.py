"""Which measure is due, from the settings and from what was tried, moment by moment."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pulse_core.model.moment import Moment
from pulse_core.model.names import ARCHIVE_SESSIONS, CLEAN_PATHS, STOP_PROCESS, SYSTEM_RESOURCE
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.conditions import Condition, Conditions, Measure
from pulse_core.projections.effects import Effects
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.resource_guard import (
    ShortageStep,
    allowed_actions,
    consumers,
    next_step,
    title_of,
)
from pulse_core.settings.settings import Settings

SECOND, MINUTE, HOUR = 1_000_000, 60, 3_600
RESOURCES = {"clean": ["/cache"], "sessions": {"root": "/sessions"}, "stop": ["batch"]}
GIB = 1 << 30


def at(seconds: float, boot: str = "boot") -> Moment:
    return Moment(10**15 + round(seconds * SECOND), boot, round(seconds * SECOND))


def done(action: str, seconds: float, worked: bool = True) -> Measure:
    return Measure(action, at(seconds - 1), at(seconds), worked)


class Case:
    """A condition that stands since 100 s, what was tried, and the sample taken last."""

    def __init__(self, name: str, tried: Sequence[Measure] = (), **resources: Any) -> None:
        self.name = name
        self.condition = Condition(at(100), "high", at(100), "it is so", 0.95, 0.9, tuple(tried))
        self.settings = Settings.model_validate({"resources": {**RESOURCES, **resources}})
        self.settled: dict[str, Moment] = {}
        self.others: dict[str, Condition] = {}
        self.sampled: float | None = None
        self.consumers: list[Mapping[str, Any]] = [held(7, 2)]

    def at(self, seconds: float) -> ShortageStep:
        sampled = at(seconds - 1 if self.sampled is None else self.sampled)
        data = {"memory_total": 16 * GIB, "consumers": self.consumers}
        facts = State(
            effects=Effects(settled_at=self.settled),
            conditions=Conditions({**self.others, self.name: self.condition}),
        )
        windows = {SYSTEM_RESOURCE: Window((Sample(1, SYSTEM_RESOURCE, sampled, data),))}
        return next_step(self.name, self.condition, Snapshot(1, at(seconds), self.settings, windows, facts))


def held(pid: int, rss: float, swap: float = 0) -> Mapping[str, Any]:
    sizes = {"rss": round(rss * GIB), "swap": round(swap * GIB)}
    return {"pid": pid, "started": 1, "name": "b", "pattern": "batch", **sizes}


def action(due: ShortageStep) -> str | None:
    return due.wish.action if due.wish else None


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("disk:/", (CLEAN_PATHS, ARCHIVE_SESSIONS)),
        ("inodes:/srv", (CLEAN_PATHS, ARCHIVE_SESSIONS)),
        ("memory", (STOP_PROCESS, STOP_PROCESS, STOP_PROCESS)),
        ("swap", (STOP_PROCESS, STOP_PROCESS, STOP_PROCESS)),
        ("pressure:memory", (STOP_PROCESS, STOP_PROCESS, STOP_PROCESS)),
        ("pressure:io", ()),
        ("unmeasured:/", ()),
        ("network", ()),
    ],
)
def test_each_shortage_has_its_measures(name: str, actions: tuple[str, ...]) -> None:
    case = Case(name)
    assert allowed_actions(name, Snapshot(1, at(1), case.settings)) == actions


ROUND = [done(CLEAN_PATHS, 110), done(ARCHIVE_SESSIONS, 180)]


@pytest.mark.parametrize(
    ("tried", "seconds", "due", "wait", "vain"),
    [
        ([], 100, CLEAN_PATHS, None, None),
        ([Measure(CLEAN_PATHS, at(101))], 500, None, None, None),  # under way for long
        (ROUND[:1], 150, None, 20, None),
        (ROUND[:1], 170, ARCHIVE_SESSIONS, None, None),
        ([done(CLEAN_PATHS, 110, worked=False)], 110, ARCHIVE_SESSIONS, None, None),
        (ROUND, 239, None, 541, None),
        (ROUND, 240, None, 540, 240),
        (ROUND, 779, None, 1, 240),
        (ROUND, 780, CLEAN_PATHS, None, 240),
        ([*ROUND, done(CLEAN_PATHS, 800)], 850, None, 10, 240),
        ([*ROUND, done(CLEAN_PATHS, 800)], 860, ARCHIVE_SESSIONS, None, 240),
        ([*ROUND, done(CLEAN_PATHS, 800), done(ARCHIVE_SESSIONS, 900)], 900, None, 1200, 240),
        ([ROUND[0], done(ARCHIVE_SESSIONS, 180, worked=False)], 180, None, 600, 180),
    ],
)
def test_the_next_measure_is_due_when_the_last_one_has_had_its_time(
    tried: list[Measure], seconds: float, due: str | None, wait: float | None, vain: float | None
) -> None:
    found = Case("disk:/", tried).at(seconds)
    assert action(found) == due
    assert found.wait_us == (None if wait is None else wait * SECOND)
    assert found.vain == (None if vain is None else at(vain))


def test_rounds_come_at_most_every_six_hours() -> None:
    tried = [done(action, 1_000) for _ in range(20) for action in (CLEAN_PATHS, ARCHIVE_SESSIONS)]
    assert Case("disk:/", tried).at(1_000).wait_us == 6 * HOUR * SECOND


def test_a_patience_beyond_that_is_respected() -> None:
    tried = [done(action, 1_000) for _ in range(20) for action in (CLEAN_PATHS, ARCHIVE_SESSIONS)]
    assert Case("disk:/", tried, patience="12h").at(1_000).wait_us == 12 * HOUR * SECOND


def test_when_no_more_measures_are_remembered_their_keys_still_say_when_it_was() -> None:
    case = Case("disk:/", [done(CLEAN_PATHS, 1_000), done(ARCHIVE_SESSIONS, 1_000)] * 25)
    case.settled = {"clean-paths:/": at(90_000)}
    assert case.at(90_010).wait_us == (6 * HOUR - 10) * SECOND
    assert action(case.at(90_000 + 6 * HOUR)) == CLEAN_PATHS


def test_what_was_cleaned_in_an_earlier_episode_is_given_its_time_too() -> None:
    case = Case("disk:/")
    case.settled = {"clean-paths:/": at(90)}
    assert case.at(100).wait_us == 50 * SECOND
    assert action(case.at(150)) == CLEAN_PATHS


def test_what_was_tried_against_its_inodes_counts_for_a_disk() -> None:
    case = Case("disk:/")
    case.others = {"inodes:/": case.condition._replace(measures=(done(CLEAN_PATHS, 110),))}
    assert case.at(120).wait_us == 50 * SECOND


def test_what_was_tried_against_its_disk_counts_for_inodes() -> None:
    case = Case("inodes:/")
    case.others = {"disk:/": case.condition._replace(measures=(done(CLEAN_PATHS, 110),))}
    assert case.at(120).wait_us == 50 * SECOND
    assert action(case.at(170)) == ARCHIVE_SESSIONS


def set_back(measure: Measure) -> Measure:
    """The same, with a wall clock that was set back by a day before it."""
    assert measure.settled is not None
    earlier = [then._replace(at=then.at - 86_400 * SECOND) for then in (measure.wished, measure.settled)]
    return measure._replace(wished=earlier[0], settled=earlier[1])


@pytest.mark.parametrize("order", [("disk:/", "inodes:/"), ("inodes:/", "disk:/")])
def test_a_clock_that_is_set_back_does_not_change_what_was_tried_last(order: tuple[str, str]) -> None:
    case = Case(order[0], [done(CLEAN_PATHS, 110)])
    archived = case.condition._replace(measures=(set_back(done(ARCHIVE_SESSIONS, 180)),))
    case.others = {order[1]: archived}
    assert case.at(200).vain is None
    assert case.at(200).wait_us == 580 * SECOND
    assert action(case.at(780)) == CLEAN_PATHS


def test_a_clock_that_is_set_back_makes_no_look_fresh_that_is_older_than_the_last_stop() -> None:
    stopped = set_back(done(STOP_PROCESS, 200))
    case = Case("memory", [stopped], patience="2s")
    assert stopped.settled is not None
    case.settled, case.sampled = {"stop-process:worst:1": stopped.settled}, 199
    assert case.at(203).why == "waits for a fresh look at who uses memory"


STOPPED = [done(STOP_PROCESS, 200), done(STOP_PROCESS, 300), done(STOP_PROCESS, 400)]


def test_since_when_all_is_known_to_be_in_vain_is_not_forgotten_by_another_round() -> None:
    case = Case("memory", STOPPED)
    case.settled = {f"stop-process:worst:{slot}": at(100 + 100 * slot) for slot in (1, 2, 3)}
    assert (case.at(459).vain, case.at(460).vain) == (None, at(460))
    again = case.at(1_000)
    assert (action(again), again.vain) == (STOP_PROCESS, at(460))
    case.consumers = []
    nobody = case.at(1_000)
    assert (nobody.wish, nobody.vain) == (None, at(460))


@pytest.mark.parametrize("name", ["memory", "swap", "pressure:memory"])
def test_a_stop_waits_for_a_person_first(name: str) -> None:
    case = Case(name)
    case.consumers = [held(7, 2, 2)]
    assert case.at(159).wait_us == SECOND
    wish = case.at(160).wish
    assert wish is not None
    assert (wish.key, wish.not_after) == ("stop-process:worst:1", at(220).at)
    assert wish.params == {"consumer": {"pid": 7, "started": 1, "pattern": "batch"}, "for_condition": name}


@pytest.mark.parametrize("worked", [True, False])
def test_the_next_stop_waits_for_the_last_one_whether_that_worked_or_not(worked: bool) -> None:
    case = Case("memory", [done(STOP_PROCESS, 200, worked)])
    case.settled = {"stop-process:worst:1": at(200)}
    assert case.at(259).wait_us == SECOND
    wish = case.at(260).wish
    assert wish is not None
    assert wish.key == "stop-process:worst:2"


def test_a_budget_that_is_spent_is_free_again_slot_by_slot() -> None:
    case = Case("memory")
    case.settled = {f"stop-process:worst:{slot}": at(100 + 100 * slot) for slot in (1, 2, 3)}
    held_back = case.at(500)
    assert (held_back.wish, held_back.wait_us) == (None, 300 * SECOND)
    assert held_back.why == "budget: 3 stops in 10 min are spent; the next one in 5 min"
    wish = case.at(800).wish
    assert wish is not None
    assert wish.key == "stop-process:worst:1"


@pytest.mark.parametrize(
    ("now", "sampled", "fresh"),
    [(170, 160, True), (170, 155, True), (170, 154.999999, False), (170, 99, False), (900, 880, False)],
)
def test_who_is_stopped_was_looked_at_a_moment_ago(now: float, sampled: float, fresh: bool) -> None:
    case = Case("memory")
    case.sampled = sampled
    assert (case.at(now).wish is not None) == fresh


def test_a_look_from_before_the_last_stop_is_not_fresh() -> None:
    case = Case("memory", [done(STOP_PROCESS, 200)], patience="2s")
    case.settled, case.sampled = {"stop-process:worst:1": at(200)}, 199
    assert case.at(203).why == "waits for a fresh look at who uses memory"


def test_only_who_holds_a_hundredth_of_all_memory_is_worth_stopping() -> None:
    case = Case("memory")
    case.consumers = [held(7, 0.15)]
    nobody = case.at(160)
    assert (nobody.wish, nobody.vain) == (None, at(160))
    case.consumers = [held(7, 0.17)]
    assert case.at(160).wish is not None


def test_the_next_measure_is_not_a_microsecond_early() -> None:
    waiting = Case("disk:/", ROUND[:1]).at(170 - 1 / SECOND)
    assert (waiting.wish, waiting.wait_us) == (None, 1)
    case = Case("memory")
    case.settled = {f"stop-process:worst:{slot}": at(100 + 100 * slot) for slot in (1, 2, 3)}
    assert case.at(800 - 1 / SECOND).wait_us == 1


@pytest.mark.parametrize(("worked", "pid"), [(True, 7), (False, 8)])
def test_who_could_not_be_stopped_is_followed_by_the_next_worst(worked: bool, pid: int) -> None:
    case = Case("memory", [done(STOP_PROCESS, 200, worked)])
    case.settled = {"stop-process:worst:1": at(200)}
    case.consumers = [held(7, 3), held(8, 2)]
    wish = case.at(300).wish
    assert wish is not None
    assert wish.params["consumer"]["pid"] == pid


@pytest.mark.parametrize(("name", "pids"), [("memory", [7, 9, 8]), ("swap", [8, 7, 9])])
def test_the_worst_holds_most_of_what_is_short(name: str, pids: list[int]) -> None:
    sample = {"memory_total": 16 * GIB, "consumers": [held(9, 2), held(8, 1, 3), held(7, 2)]}
    assert [one["pid"] for one in consumers(name, sample)] == pids


def test_a_hundredth_of_all_memory_is_enough() -> None:
    sizes = ((1, 0, 1), (2, 1, 0), (3, 0, 0))
    held_by = [{"pid": pid, "rss": rss, "swap": swap} for pid, rss, swap in sizes]
    found = consumers("memory", {"memory_total": 100, "consumers": held_by})
    assert [one["pid"] for one in found] == [2, 1]
    assert consumers("memory", {"memory_total": 100}) == []


def test_odd_paths_make_no_odd_keys() -> None:
    path = "/" + "x" * 600 + "\n;y"
    case = Case(f"disk:{path}", disk=[{"path": path}])
    wish = case.at(100).wish
    assert wish is not None
    assert len(wish.key) <= 420
    assert wish.params["near"] == path


@pytest.mark.parametrize("name", ["network", "llm:http://x", "log:/var/log/x", "disk:", "memory:x"])
def test_conditions_of_others_are_none_of_its_business(name: str) -> None:
    assert title_of(name) == ""
