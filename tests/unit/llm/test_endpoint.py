"""What the rule and the sense for LLM endpoints agree on: since when one must answer, and what is not its fault."""

import pytest

from pulse_core.llm.endpoint import excuse_for, is_excused_failure, process_of, process_started
from pulse_core.llm.settings import LlmSettings
from pulse_core.model.kinds import Effect, ProcessUp
from pulse_core.model.urls import host_of, is_here
from pulse_core.testing import Story, given

KEY = "restart-process:litellm"
LLM = LlmSettings.model_validate({"url": "http://127.0.0.1:4000/", "restart": "litellm", "grace": "1m"})
ALONE = LlmSettings.model_validate({"url": "http://127.0.0.1:4000/"})
PROCESSES = {"process": [{"name": "other", "start": ["o"]}, {"name": "litellm", "start": ["l"]}]}


def up() -> Story:
    story = given(settings=PROCESSES)
    story.event(ProcessUp(pid=7, started=360_000, evidence="there"), "litellm")
    return story


def excused(story: Story, llm: LlmSettings = LLM) -> str:
    return excuse_for(llm, story.settings, story.snapshot.state, story.now)


def restarted(story: Story) -> Story:
    """A restart of it is done, of which no look has told anything yet."""
    story.event(Effect(action="restart-process", key=KEY, params={"process": "litellm"}), KEY)
    assert excused(story) == "the restart of litellm is under way"
    story.acked(KEY)
    return story


def test_its_process_is_the_one_that_is_named() -> None:
    found = process_of(LLM, up().settings)
    assert found is not None
    assert found.name == "litellm"
    assert process_of(ALONE, up().settings) is None
    assert process_of(LLM, given().settings) is None


def test_it_began_when_its_process_was_last_found_or_restarted_whichever_is_later() -> None:
    story = up()
    found = story.now
    assert process_started(LLM, story.snapshot.state, story.now) == found
    restarted(story.after("1h"))
    assert process_started(LLM, story.snapshot.state, story.now) == story.now
    assert process_started(ALONE, story.snapshot.state, story.now) is None
    nothing = given(settings=PROCESSES)
    assert process_started(LLM, nothing.snapshot.state, nothing.now) is None


def test_its_grace_ends_to_the_microsecond() -> None:
    story = restarted(up().after("1h"))
    assert excused(story) == "litellm was started, and has 1 min left to answer"
    story.now = story.now.plus(59_999_999)
    assert excused(story) == "litellm was started, and has 1 us left to answer"
    story.now = story.now.plus(1)
    assert excused(story) == ""


def test_without_a_process_or_with_one_that_nobody_guards_it_has_no_excuse() -> None:
    assert excused(given(settings=PROCESSES), ALONE) == ""
    assert excused(given(), LLM) == ""
    assert excused(given(settings=PROCESSES)) == "litellm is not up"


@pytest.mark.parametrize(("ago", "spared"), [(200, True), (41, True), (40, False), (39, False), (0, False)])
def test_a_failure_of_before_its_process_was_ready_is_spared(ago: int, spared: bool) -> None:
    story = restarted(up().after("1h"))
    story.after("100s")
    then = story.now.plus(-ago * 1_000_000)
    assert is_excused_failure(then, LLM, story.snapshot.state, story.now) is spared
    assert not is_excused_failure(then, ALONE, story.snapshot.state, story.now)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:4000/", True),
        ("http://127.8.9.1/", True),
        ("http://[::1]:4000/", True),
        ("http://localhost/", True),
        ("http://192.0.2.1/", False),
        ("http://llm.one.example/", False),
        ("http://[broken/", False),
        ("", False),
    ],
)
def test_what_is_on_this_machine_is_told_from_what_is_not(url: str, here: bool) -> None:
    assert is_here(url) is here


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://One.Example:80/x", "one.example"),
        ("http://[::1]:4000/", "::1"),
        ("/x", ""),
        ("http://[x/", ""),
    ],
)
def test_a_host_that_cannot_be_told_is_none(url: str, host: str) -> None:
    assert host_of(url) == host
