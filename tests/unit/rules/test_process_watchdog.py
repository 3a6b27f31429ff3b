"""`process_watchdog`: what it wishes for a dead process, and for one that a person wants down."""

from typing import Any

import pytest

from pulse_core.actions import restart_objection
from pulse_core.model.kinds import (
    EffectCancelled,
    Paused,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    Resumed,
)
from pulse_core.ports.host import ProcessObservation
from pulse_core.rules.survival.process_watchdog import evaluate_status, process_watchdog
from pulse_core.testing import Story, given
from pulse_core.watch.evaluate_process import ProcessProbe, conclude

KEY, STOP = "restart-process:gateway", "stop-process:gateway"
HOUR_US = 3_600_000_000


def a_story(*others: dict[str, Any], **gateway: Any) -> Story:
    story = given(
        process_watchdog, settings={"process": [{"name": "gateway", "start": ["g"], **gateway}, *others]}
    )
    return story.sample("process-alive", gateway={"up": True})


def up(story: Story, name: str = "gateway", pid: int | None = 7) -> Story:
    story.event(ProcessUp(pid=pid, started=pid and 70, evidence=f"process {pid} is alive"), name)
    return story


def die(story: Story, name: str = "gateway", pid: int | None = 7) -> Story:
    story.event(ProcessDied(pid=pid, evidence="exited with status 1", healthy=True), name)
    return story


def notes(story: Story) -> list[str]:
    return [note for layer in story.layers for note in layer.notes]


def test_the_dead_is_named_so_that_nothing_alive_is_taken_for_it() -> None:
    story = die(up(a_story()))
    story.tick()
    wish = story.expect("restart-process", key=KEY)
    assert wish.params == {
        "process": "gateway",
        "only_start": True,
        "instead_of": {"pid": 7, "started": 70},
        "if_dead": True,
        "fresh": True,
    }
    assert (wish.survival, wish.samples) == (True, (1,))
    assert wish.reason == "gateway is dead: exited with status 1"
    assert notes(story) == ["gateway: due: dead: exited with status 1"]


@pytest.mark.parametrize(
    "ways",
    [{"match": "g"}, *({way: "/g", "start": [], "command": ["x"]} for way in ("match", "pid_file"))],
)
def test_where_nobody_can_tell_which_one_it_is_a_notice_says_so_until_that_is_clear(
    ways: dict[str, Any],
) -> None:
    story = up(a_story(**ways), pid=None)
    story.tick()
    assert "exact" in story.expect("notify", key="notify:doubt:gateway").params["text"]
    story.acked("notify:doubt:gateway")
    story.after("1s").tick()
    story.expect_nothing()
    up(story).tick()
    assert story.expect("notify", key="notify:doubt:gateway").params["text"] == "gateway is process 7"


def test_of_several_that_hold_its_port_a_notice_tells_and_of_one_that_nobody_sees_none() -> None:
    for words, is_told in (("2 processes match: 7, 8; nobody can tell which one it is", True), ("", False)):
        story = a_story(tcp="127.0.0.1:80")
        story.event(ProcessUp(pid=None, started=None, evidence=f"127.0.0.1:80 answers; {words}"), "gateway")
        story.tick()
        if is_told:
            text = story.expect("notify", key="notify:doubt:gateway").params["text"]
            assert text.endswith("; end what is not it, or recognise it by `pid_file` instead of `tcp`")
        else:
            story.expect_nothing()


def test_who_stands_there_after_a_command_and_does_not_serve_is_named() -> None:
    """Else it would be taken for one that is up already, and every other restart would do nothing."""
    story = up(
        a_story(start=[], command=["c"], pid_file="/p", restart={"grace": "0s", "backoff": "0s"})
    ).after("1s")
    die(story).tick()
    story.acked(KEY, exit=0)
    deaf = {"up": False, "pid": 7, "started": 70, "probe": {"in_a_row": 3, "error": "no answer"}}
    story.after("1s").sample("process-alive", gateway=deaf).tick()
    assert story.expect("restart-process").params["instead_of"] == {"pid": 7, "started": 70}


def test_a_dead_without_a_number_is_none() -> None:
    story = die(up(a_story(), pid=None), pid=None)
    story.tick()
    assert story.expect("restart-process").params["instead_of"] is None


