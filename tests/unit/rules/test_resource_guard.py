"""`resource_guard`: what is told, what is wished, what explains what, and how it is said to be over."""

from typing import Any

import pytest

from pulse_core.model.kinds import ConditionCleared, ConditionRaised, DaemonStarted, Effect
from pulse_core.rules.survival.resource_guard import (
    describe_plan,
    describe_trend,
    measured_share,
    resource_guard,
    title_of,
)
from pulse_core.testing import Story, given

RESOURCES: dict[str, Any] = {
    "clean": ["/cache/one", "/cache/two"],
    "clean_age": "2h",
    "sessions": {"root": "/srv/sessions", "keep": "7d"},
    "stop": ["batch", "train"],
    "patience": "1m",
}
DISK, TOPIC = "disk:/", "notify:resource:disk:/"
GIB = 1 << 30


def a_machine(**resources: Any) -> Story:
    return given(resource_guard, settings={"resources": {**RESOURCES, **resources}})


def short(story: Story, name: str, value: float | None = 0.93) -> Story:
    """A shortage that is proven now."""
    story.event(ConditionRaised(evidence=f"{name} was high for 30 s", value=value, bound=0.9), name)
    return story


def measured(story: Story, **data: Any) -> Story:
    return story.sample("system-resource", memory_total=16 * GIB, **data)


def disks(used: float, inodes: float = 0.2) -> dict[str, Any]:
    return {"disks": {"/": {"used": used, "inodes": inodes}}}


def keys(story: Story) -> list[str]:
    story.tick()
    return [effect.key for effect in story.emitted]


def settle(story: Story) -> None:
    for effect in story.emitted:
        story.acked(effect.key)


# Telling


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("memory", "memory is short"),
        ("swap", "swap is nearly full"),
        ("pressure:memory", "everything waits for memory"),
        ("pressure:io", "everything waits for the disks"),
        ("disk:/srv", "/srv is nearly full"),
        ("inodes:/srv", "/srv has hardly any inodes left"),
        ("unmeasured:/srv", "/srv does not tell how full it is"),
    ],
)
def test_every_shortage_is_told_by_its_name_and_noted(name: str, title: str) -> None:
    assert title_of(name) == title
    story = measured(short(a_machine(stop=[], clean=[], sessions=None), name))
    story.tick()
    notice = story.expect("notify", key=f"notify:resource:{name}", title=title)
    assert notice.samples == (1,)
    assert notice.params["text"].startswith(f"{name} was high for 30 s. Pulse does nothing about it")
    story.expect_note(f"{name}: the settings allow no action against it")


def test_a_log_that_cannot_be_written_is_told_with_what_becomes_of_what_is_done_meanwhile() -> None:
    story = short(a_machine(), "unwritten")
    story.tick()
    notice = story.expect("notify", key="notify:resource:unwritten", title="the log can't be written")
    text = "unwritten was high for 30 s. Pulse acts from memory, and writes it down when there is room: make some."
    assert notice.params["text"] == text


def test_what_is_no_shortage_is_none_of_its_business() -> None:
    story = short(short(a_machine(), "network"), "llm:http://x/")
    assert keys(story) == []
    assert [layer.notes for layer in story.layers] == [()]


@pytest.mark.parametrize(
    ("name", "resources", "words"),
    [
        (
            "disk:/",
            {},
            "Pulse deletes what nobody touched for 2 h in /cache/one, /cache/two,"
            " and if that does not help archives what nobody touched for 7 days in /srv/sessions.",
        ),
        (
            "disk:/",
            {"sessions": None},
            "Pulse deletes what nobody touched for 2 h in /cache/one, /cache/two.",
        ),
        ("inodes:/", {"clean": []}, "Pulse archives what nobody touched for 7 days in /srv/sessions."),
        (
            "inodes:/",
            {"clean": [], "sessions": None},
            "Pulse does nothing about it: [resources] has neither clean nor sessions.",
        ),
        (
            "disk:/",
            {"clean": [], "sessions": None},
            "Pulse does nothing about it: [resources] has neither clean nor sessions.",
        ),
        ("memory", {}, "If it lasts for 1 min, Pulse stops the worst of batch, train."),
        ("swap", {"stop": []}, "Pulse does nothing about it: [resources] allows to stop nobody."),
        ("pressure:io", {}, "Pulse does nothing about it."),
        ("unmeasured:/", {}, "Pulse does nothing about it."),
    ],
)
def test_people_are_told_what_will_be_done_or_what_they_could_allow(
    name: str, resources: dict[str, Any], words: str
) -> None:
    assert describe_plan(name, a_machine(**resources).snapshot) == words


