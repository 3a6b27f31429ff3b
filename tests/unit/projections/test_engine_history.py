"""What the log says of the engine's commits: which were before, which was good, and which is on probation."""

import time

import pytest

from pulse_core.composition import FOLD
from pulse_core.model.kinds import (
    DaemonStopped,
    EngineChangeStarted,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    PromoteRequested,
)
from pulse_core.projections.engine import fault_identity, fault_words
from pulse_core.testing import Story, given
from tests.events import event

MINUTE = 60_000_000
WATCH = 10 * MINUTE


def promoted(story: Story, commit: str) -> Story:
    before = story.snapshot.engine.commit
    story.event(EnginePromoted(previous=before, watch_us=WATCH), commit)
    return story


def back(story: Story, commit: str) -> Story:
    """A rollback by hand to the one before, under another name."""
    engine = story.snapshot.engine
    story.event(EngineRolledBack(rejected=engine.commit, to=engine.previous, why="by hand"), commit)
    return story


def many(*commits: str, apart: str = "1h") -> Story:
    story = given()
    for commit in commits:
        promoted(story, commit).after(apart)
    return story


def test_rollbacks_go_back_one_by_one_to_the_first() -> None:
    story = many("a", "b", "c", "d")
    assert story.snapshot.engine.previous == "c"
    assert back(story, "c2").snapshot.engine.previous == "b"
    assert back(story, "b2").snapshot.engine.previous == "a"
    assert back(story, "a2").snapshot.engine.previous == ""


def test_what_is_promoted_after_a_rollback_comes_after_what_was_gone_back_to() -> None:
    story = back(many("a", "b", "c"), "b2")
    assert promoted(story, "d").snapshot.engine.earlier == ("a", "b2")


def test_a_rollback_to_one_that_is_not_among_them_leaves_them_as_they_are() -> None:
    story = many("a", "b")
    story.event(EngineRolledBack(rejected="b", to="elsewhere", why="by hand"), "x")
    assert story.snapshot.engine.earlier == ("a",)


@pytest.mark.parametrize("cut", [0, 2])
def test_a_stop_during_the_first_promote_is_no_crash_in_it(cut: int) -> None:
    asked = event(1, PromoteRequested(previous=""), "a", id_="asked")
    begun, stopped = event(2, EngineChangeStarted(), "asked"), event(3, DaemonStopped(pid=1, reason="x"))
    rows = [asked, begun, stopped]
    assert FOLD(FOLD(FOLD.start, rows[:cut]), rows[cut:]).engine.started == ()


def test_what_was_good_is_so_again_at_once() -> None:
    story = many("a", "b")
    engine = back(story, "a2").snapshot.engine
    assert engine.good == "a"
    assert not engine.is_on_probation(story.now)
    assert promoted(story, "c").snapshot.engine.good == "a2"


def test_what_never_stayed_is_watched_after_a_rollback_to_it_and_is_not_good_before() -> None:
    story = many("a", "b")  # an hour each
    promoted(story, "hasty").after("5s")
    promoted(story, "newer").after("5s")
    engine = back(story, "hasty2").snapshot.engine
    assert engine.good == "b"
    assert engine.is_on_probation(story.now)
    assert engine.previous == "b"
    assert promoted(story.after("5s"), "next").snapshot.engine.good == "b"


def test_what_is_watched_after_a_rollback_is_good_when_it_has_stayed() -> None:
    story = many("a", "b")
    promoted(story, "hasty").after("5s")
    back(promoted(story, "newer"), "hasty2")
    assert story.snapshot.engine.last_good(story.now) == "b"
    story.after("11m")
    assert story.snapshot.engine.last_good(story.now) == "hasty2"
    assert promoted(story, "next").snapshot.engine.good == "hasty2"


NO = "ValueError: no (rules/old.py:3)"
ENDED = "took longer than 250 ms, and its host was ended (rules/old.py:3)"
MUTE = "its host ended between two ticks"
OTHER = ("rules/other.py",)


def erred(
    story: Story, message: str, subject: str = "rule:old", ended: bool = False, times: int = 1
) -> Story:
    """Errors of the commit in force."""
    commit = story.snapshot.engine.commit
    for _ in range(times):
        story.event(ErrorReported(message=message, commit=commit, ended=ended), subject)
    return story