@pytest.mark.parametrize(("age", "fresh"), [("999ms", True), ("1s", False)])
def test_only_what_was_seen_a_moment_ago_need_not_be_looked_at_again(age: str, fresh: bool) -> None:
    story = die(up(a_story())).after(age)
    story.tick()
    story.expect("restart-process", fresh=fresh)


def test_what_was_never_looked_at_is_left_alone_and_not_noted() -> None:
    story = a_story()
    story.tick()
    story.expect_nothing()
    assert notes(story) == []


def test_what_is_up_is_left_alone_and_not_noted() -> None:
    story = up(a_story())
    story.tick()
    story.expect_nothing()
    assert notes(story) == []
    assert story.verdict.tick_ms == 86_400_000


def test_every_process_is_answered() -> None:
    story = die(die(up(up(a_story({"name": "worker", "start": ["w"]})), "worker")), "worker")
    story.tick()
    assert [effect.key for effect in story.emitted] == [KEY, "restart-process:worker"]
    assert len(notes(story)) == 2


def test_a_restart_under_way_is_waited_for() -> None:
    story = die(up(a_story()))
    story.tick()
    story.after("1m").tick()
    story.expect_nothing()
    assert notes(story) == ["gateway: restarting: its restart waits for a slot"]
    story.begun(KEY)
    story.tick()
    assert notes(story) == ["gateway: restarting: its restart is under way"]


def test_a_restart_has_its_grace_and_its_end_is_not_overslept() -> None:
    story = die(up(a_story(restart={"grace": "10s", "backoff": "0s"})))
    story.tick()
    story.acked(KEY, pid=8, started=80)
    story.after("4s").tick()
    story.expect_nothing()
    assert story.verdict.tick_ms == 6_001
    assert notes(story) == ["gateway: starting: started, has 6 s left to come up"]
    story.after("6s").sample("process-alive", gateway={"up": False}).tick()
    story.expect("restart-process")


def test_the_grace_lasts_at_least_until_the_next_look() -> None:
    story = die(up(a_story(restart={"grace": "0s", "backoff": "0s"})))
    story.tick()
    story.acked(KEY, pid=8, started=80)
    story.after("249ms").tick()
    story.expect_nothing()
    story.after("1ms").sample("process-alive", gateway={"up": False}).tick()
    story.expect("restart-process")


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_start_has_not_failed_before_somebody_has_looked_but_that_is_not_waited_for_for_ever(
    is_seen: bool,
) -> None:
    story = up(a_story(restart={"grace": "0s", "backoff": "0s"})).after("1s")
    die(story).tick()
    story.after("1ms").acked(KEY, pid=8, started=80)
    story.after("9s").tick()
    story.expect_nothing()
    assert notes(story) == ["gateway: starting: started, and nobody has looked since"]
    if is_seen:
        story.sample("process-alive", gateway={"up": False}).tick()
    else:
        story.after("1250ms").tick()
    words = "gateway is dead after 1 restart: process 8 was started, and was not seen to come up"
    assert story.expect("restart-process").reason == words, "how the one before it died says nothing about it"


def test_a_process_waits_for_those_it_depends_on() -> None:
    story = die(
        up(a_story({"name": "db", "start": ["d"]}, {"name": "mq", "start": ["m"]}, depends_on=["db", "mq"]))
    )
    story.tick()
    story.expect_nothing("restart-process")
    assert "gateway: waiting: down: exited with status 1; waits for db, mq" in notes(story)
    up(story, "db", pid=8).tick()
    assert "gateway: waiting: down: exited with status 1; waits for mq" in notes(story)
    up(story, "mq", pid=9).tick()
    assert "gateway: waiting: died just now, as what it depends on may have" in notes(story)
    story.after("50ms").tick()
    story.expect("restart-process", key=KEY)


def test_a_restart_that_was_wished_before_what_it_depends_on_died_is_not_begun() -> None:
    """As when a daemon was killed between the two: the next one has the wish, and knows of the death."""
    story = up(a_story({"name": "db", "start": ["d"]}, depends_on=["db"], restart={"backoff": "0s"}))
    up(story, "db", pid=8)
    die(story).after("50ms").tick()
    wish = story.expect("restart-process", key=KEY)
    assert restart_objection(wish, story.snapshot.state, story.now) == ""
    die(story, "db", pid=8).tick()
    why = restart_objection(wish, story.snapshot.state, story.now)
    assert why == "db, on which it depends, went down in the meantime"
    story.event(EffectCancelled(why=why), story._open(KEY))
    story.tick()
    assert "gateway: waiting: down: exited with status 1; waits for db" in notes(story)
    up(story, "db", pid=9).after("1h").tick()
    story.expect("restart-process", key=KEY)