def test_a_full_disk_is_told_of_and_cleaned_in_one_tick() -> None:
    story = short(measured(a_machine(), **disks(0.93)), DISK)
    assert keys(story) == ["clean-paths:/", TOPIC]
    wish = story.expect("clean-paths", near="/", for_condition=DISK)
    assert wish.params["roots"] == ["/cache/one", "/cache/two"]
    assert wish.params["older_than_us"] == 7_200_000_000
    assert (wish.survival, wish.samples, wish.reason) == (True, (1,), "disk:/ was high for 30 s")
    story.expect_note("disk:/: clean-paths is due")
    assert keys(story) == []
    story.expect_note("disk:/: clean-paths is under way")


def test_an_archive_names_neither_roots_nor_an_age() -> None:
    story = short(a_machine(clean=[]), DISK)
    assert keys(story) == ["archive-sessions", TOPIC]
    assert story.expect("archive-sessions").params == {"near": "/", "for_condition": DISK}


def test_the_next_step_is_not_overslept() -> None:
    story = short(a_machine(), DISK)
    story.tick()
    settle(story)
    story.after("20s").tick()
    assert story.verdict.tick_ms == 40_001
    assert keys(story.after("40s")) == ["archive-sessions"]


@pytest.mark.parametrize(
    ("first", "second", "wish"),
    [("disk:/", "disk:/srv", "archive-sessions"), ("memory", "swap", "stop-process")],
)
def test_who_archives_or_stops_is_alone_with_that(first: str, second: str, wish: str) -> None:
    story = short(a_machine(clean=[]), first).after("1m")
    measured(story, consumers=[consumer(7, 2)]).tick()
    key = story.expect(wish).key
    story.cleared(first)
    story.after("1s").raised(second)
    measured(story.after("2m"), consumers=[consumer(7, 2)]).tick()
    assert key in story.snapshot.effects.keys
    story.expect_nothing(wish)
    story.expect_note(f"{second}: {wish} is under way")


def round_over(story: Story, *, fail: bool = False, **result: Any) -> None:
    """Both measures are taken, and have had their time; result: of each."""
    for _ in range(2):
        story.tick()
        for effect in story.emitted:
            if fail and effect.action != "notify":
                story.failed(effect.key, "no room")
            else:
                story.acked(effect.key, **result)
        story.after("1m")


@pytest.mark.parametrize(
    ("used", "words"), [(0.88, "what was tried did not help enough"), (0.92, "nothing helped")]
)
def test_what_helped_but_not_enough_is_not_called_no_help(used: float, words: str) -> None:
    story = measured(short(a_machine(), DISK), **disks(used))
    round_over(story, bytes=5 * 2**20)
    story.tick()
    notice = story.expect("notify", key=TOPIC, title=f"/ is nearly full, and {words}")
    assert "clean-paths (freed 5.0 MiB), archive-sessions (freed 5.0 MiB)" in str(notice.params["text"])


def test_a_measure_that_freed_nothing_says_so() -> None:
    story = measured(short(a_machine(), DISK), **disks(0.95))
    round_over(story, bytes=0)
    story.tick()
    assert "clean-paths (freed nothing)" in str(story.expect("notify", key=TOPIC).params["text"])


def test_when_nothing_has_helped_that_is_told_once_with_what_was_tried() -> None:
    story = measured(short(a_machine(), DISK), **disks(0.95))
    round_over(story)
    assert keys(story) == [TOPIC]
    notice = story.expect("notify", key=TOPIC, title="/ is nearly full, and nothing helped")
    assert notice.params["text"] == (
        "Tried: clean-paths (done), archive-sessions (done). It was first seen 2 min ago; it was 93.0%, and is 95.0% now."
    )
    assert notice.samples == (1,)
    settle(story)
    assert [effect for effect in story.ticks(every="1m", times=5) if effect.action == "notify"] == []


def test_a_rest_after_all_measures_is_not_called_time_for_the_last_one_to_help() -> None:
    story = measured(short(a_machine(), DISK), **disks(0.95))
    story.tick()
    settle(story)
    story.tick()
    story.expect_note("disk:/: clean-paths is given 1 min to help")
    story = measured(short(a_machine(), DISK), **disks(0.95))
    round_over(story)
    story.tick()
    story.expect_note("disk:/: clean-paths is due in 9 min")


def test_a_measure_that_fails_is_told_with_its_words() -> None:
    story = short(a_machine(), DISK)
    round_over(story, fail=True)
    text = str(story.expect("notify", key=TOPIC).params["text"]) if keys(story) else ""
    assert text.startswith(
        "Tried: clean-paths (no room), archive-sessions (no room). It was first seen 2 min ago."
    )


