"""What the log says of the engine's commits: which were before, which was good, and which is on probation."""

from pulse_core.model.kinds import EnginePromoted, EngineRolledBack, ErrorReported
from pulse_core.testing import Story, given

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
    back(promoted(story, "newer"), "hasty2").after("11m")
    assert promoted(story, "next").snapshot.engine.good == "hasty2"


def test_a_rule_that_erred_before_a_promote_is_not_held_against_it() -> None:
    story = many("a", "b")
    story.event(ErrorReported(message="no", commit="b"), "rule:plugged")
    promoted(story.after("1m"), "c")
    for subject in ("rule:plugged", "rule:new"):
        story.event(ErrorReported(message="no", commit="c"), subject)
    engine = story.snapshot.engine
    assert engine.excused == ("rule:plugged",)
    assert len(engine.errors) == 1


def test_a_second_promote_does_not_excuse_what_the_first_has_brought() -> None:
    story = many("a")
    story.event(ErrorReported(message="no", commit="a"), "rule:old")
    promoted(story.after("1m"), "b")
    story.event(ErrorReported(message="no", commit="b"), "rule:new")
    engine = promoted(story.after("3s"), "c").snapshot.engine
    assert engine.excused == ("rule:old",)
    story.event(ErrorReported(message="no", commit="c"), "rule:new")
    assert len(story.snapshot.engine.errors) == 1