def test_a_paused_pulse_says_for_how_long_it_has_been_dead() -> None:
    story = die(up(a_story()))
    story.after("1m").event(Paused(why="moving"), actor="ada")
    story.after("1m").tick()
    story.expect_nothing()
    assert notes(story) == [
        "gateway: waiting: dead: exited with status 1; down for 2 min, and Pulse is paused by ada"
    ]
    story.event(Resumed(), actor="ada")
    story.tick()
    story.expect("restart-process")


def test_a_pause_holds_nothing_back_from_what_only_a_person_starts() -> None:
    story = die(a_story(autostart=False))
    story.event(Paused(why="moving"), actor="ada")
    story.tick()
    story.expect_note("gateway: stopped: autostart = false; start it: upulse process start gateway")


def test_what_may_never_be_started_and_never_ran_is_down_with_who_holds_its_port() -> None:
    held = "127.0.0.1:1 is held by process 7 (nginx)"
    story = a_story(restart={"max": 0})
    story.sample("process-alive", gateway={"up": False, "holder": held})
    story.event(ProcessDied(pid=None, evidence="not running yet", healthy=True), "gateway")
    story.tick()
    assert notes(story) == [f"gateway: down: not started (max = 0); {held}"]
    told = story.expect("notify", key="notify:flapping:gateway").params
    assert (told["title"], told["text"]) == ("gateway is down", f"not started (max = 0); {held}")


def test_what_a_restart_had_waited_for_is_part_of_its_reason() -> None:
    story = up(up(a_story({"name": "web", "start": ["w"], "depends_on": ["gateway"]})), "web", 9)
    die(die(story), "web", 9).tick()
    assert story.expect("restart-process", key=KEY).reason == "gateway is dead: exited with status 1"
    story.after("11s").acked(KEY, pid=10, started=100)
    up(story, pid=10).tick()
    held = "; held back until now: it waits for gateway"
    reason = story.expect("restart-process", key="restart-process:web").reason
    assert reason == f"web is dead: exited with status 1{held}"


@pytest.mark.parametrize(
    ("holder", "told"),
    [
        ("", "127.0.0.1:1 was held by process 7 (nginx), not by 8"),
        ("127.0.0.1:1 was held by process 7 (nginx)", "127.0.0.1:1 was held by process 7 (nginx), not by 8"),
        ("127.0.0.1:1 is held by process 7 (nginx)", "127.0.0.1:1 is held by process 7 (nginx), not by 8"),
        (
            "127.0.0.1:1 is held by process 7 (nginx): that is other",
            "127.0.0.1:1 is held by process 7 (nginx): that is other",
        ),
        (
            "127.0.0.1:1 is held by process 9 (nginx)",
            "127.0.0.1:1 was held by process 7 (nginx), not by 8; 127.0.0.1:1 is held by process 9 (nginx)",
        ),
    ],
)
def test_who_held_the_port_at_a_death_is_told_as_such_until_a_look_finds_them_there(
    holder: str, told: str
) -> None:
    story = up(a_story())
    story.sample("process-alive", gateway={"up": False, "holder": holder})
    died = "exited with status 1; 127.0.0.1:1 was held by process 7 (nginx), not by 8"
    story.event(ProcessDied(pid=7, evidence=died, healthy=True), "gateway")
    story.tick()
    assert story.expect("restart-process").reason == f"gateway is dead: exited with status 1; {told}"


def test_a_budget_of_nothing_allows_no_restart_but_a_word() -> None:
    story = die(up(a_story(restart={"max": 0})))
    story.tick()
    story.expect_nothing("restart-process")
    story.expect("notify", key="notify:flapping:gateway")
    assert notes(story) == ["gateway: down: dead, and its budget allows no restart (max = 0)"]


@pytest.mark.parametrize(
    ("is_started", "heading"),
    [(True, "Before it was restarted it had printed:"), (False, "It printed last:")],
)
def test_what_a_life_before_the_last_one_printed_is_not_told_as_the_last(
    is_started: bool, heading: str
) -> None:
    story = up(a_story(restart={"max": 1, "within": "1h", "grace": "10s"}))
    story.event(ProcessDied(pid=7, evidence="killed", healthy=True, printed="no config"), "gateway")
    story.tick()
    story.acked(KEY, pid=8, started=80) if is_started else story.failed(KEY)
    story.after("20s").sample("process-alive", gateway={"up": False, "pid": 8 if is_started else None}).tick()
    story.expect("notify", key="notify:flapping:gateway")
    assert str(story.emitted[0].params["text"]).endswith(f"\n{heading}\n> no config")


