"""A config that a gateway does not boot with is replaced by one that it has stayed up with; nothing else is blamed on it."""

from typing import Any

import pytest
from pydantic import ValidationError

from pulse_core.model.kinds import ProcessDied, ProcessStopRequested, ProcessUp
from pulse_core.model.vitals import Window
from pulse_core.openclaw.rule import RestoreParams, has_news, has_proven, restore_config, status_lines
from pulse_core.openclaw.settings import OPENCLAW
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.settings.settings import Settings
from pulse_core.testing import Story, given

GOOD, OLD, BAD = "a" * 64, "b" * 64, "c" * 64
GATEWAY = {"name": "gateway", "start": ["openclaw", "gateway"]}
RESTART, RESTORE = "restart-process:gateway", "restore-config:gateway"
SECOND = 1_000_000


def a_story(**settings: Any) -> Story:
    """A gateway that has been up for an hour with a good config."""
    chosen = {"process": [GATEWAY], "openclaw": [{"process": "gateway", **settings}]}
    story = given(process_watchdog, restore_config, settings=chosen)
    story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    return story.after("1h")


def look(story: Story, config: str, age_s: int, *kept: str) -> Story:
    sessions = {"agents": 2, "session_files": 3, "session_bytes": 4_096}
    seen = {"config": config, "age_us": age_s * SECOND, "kept": list(kept or (GOOD, OLD)), **sessions}
    return story.sample("openclaw", gateway=seen)


def dies(story: Story, pid: int, *, healthy: bool = False) -> None:
    story.event(ProcessDied(pid=pid, evidence="exited with status 1", healthy=healthy), "gateway")


def fails_to_start(story: Story, times: int) -> None:
    """It is started so often, comes up, and dies again."""
    for pid in range(100, 100 + times):
        story.after("1m").tick()
        story.acked(RESTART, pid=pid, started=pid)
        story.event(ProcessUp(pid=pid, started=pid, evidence="there"), "gateway")
        dies(story.after("1s"), pid)


def test_after_two_failed_starts_with_a_new_config_the_newest_good_one_is_put_back_and_that_is_told() -> None:
    story = a_story()
    dies(story, 7, healthy=True)
    fails_to_start(story, 1)
    look(story, BAD, 80).tick()
    story.expect_nothing("restore-config")
    story = a_story()
    dies(story, 7, healthy=True)
    fails_to_start(story, 2)
    look(story, BAD, 180).tick()
    story.expect("restore-config", key=RESTORE, process="gateway", bad=BAD, good=GOOD)
    assert story.expect("notify", key="notify:openclaw:gateway").params["title"] == (
        "gateway does not boot with its new config"
    )
    story.acked(RESTORE)
    story.acked("notify:openclaw:gateway")
    look(story.after("10s"), GOOD, 5).tick()
    story.expect_nothing("restore-config")
    story.event(ProcessUp(pid=300, started=300, evidence="there"), "gateway")
    story.tick()
    assert story.expect("notify").params["title"] == "resolved: gateway does not boot with its new config"


def test_the_first_start_with_a_config_that_was_put_back_waits_for_no_pause_of_those_that_failed() -> None:
    story = a_story()
    dies(story, 7, healthy=True)
    fails_to_start(story, 5)  # its budget is spent
    look(story, BAD, 400).tick()
    story.acked(RESTORE)
    look(story.after("5s"), BAD, 405).tick()  # seen before it was put back
    story.expect_nothing("restart-process")
    look(story.after("5s"), GOOD, 5).tick()
    wish = story.expect("restart-process", key=RESTART)
    assert wish.reason.endswith("; a good config was put back since")
    story.acked(RESTART, pid=200, started=200)
    dies(story.after("1s"), 200)
    look(story.after("30s"), GOOD, 35).tick()  # it fails with that one, too: its own budget holds
    story.expect_nothing("restart-process")


def test_starts_from_before_the_change_and_other_reasons_are_no_fault_of_the_config() -> None:
    story = a_story()
    dies(story, 7)
    fails_to_start(story, 4)
    for config, age_s, kept in ((GOOD, 9_999, (GOOD, OLD)), (BAD, 30, (GOOD,))):
        look(story, config, age_s, *kept).tick()
        story.expect_nothing("restore-config")
    story = a_story(failures=0)
    dies(story, 7)
    fails_to_start(story, 4)
    look(story, BAD, 9_999).tick()
    story.expect_nothing("restore-config")