def counted(story: Story) -> tuple[int, int]:
    """The errors and breakdowns that count against the commit in force."""
    engine = story.snapshot.engine
    return len(engine.errors), len(engine.breakdowns)


def replaced(story: Story, commit: str, changed: tuple[str, ...] | None) -> Story:
    """A promote that changed these files."""
    before = story.snapshot.engine.commit
    story.event(EnginePromoted(previous=before, watch_us=WATCH, changed=changed), commit)
    return story


Fault = tuple[str, str, bool]


@pytest.mark.parametrize(
    ("before", "after", "changed", "is_excused"),
    [
        ((NO, "rule:old", False), (NO, "rule:old", False), OTHER, True),
        ((NO, "rule:old", False), ("ValueError: no (rules/old.py:9)", "rule:old", False), OTHER, True),
        ((NO, "rule:old", False), (NO, "rule:old", False), ("rules/old.py",), False),
        ((NO, "rule:old", False), (NO, "rule:old", False), None, False),
        ((NO, "rule:old", False), ("KeyError: 'x' (rules/old.py:3)", "rule:old", False), OTHER, False),
        ((NO, "rule:old", False), ("ValueError: no (lib.py:3)", "rule:old", False), OTHER, False),
        ((NO, "rule:old", False), (NO, "rule:new", False), OTHER, False),
        ((NO, "rule:old", False), (NO, "rule:old", True), OTHER, False),
        (("no 7 of a1b2 (a.py:3)", "rule:x", False), ("no 81 of c3 (a.py:3)", "rule:x", False), OTHER, True),
        (("ValueError: no", "rule:old", False), ("ValueError: no", "rule:old", False), OTHER, False),
        ((ENDED, "rule:old", True), (ENDED, "rule:old", True), OTHER, True),
        ((ENDED, "rule:old", True), (ENDED, "rule:old", True), ("rules/old.py",), False),
        ((ENDED, "rule:old", True), (MUTE, "engine", True), OTHER, False),
        ((MUTE, "engine", True), (MUTE, "engine", True), OTHER, False),
        ((NO, "watcher:queue", False), (NO, "watcher:queue", False), OTHER, True),
        ((NO, "watcher:queue", False), (NO, "watcher:queue", False), ("rules/old.py",), False),
    ],
)
def test_only_the_same_fault_of_the_same_code_is_excused(
    before: Fault, after: Fault, changed: tuple[str, ...] | None, is_excused: bool
) -> None:
    story = replaced(erred(many("a", "b"), *before).after("1m"), "c", changed)
    message, subject, ended = after
    assert story.snapshot.engine.is_excused(subject, message, ended) is is_excused
    erred(story, *after, times=3)
    assert sum(counted(story)) == (0 if is_excused else 3)
    erred(story, "KeyError: 'new' (rules/new.py:1)", "rule:new")
    assert counted(story)[0] >= 1


def test_what_one_error_and_one_end_excused_was_everything_that_a_rule_did_later() -> None:
    story = erred(erred(many("a", "b"), NO), ENDED, ended=True)
    replaced(story.after("1m"), "c", ("rules/old.py",))
    erred(story, "ZeroDivisionError: division by zero (rules/old.py:4)", times=15)
    erred(story, MUTE, "engine", ended=True, times=7)
    assert counted(story) == (15, 7)


def test_a_second_promote_does_not_excuse_what_the_first_has_brought() -> None:
    new = "ValueError: no (rules/new.py:3)"
    story = replaced(erred(many("a"), NO).after("1m"), "b", ("rules/new.py",))
    replaced(erred(story, new, "rule:new").after("3s"), "c", OTHER)
    assert story.snapshot.engine.is_excused("rule:old", NO)
    assert counted(erred(story, new, "rule:new")) == (1, 0)
    replaced(story, "d", ("rules/old.py",))
    assert not story.snapshot.engine.is_excused("rule:old", NO)


def test_what_a_message_says_costs_no_more_than_its_length() -> None:
    began = time.process_time()
    for text in ("a" * 2_000, "a1" * 1_000, "(" * 2_000, "(:" * 1_000, "(" + ":" * 2_000, "1." * 1_000):
        fault_identity("rule:x", text)
    assert fault_words("a" * 2_000 + " 1") == "a" * 2_000 + " #"
    assert time.process_time() - began < 0.05