def test_starts_that_failed_are_no_restarts_of_what_dies_later() -> None:
    story = die(a_story(restart={"max": 2, "within": "10m", "backoff": "0s"}), pid=None)
    for number in range(3):
        story.after("1m").tick()
        if number < 2:
            story.failed(KEY, "no such program")
    story.acked(KEY, pid=8, started=80)
    up(story, pid=8).after("5s")
    story.event(ProcessDied(pid=8, evidence="killed", healthy=False), "gateway")
    story.tick()
    story.expect_note("dead after 3 tries to start it: killed")


# Stops


def test_what_a_person_wants_down_is_stopped_in_his_name() -> None:
    story = up(a_story())
    story.event(ProcessStopRequested(expires_us=HOUR_US), "gateway", actor="ada")
    story.tick()
    wish = story.expect("stop-process", key=STOP)
    assert wish.params == {"process": "gateway"}
    assert (wish.survival, wish.samples, wish.reason) == (True, (1,), "ada wants gateway down")
    story.expect_nothing("restart-process")
    assert notes(story) == ["gateway: stopping: ada wants it down"]


def test_what_lives_and_does_not_serve_is_stopped_too_when_a_person_wants_it_down() -> None:
    """It counts as dead while it waits for its restart, and would else be called stopped and go on."""
    story = die(up(a_story(exec=["probe"])))
    deaf = {"up": False, "pid": 7, "started": 70, "probe": {"in_a_row": 3, "error": "no answer"}}
    story.sample("process-alive", gateway=deaf)
    story.event(ProcessStopRequested(expires_us=HOUR_US), "gateway", actor="ada")
    story.tick()
    story.expect("stop-process", key=STOP)
    assert notes(story) == ["gateway: stopping: ada wants it down"]
    story.acked(STOP)
    dead = {"up": False, "pid": None, "probe": {"in_a_row": 4, "error": "no answer"}}
    story.after("1s").sample("process-alive", gateway=dead).tick()
    story.expect_nothing("stop-process")
    assert notes(story)[-1].startswith("gateway: stopped: stopped by ada")


def test_restarts_since_it_was_healthy_are_told_from_those_that_its_budget_counts() -> None:
    story = up(a_story())
    for healthy in (True, True, True, True, False):  # with its default budget, five within ten minutes
        story.event(ProcessDied(pid=7, evidence="exited with status 1", healthy=healthy), "gateway")
        story.after("20s").tick()
        story.acked("restart-process:gateway", pid=7, started=7)
        story.event(ProcessUp(pid=7, started=7, evidence="there"), "gateway")
    story.event(ProcessDied(pid=7, evidence="exited with status 1", healthy=False), "gateway")
    story.tick()
    (note,) = notes(story)
    words = (
        "dead after 2 restarts since it was last healthy (5 count against its budget): exited with status 1"
    )
    assert note.startswith(f"gateway: flapping: {words}; next try in")


def test_of_a_unit_that_is_inactive_what_systemd_says_of_it_is_told_and_nobody_is_said_to_have_stopped_it() -> (
    None
):
    story = die(a_story())
    story.event(ProcessStopped(evidence="unit is inactive", expires_us=HOUR_US), "gateway")
    story.tick()
    assert notes(story) == ["gateway: stopped: unit is inactive; left alone, for another 1 h"]


def test_what_is_down_on_purpose_is_left_so_until_that_expires() -> None:
    story = up(a_story())
    story.event(ProcessStopRequested(expires_us=HOUR_US), "gateway", actor="ada")
    die(story).after("20m").tick()
    story.expect_nothing()
    assert notes(story) == ["gateway: stopped: stopped by ada, for another 40 min"]
    assert story.verdict.tick_ms == 40 * 60_000 + 1
    story.after("40m").tick()
    story.expect("restart-process", key=KEY)