def test_a_failure_without_a_word_and_a_measure_under_way_are_told_as_such() -> None:
    story = short(a_machine(), DISK)
    story.tick()
    story.failed("clean-paths:/", "")
    story.acked(TOPIC)
    assert keys(story) == ["archive-sessions"]
    assert keys(story) == []
    story.event(ConditionCleared(evidence="well"), DISK)
    story.tick()
    notice = story.expect("notify", key=TOPIC, over=True)
    assert (
        notice.params["text"]
        == "It is over; tried before: clean-paths (not done), archive-sessions (under way)."
    )


def test_that_nobody_could_be_stopped_is_told_with_the_reason() -> None:
    story = measured(short(a_machine(), "memory"), memory=0.95, consumers=[])
    assert keys(story) == ["notify:resource:memory"]
    settle(story)
    measured(story.after("1m"), memory=0.95, consumers=[]).tick()
    notice = story.expect("notify", title="memory is short, and nothing helped")
    assert notice.params["text"].startswith(
        "Nothing could be tried: nobody who may be stopped holds much. It was first seen 1 min ago; it was 93.0%"
    )


def test_nobody_is_stopped_who_was_not_looked_at() -> None:
    story = short(a_machine(), "memory").after("1m")
    assert keys(story) == ["notify:resource:memory"]
    story.expect_note("memory: waits for a fresh look at who uses memory")
    assert story.verdict.tick_ms == 5_001


def consumer(pid: int, rss: float, swap: float = 0.0) -> dict[str, Any]:
    sizes = {"rss": round(rss * GIB), "swap": round(swap * GIB)}
    return {"pid": pid, "started": pid * 10, "name": "batch", "pattern": "batch", **sizes}


def test_who_is_stopped_is_named_with_what_it_holds() -> None:
    story = short(a_machine(), "memory").after("1m")
    measured(story, consumers=[consumer(7, 1), consumer(8, 2, 0.5), consumer(9, 0.5)])
    story.tick()
    wish = story.expect("stop-process", key="stop-process:worst:1", for_condition="memory")
    assert wish.params["consumer"] == {"pid": 8, "started": 80, "pattern": "batch"}
    assert (wish.survival, wish.samples) == (True, (1,))
    assert wish.reason == (
        "memory: process 8 (batch) holds 2.0 GiB of memory and 512.0 MiB of swap, the most of what may be stopped"
    )


# Root causes


@pytest.mark.parametrize(
    ("name", "cause", "explained"),
    [
        ("pressure:memory", "memory", True),
        ("swap", "memory", True),
        ("swap", "pressure:memory", True),
        ("pressure:io", "memory", True),
        ("pressure:io", "pressure:memory", True),
        ("pressure:io", "swap", False),
        ("pressure:memory", "swap", False),
        ("memory", "swap", False),
        ("disk:/", "memory", False),
    ],
)
def test_who_is_short_of_memory_is_not_told_of_what_comes_with_it(
    name: str, cause: str, explained: bool
) -> None:
    story = short(short(a_machine(), name), cause)
    assert (f"notify:resource:{name}" not in keys(story)) is explained
    if explained:
        story.expect_note(f"{name}: explained by {cause}")


# How it stands


SAMPLE: dict[str, Any] = {
    "memory": 0.5,
    "swap": 0.25,
    "psi": {"memory": {"full": 0.1, "some": 0.9}, "io": {"full": 0.2}},
    "disks": {"/": {"used": 0.7, "inodes": 0.3}},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory", 0.5),
        ("swap", 0.25),
        ("pressure:memory", 0.1),
        ("pressure:io", 0.2),
        ("disk:/", 0.7),
        ("inodes:/", 0.3),
        ("unmeasured:/", None),
        ("disk:/gone", None),
        ("network", None),
    ],
)
def test_a_sample_says_how_each_resource_stands(name: str, value: float | None) -> None:
    assert measured_share(name, measured(a_machine(), **SAMPLE).snapshot) == value
    assert measured_share(name, measured(a_machine()).snapshot) is None
    assert measured_share(name, a_machine().snapshot) is None


@pytest.mark.parametrize(
    ("value", "sampled", "words"),
    [(0.93, True, "; it was 93.0%, and is 70.0% now"), (None, True, ""), (0.93, False, "")],
)
def test_its_course_is_told_where_it_was_measured(value: float | None, sampled: bool, words: str) -> None:
    story = short(a_machine(), DISK, value)
    if sampled:
        measured(story, **SAMPLE)
    condition = story.snapshot.conditions[DISK]
    assert condition is not None
    assert describe_trend(DISK, condition, story.snapshot)[1] == words


HELPED, IN_VAIN = "what was tried did not help enough", "nothing helped"