def test_nothing_is_put_back_while_it_is_up_coming_up_or_stopped_or_where_none_is_kept() -> None:
    story = a_story()
    look(story, BAD, 9_999).tick()
    story.expect_nothing()
    dies(story, 7)
    fails_to_start(story, 3)
    story.sample("openclaw", gateway={"config": BAD, "age_us": 9_999 * SECOND, "kept": []})
    story.after("1h").tick()
    story.expect("restart-process")
    look(story, BAD, 9_999).tick()  # its restart is under way
    story.expect_nothing("restore-config")
    story.acked(RESTART, pid=200, started=200)
    look(story, BAD, 9_999).tick()  # it has its grace
    story.expect_nothing("restore-config")
    dies(story, 200)
    story.event(ProcessStopRequested(expires_us=3_600 * SECOND), "gateway", actor="person:me")
    story.tick()
    story.expect_nothing("restore-config")
    story.sample("openclaw", gateway={"fault": "it can't be read"}).tick()
    story.expect_nothing("restore-config")


def test_what_can_not_be_put_back_is_tried_again_after_a_while() -> None:
    story = a_story()
    dies(story, 7, healthy=True)
    fails_to_start(story, 2)
    look(story, BAD, 180).tick()
    story.failed(RESTORE, "no space left on device")
    tries = 0
    for _ in range(25):
        story.after("1m")
        if RESTART in story.snapshot.effects.keys:
            story.acked(RESTART, pid=500, started=500)
            dies(story, 500)
        look(story, BAD, 9_999).tick()
        if any(one.key == RESTORE for one in story.emitted):
            tries += 1
            story.failed(RESTORE, "no space left on device")
    assert tries == 2


def test_a_config_is_good_once_the_gateway_was_started_with_it_and_stayed_up() -> None:
    story = a_story()
    (gateway,), state = OPENCLAW.of(story.settings), story.snapshot.state
    assert has_proven(gateway, 7_200 * SECOND, state, story.now)
    assert not has_proven(
        gateway, 1_800 * SECOND, state, story.now
    )  # changed while it was up: it may not have read it
    story.event(ProcessDied(pid=7, evidence="exited", healthy=True), "gateway")
    story.event(ProcessUp(pid=8, started=8, evidence="there"), "gateway")
    story.after("119s")
    assert not has_proven(gateway, 7_200 * SECOND, story.snapshot.state, story.now)
    assert has_proven(gateway, 7_200 * SECOND, story.snapshot.state, story.after("1s").now)


def test_the_status_names_the_config_and_the_sessions() -> None:
    story = look(a_story(), GOOD, 60)
    assert list(status_lines(story.snapshot)) == [
        "openclaw  gateway: config aaaaaaaaaaaa is good; 3 session files of 2 agents, 4.0 KiB"
    ]
    look(story, BAD, 60)
    assert "config cccccccccccc is new for 1 min;" in next(status_lines(story.snapshot))
    assert "config cccccccccccc is new for 70 s;" in next(status_lines(story.after("10s").snapshot))
    story.sample("openclaw", gateway={"fault": "/x can't be read"})
    assert list(status_lines(story.snapshot)) == ["openclaw  gateway: /x can't be read"]
    assert not has_news(Window())
    assert not has_news(story.snapshot.window("openclaw"))


def test_a_gateway_is_a_process_and_is_there_once_and_hashes_are_hashes() -> None:
    one = {"process": "gateway"}
    with pytest.raises(ValidationError, match=r"no \[\[process\]\] 'gatevay'"):
        Settings.model_validate({"process": [GATEWAY], "openclaw": [{"process": "gatevay"}]})
    with pytest.raises(ValidationError, match="'gateway' is there twice"):
        Settings.model_validate({"process": [GATEWAY], "openclaw": [one, one]})
    with pytest.raises(ValidationError):
        RestoreParams(process="gateway", bad=BAD, good="../../etc/passwd")


def test_the_status_names_no_config_that_was_replaced_since_it_was_looked_at() -> None:
    story = a_story()
    dies(story, 7, healthy=True)
    fails_to_start(story, 2)
    look(story, BAD, 180).tick()
    story.after("1s").acked(RESTORE)
    assert list(status_lines(story.after("4s").snapshot)) == [
        "openclaw  gateway: a good config was put back 4 s ago; nobody has looked since"
    ]
    look(story, GOOD, 5)
    assert "config aaaaaaaaaaaa is good;" in next(status_lines(story.snapshot))