@pytest.mark.parametrize("is_dead", [False, True], ids=["while it was up", "while it stayed down"])
def test_the_end_of_a_stop_starts_it_at_once_however_often_it_had_died_before(is_dead: bool) -> None:
    story = die(up(a_story(restart={"max": 1, "within": "10m", "backoff": "5m"})))
    story.tick()
    story.acked(KEY, pid=8, started=80)
    up(story, pid=8).after("5s")
    if is_dead:
        die(story, pid=8).tick()
        story.expect("notify", key="notify:flapping:gateway")
    story.event(ProcessStopRequested(expires_us=20_000_000), "gateway", actor="ada")
    if not is_dead:
        die(story, pid=8)
    story.after("19s").tick()
    story.expect_nothing()
    story.after("1s").tick()
    because = "gateway is to be started: the stop that ada requested is over"
    assert story.expect("restart-process", key=KEY).reason == because
    story.expect_nothing("notify")
    story.failed(KEY, "no such program")
    story.tick()
    assert story.expect("restart-process", key=KEY).reason == "gateway is dead: no such program"
    story.failed(KEY, "no such program")
    story.tick()
    story.expect_note("still dead after 1 try to restart it: no such program")


# Started only by a person


def test_what_starts_by_itself_no_more_waits_for_a_person_and_dependents_wait_for_it() -> None:
    other = {"name": "worker", "start": ["w"], "depends_on": ["gateway"]}
    story = die(die(a_story(other, autostart=False)), "worker")
    story.after("1s").tick()
    story.expect_nothing()
    assert notes(story) == [
        "gateway: stopped: autostart = false; start it: upulse process start gateway",
        "worker: waiting: down: exited with status 1; waits for gateway",
    ]
    story.event(ProcessStartRequested(), "gateway", actor="root")
    story.tick()
    story.expect("restart-process", key=KEY)


def test_a_start_that_is_requested_of_what_is_up_keeps_the_restart_that_waits() -> None:
    story = up(a_story())
    story.event(Paused(), "", actor="root")
    story.event(ProcessRestartRequested(), "gateway", actor="root")
    story.event(ProcessStartRequested(), "gateway", actor="root")
    story.event(Resumed(), "", actor="root")
    story.tick()
    assert story.expect("restart-process", key=KEY).reason == "gateway is to be restarted: root asked for it"


def test_what_died_while_its_requested_restart_waits_is_told_as_down() -> None:
    story = up(a_story())
    story.event(Paused(), "", actor="root")
    story.event(ProcessRestartRequested(), "gateway", actor="root")
    asked = "to be restarted: root asked for it, and Pulse is paused by root"
    for dead in ("", "down: exited with status 1; "):
        if dead:
            die(story)
        assert evaluate_status(story.settings.process[0], story.snapshot).why == dead + asked


def test_once_a_person_has_started_it_a_death_is_answered_until_a_stop_however_long_that_holds() -> None:
    story = die(a_story(autostart=False))
    story.event(ProcessStartRequested(), "gateway", actor="root")
    story.tick()
    story.acked(KEY, pid=8, started=80)
    up(story, pid=8)
    die(story.after("1h"), pid=8).tick()
    story.expect("restart-process", key=KEY)
    story.acked(KEY, pid=9, started=90)
    up(story, pid=9)
    story.restart().sample("process-alive", gateway={"up": True})
    story.event(ProcessStopRequested(expires_us=HOUR_US), "gateway", actor="root")
    die(story, pid=9).tick()
    story.expect_note("stopped by root, and autostart = false")  # and not for another hour
    story.after("2h").tick()
    story.expect_nothing()
    story.expect_note("autostart = false")


def test_a_start_that_fails_is_tried_again_though_it_never_was_up() -> None:
    story = die(a_story(autostart=False))
    story.event(ProcessStartRequested(), "gateway", actor="root")
    story.tick()
    story.failed(KEY, "no such program")
    story.after("1m").tick()
    story.expect("restart-process", key=KEY)


def test_what_was_up_before_a_reboot_is_not_started_after_it_and_that_is_no_death_to_tell_of() -> None:
    story = up(a_story(autostart=False))
    story.reboot()
    (draft,) = conclude(
        ProcessProbe(
            story.settings.process[0],
            ProcessObservation(),
            story.snapshot.process("gateway"),
            0,
            story.now,
            HOUR_US,
        )
    ).drafts
    assert isinstance(draft.payload, ProcessDied)
    assert draft.payload.intended
    story.event(draft.payload, "gateway")
    story.tick()
    story.expect_nothing()
    story.event(ProcessStartRequested(), "gateway", actor="root")
    story.tick()
    story.expect("restart-process", key=KEY)