@pytest.mark.parametrize(
    ("value", "used", "words"), [(0.02, 0.0, HELPED), (0.02, 0.001, IN_VAIN), (None, 0.0, IN_VAIN)]
)
def test_better_is_what_is_less_by_a_part_that_one_can_see(
    value: float | None, used: float, words: str
) -> None:
    story = measured(short(a_machine(), DISK, value), **disks(used))
    condition = story.snapshot.conditions[DISK]
    assert condition is not None
    assert describe_trend(DISK, condition, story.snapshot)[0] == words


# The end


def test_who_was_told_is_told_that_it_is_over_and_what_helped() -> None:
    story = short(a_machine(), DISK)
    story.tick()
    settle(story)
    story.after("5s").tick()
    measured(story.after("10s"), **disks(0.5)).event(ConditionCleared(evidence="well"), DISK)
    assert keys(story) == [TOPIC]
    notice = story.expect("notify", over=True, title="resolved: / is nearly full")
    assert notice.params["text"] == "It is over; tried before: clean-paths (done); it is 50.0% now."
    assert notice.samples == (1,)
    settle(story)
    assert story.ticks(every="1h", times=5) == []


def test_without_a_measure_or_a_sample_it_is_just_over() -> None:
    story = short(a_machine(stop=[]), "memory")
    story.tick()
    settle(story)
    story.event(ConditionCleared(evidence="well"), "memory")
    story.tick()
    assert story.expect("notify", over=True).params["text"] == "It is over."


def test_of_what_still_stands_and_what_nobody_was_told_nothing_is_called_off() -> None:
    story = short(short(a_machine(clean=[], sessions=None), DISK), "inodes:/")
    assert keys(story) == [TOPIC, "notify:resource:inodes:/"]
    assert keys(story) == []  # the notices wait for the network: nobody knows yet
    settle_all(story)
    story.event(ConditionCleared(evidence="well"), "inodes:/")
    assert keys(story) == ["notify:resource:inodes:/"]


def settle_all(story: Story) -> None:
    for key in tuple(story.snapshot.effects.keys):
        story.acked(key)


def test_a_restart_in_between_repeats_nothing_and_forgets_no_end() -> None:
    story = short(a_machine(stop=[]), "memory")
    story.tick()
    settle(story)
    assert keys(story.restart()) == []
    story.event(ConditionCleared(evidence="well"), "memory")
    assert keys(story.restart()) == ["notify:resource:memory"]


def test_an_end_that_waited_for_its_beginning_to_be_told_still_says_what_was_done() -> None:
    story = short(a_machine(), DISK)
    story.tick()
    story.acked("clean-paths:/")
    story.begun(TOPIC)
    story.cleared(DISK)
    assert keys(story) == []  # the first notice is still on its way
    story.restart()
    story.acked(TOPIC)
    story.tick()
    assert (
        story.expect("notify", key=TOPIC, over=True).params["text"]
        == "It is over; tried before: clean-paths (done)."
    )


def test_an_end_before_which_nothing_was_done_says_nothing_of_an_episode_before_it() -> None:
    story = short(a_machine(), DISK)
    story.tick()
    settle(story)
    story.cleared(DISK)
    story.tick()
    settle(story)
    story.after("1h").tick()
    short(story, DISK).event(Effect(action="notify", key=TOPIC, params={"title": "x"}, survival=True), TOPIC)
    story.acked(TOPIC)
    story.cleared(DISK)
    story.tick()
    assert story.expect("notify", key=TOPIC, over=True).params["text"] == "It is over."


def told_of(topic: str) -> Story:
    story = a_machine()
    story.event(
        Effect(action="notify", key=f"notify:{topic}", params={"title": "x"}, survival=True),
        f"notify:{topic}",
    )
    story.acked(f"notify:{topic}")
    return story


@pytest.mark.parametrize(
    "topic", ["llm:http://127.0.0.1:4000/", "network", "engine:rollback", "log:/var/log/x"]
)
def test_what_others_tell_is_not_called_off(topic: str) -> None:
    assert keys(told_of(topic)) == []


def test_a_shortage_that_has_no_name_any_more_is_called_off_all_the_same() -> None:
    story = told_of("resource:of-yesterday")
    story.tick()
    story.expect("notify", over=True, title="resolved: of-yesterday")


def test_a_daemon_looks_before_it_cleans_for_what_an_earlier_one_saw() -> None:
    story = measured(short(a_machine(), DISK), **disks(0.93))
    story.after("10s").event(DaemonStarted(pid=2, version="1"))
    story.after("1s").tick()
    story.expect_nothing("clean-paths")
    measured(story.after("1s"), **disks(0.93)).tick()
    story.expect("clean-paths")
