"""What `why` tells of an effect, as values and as a tree."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pulse_core.app import subject_report
from pulse_core.app.process_report import process_report
from pulse_core.app.restarts import request_holds
from pulse_core.app.sample_words import sample_words
from pulse_core.app.status import home_status, offline_status
from pulse_core.app.why import why
from pulse_core.model.errors import PulseError
from pulse_core.model.home_status import HeldStatus
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    Effect,
    EffectAcked,
    EffectExecuting,
    EffectFailed,
    Paused,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStopRequested,
    ProcessUp,
    RestartDelayed,
    SettingsLoaded,
)
from pulse_core.model.moment import Moment, iso, local_text
from pulse_core.model.payload import parse
from pulse_core.model.vitals import Sample
from pulse_core.ports.host import TreeUsage
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded
from tests.unit.app.home_scene import START, Scene
from upulse_cli.time_args import local
from upulse_cli.views.why import tree

KEY = "restart-process:web"
HOUR = 3_600_000_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def shown(scene: Scene, name: str | None = None) -> Sequence[str]:
    """The lines of `why`, without the branches of the tree."""
    return drawn(why(scene.home, name).spelled())


def drawn(story: Mapping[str, Any]) -> Sequence[str]:
    console = Console(width=300)
    with console.capture() as captured:
        console.print(tree(story))
    return [line.strip("│├└─ ") for line in captured.get().splitlines()]


def restart(scene: Scene, *samples: int) -> Effect:
    return Effect(
        action="restart-process", key=KEY, params={"process": "web"}, reason="web is dead", samples=samples
    )


def test_all_steps_are_told_in_the_order_of_time(scene: Scene) -> None:
    scene.at(1, ProcessDied(pid=1, evidence="gone", healthy=True), "web")
    sample = asyncio.run(scene.sample(30, "process-alive", {"web": {"pid": None}}))
    id_ = str(scene.at(31, restart(scene, sample), KEY)["id"])
    scene.at(32, EffectExecuting(attempt=1), id_)
    scene.at(33, EffectAcked(took_us=5), id_)
    lines = shown(scene, "web")
    found = [next(place for place, line in enumerate(lines) if word in line) for word in STEPS]
    assert found == sorted(found)


def test_what_a_rule_of_the_user_went_by_is_not_guessed(scene: Scene) -> None:
    scene.at(1, ProcessUp(pid=1, started=1, evidence="process 1 is alive"), "web")
    reason = "its database is gone"
    wish = restart(scene).model_copy(
        update={"key": "my:web", "reason": reason, "rule": "mine", "commit": "c0ffee"}
    )
    scene.at(120, wish, "my:web")
    lines = shown(scene, "my:web")
    assert "begins with  rule mine: its database is gone" in lines
    assert not any("process-up" in line for line in lines)


STEPS = ("process-died", "process-alive #", "restart-process, requested", "attempt 1")


def test_a_long_kind_is_apart_from_its_subject(scene: Scene) -> None:
    scene.at(1, ProcessStopRequested(expires_us=1), "web")
    scene.at(2, restart(scene), KEY)
    assert any("process-stop-requested web" in line for line in shown(scene, "web"))


def test_of_a_request_without_a_reason_no_reason_is_announced(scene: Scene) -> None:
    scene.at(1, ProcessRestartRequested(), "web")
    scene.at(2, restart(scene), KEY)
    line = next(line for line in shown(scene, "web") if "process-restart-requested" in line)
    assert "web  (row" in line


CLEAN = Effect(
    action="clean-paths",
    key="clean-paths:/x",
    params={"for_condition": "disk:/x"},
    reason="/x is full",
    survival=True,
)
MEASURED: dict[str, Json] = {
    "memory": 0.5,
    "memory_available": 1 << 30,
    "swap": 0.0,
    "swap_total": 0,
    "psi": {},
    "disks": {"/x": {"used": 0.95, "free": 1 << 20}},
}
DISK = Settings.model_validate({"resources": {"disk": [{"path": "/x"}]}})
FULL = ConditionRaised(evidence="/x is full to 95.0%", state="high")


def test_an_effect_begins_with_the_condition_and_tells_its_sample_in_words(scene: Scene) -> None:
    scene.settings = DISK
    sample = asyncio.run(scene.sample(1, "system-resource", MEASURED))
    scene.at(2, FULL, "disk:/x")
    scene.at(3, CLEAN.model_copy(update={"samples": (sample,)}), CLEAN.key)
    lines = shown(scene, CLEAN.key)
    assert lines[1] == "begins with  condition-raised disk:/x: /x is full to 95.0%"
    assert any(line.endswith("/x is full to 95.0%, 1.0 MiB are free") for line in lines)
    assert "psi" not in "".join(lines)
    assert why(scene.home, CLEAN.key).spelled()["samples"][0]["data"] == MEASURED


def test_what_a_condition_says_is_not_said_once_more_as_what_comes_next(scene: Scene) -> None:
    scene.at(2, ConditionRaised(state="down", evidence="one.example: nobody answered"), "network")
    scene.daemon.answers = offline_status(scene.home, None)
    assert shown(scene, "network")[1:] == ["one.example: nobody answered", "nothing was done about it yet"]


def test_a_condition_says_since_when_it_stands_what_was_tried_and_what_comes_next(scene: Scene) -> None:
    scene.settings = DISK
    scene.at(2, FULL, "disk:/x")
    assert shown(scene, "disk:/x")[1:] == [
        "no daemon tells of it; last known: /x is full to 95.0%",
        "nothing was done about it yet",
    ]
    scene.daemon.answers = status = offline_status(scene.home, None)
    assert shown(scene, "disk:/x")[1:] == [
        "/x is full to 95.0%",
        "next: the settings allow no action against it",
        "nothing was done about it yet",
    ]
    status["conditions"][0]["held"] = {"by": "a pause of ada", "since": "2026-01-01T00:00:00Z"}
    assert any(line.startswith("held back since ") for line in shown(scene, "disk:/x"))
    assert why(scene.home, "disk:/x").spelled()["about"]["held_by"] == "a pause of ada"
    scene.daemon.answers = None
    id_ = str(scene.at(3, CLEAN, CLEAN.key)["id"])
    scene.at(4, EffectAcked(took_us=5, result={"bytes": 0}), id_)
    about = why(scene.home, "disk:/x").spelled()["about"]
    assert (about["kind"], about["state"]) == ("condition", "raised (high)")
    assert about["measures"][0]["outcome"] == "freed nothing"
    scene.at(9, ConditionCleared(evidence="/x has room"), "disk:/x")
    about = why(scene.home, "disk:/x").spelled()["about"]
    assert (about["state"], about["why"], len(about["measures"])) == ("cleared", "seen then: /x has room", 1)
    scene.at(10, ConditionCleared(evidence="it is not measured any more"), "disk:/x")
    assert "no longer watched" in shown(scene, "disk:/x")[0]


def test_a_measure_that_had_no_outcome_when_its_condition_was_over_is_not_told_as_under_way(
    scene: Scene,
) -> None:
    scene.at(2, FULL, "disk:/x")
    id_ = str(scene.at(3, CLEAN, CLEAN.key)["id"])
    assert why(scene.home, "disk:/x").spelled()["about"]["measures"][0]["outcome"] == "under way"
    scene.at(4, ConditionCleared(evidence="it is not measured any more"), "disk:/x")
    scene.at(9, EffectAcked(took_us=5, result={"bytes": 0}), id_)
    assert why(scene.home, "disk:/x").spelled()["about"]["measures"][0]["outcome"] == "under way then"


def test_a_condition_says_what_holds_back_its_notice(scene: Scene) -> None:
    scene.settings = DISK
    scene.at(1, SilenceAdded(expires_us=HOUR), "notify:resource:disk:*", actor="ada")
    scene.at(2, FULL, "disk:/x")
    scene.daemon.answers = offline_status(scene.home, None)
    held = "next: notify:resource:disk:/x is held back by "
    assert f"{held}the silence 'notify:resource:disk:*' of ada, for another 60 min" in shown(scene, "disk:/x")
    scene.at(3, Paused(), actor="ben")
    assert f"{held}a pause of ben" in shown(scene, "disk:/x")


def test_a_cleared_condition_says_what_holds_back_the_notice_that_it_is_over(scene: Scene) -> None:
    scene.settings = DISK
    scene.at(1, FULL, "disk:/x")
    notice = Effect(action="notify", key="notify:resource:disk:/x", params={"title": "x"}, survival=True)
    scene.at(3, EffectAcked(took_us=5), str(scene.at(2, notice, notice.key)["id"]))
    scene.at(4, SilenceAdded(expires_us=HOUR), "notify:*", actor="ada")
    scene.at(5, ConditionCleared(evidence="/x has room"), "disk:/x")
    scene.daemon.answers = offline_status(scene.home, None)
    held = "next: notify:resource:disk:/x is held back by the silence 'notify:*' of ada, for another 60 min"
    assert held in shown(scene, "disk:/x")
    scene.daemon.answers = None  # then nobody holds anything back
    assert held not in shown(scene, "disk:/x")


def test_a_process_says_what_holds_back_its_notice(scene: Scene) -> None:
    web = {"name": "web", "start": ["web"], "restart": {"max": 0}}
    scene.settings = Settings.model_validate({"process": [web]})
    scene.at(1, ProcessDied(pid=7, evidence="was killed", healthy=True), "web")
    scene.at(2, SilenceAdded(expires_us=HOUR), "notify:flapping:*", actor="ada")
    held = "notify:flapping:web is held back by the silence 'notify:flapping:*' of ada, for another 1 h"
    assert held not in (shown(scene, "web")[1])
    scene.daemon.answers = offline_status(scene.home, None)
    assert shown(scene, "web")[1].endswith(f"; {held}")


def test_what_is_not_guarded_any_more_is_told_with_its_past(scene: Scene) -> None:
    scene.at(1, SettingsLoaded(digest="1", processes=("gone", "web")))
    scene.at(2, ProcessDied(pid=7, evidence="was killed", healthy=True), "gone")
    scene.at(3, SettingsLoaded(digest="2", processes=("web",)))
    scene.at(4, SettingsLoaded(digest="3", processes=("web",)))
    head, words, _ = shown(scene, "gone")
    assert head.startswith("process gone  no longer guarded  since ")
    known = f"it is not in the settings any more; last known at {local_text(START + 2_000_000)}"
    assert words == f"{known}: down, was killed"
    told = process_report(scene.home, "gone", lambda pid: TreeUsage(), list)
    assert (told["state"], told["since"]) == ("no longer guarded", "2023-11-14T22:13:23.000000Z")
    assert [event["kind"] for event in told["events"]] == ["process-died"]
    with pytest.raises(PulseError, match="no guarded process 'other'"):
        process_report(scene.home, "other", lambda pid: TreeUsage(), list)


def test_of_what_never_started_the_starts_that_failed_are_told_and_each_wait_once(scene: Scene) -> None:
    scene.settings = GUARDED
    for at in (1, 10):
        id_ = str(scene.at(at, restart(scene), KEY)["id"])
        scene.at(at + 1, EffectFailed(error="there is no such file"), id_)
        delay = RestartDelayed(held_by="the pause between two restarts", since=1, held_us=1, lasts=True)
        scene.at(at + 2, delay, "web")
        if at == 1:
            scene.at(at + 3, delay.model_copy(update={"held_us": 2, "lasts": False}), "web")
    told = process_report(scene.home, "web", lambda pid: TreeUsage(), list)["events"]
    kinds = ["effect-failed", "restart-delayed", "effect-failed", "restart-delayed"]
    assert [event["kind"] for event in told] == kinds
    assert [event["data"].get("lasts", False) for event in told[1::2]] == [False, True]


def test_a_request_for_a_restart_or_a_stop_is_told_what_holds_it_back(scene: Scene) -> None:
    assert not [*request_holds(scene.home, ["web"])]
    scene.at(1, SilenceAdded(expires_us=HOUR), "restart-process:w*", actor="ada")
    words = "web is held back for another 1 h by the silence 'restart-process:w*' of ada"
    assert [*request_holds(scene.home, ["web", "db"])] == [words]
    assert not [*request_holds(scene.home, ["web"], "stop-process")]
    scene.at(2, Paused(), actor="ada")
    assert [*request_holds(scene.home, ["web"])] == [
        "Pulse is paused by ada, and starts nothing until: upulse resume"
    ]
    assert [*request_holds(scene.home, ["web"], "stop-process")] == [
        "Pulse is paused by ada, and ends nothing until: upulse resume"
    ]


def test_a_process_is_told_with_the_condition_of_what_it_takes_and_requests_in_words(scene: Scene) -> None:
    process = {"name": "web", "start": ["web"], "memory_max": "1G"}
    scene.settings = Settings.model_validate({"process": [process]})
    scene.at(1, ProcessUp(pid=7, started=7, evidence="process 7 is alive"), "web")
    scene.at(2, ProcessRestartRequested(), "web", actor="root")
    scene.at(3, ConditionRaised(evidence="web takes 2.0 GiB", state="high"), "usage:web:memory")
    scene.at(4, restart(scene), KEY)
    lines = shown(scene, "web")
    assert any(line.startswith("last request: root requested a restart, at ") for line in lines)
    assert any(
        line.startswith("usage:web:memory (high) since ") and line.endswith(": web takes 2.0 GiB")
        for line in lines
    )
    stop = ProcessStopRequested(expires_us=1, why="lunch")
    scene.at(5, stop, "web", actor="root")
    assert any(": root requested a stop: lunch, at " in line for line in shown(scene, "web"))


@pytest.mark.parametrize("is_seen_first", [True, False])
def test_a_start_that_is_seen_before_it_is_acknowledged_is_what_followed_it(
    scene: Scene, is_seen_first: bool
) -> None:
    scene.at(1, ProcessDied(pid=6, evidence="killed", healthy=True), "web")
    id_ = str(scene.at(2, restart(scene), KEY)["id"])
    scene.at(3, EffectExecuting(attempt=1), id_)
    up = ProcessUp(pid=7, started=7, evidence="process 7 is alive")
    if is_seen_first:
        scene.at(4, up, "web")
    scene.at(5, EffectAcked(took_us=5), id_)
    if not is_seen_first:
        scene.at(6, up, "web")
    scene.at(7, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    followed = why(scene.home, "web").spelled()["followed"]
    assert (followed["kind"], followed["data"]["pid"]) == ("process-up", 7)


@pytest.mark.parametrize("ends", [True, False])
def test_what_follows_a_stop_is_an_end_and_no_later_start(scene: Scene, ends: bool) -> None:
    up = ProcessUp(pid=7, started=7, evidence="process 7 is alive")
    stop = Effect(action="stop-process", key="stop-process:web", params={"process": "web"}, reason="root")
    id_ = str(scene.at(1, stop, "stop-process:web")["id"])
    scene.at(2, EffectExecuting(attempt=1), id_)
    scene.at(3, up, "web")  # of a restart that was under way
    if ends:
        scene.at(4, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    scene.at(5, EffectAcked(took_us=5), id_)
    scene.at(6, up, "web")  # somebody has started it since
    followed = why(scene.home, id_).spelled()["followed"]
    assert (followed and followed["kind"]) == ("process-died" if ends else None)


def test_an_attempt_that_ended_with_its_daemon_is_told_and_so_is_what_it_did(scene: Scene) -> None:
    stop = Effect(action="stop-process", key="stop-process:web", params={"process": "web"}, reason="root")
    id_ = str(scene.at(1, stop, "stop-process:web")["id"])
    scene.at(2, EffectExecuting(attempt=1), id_)
    scene.at(8, ProcessDied(pid=7, evidence="process 7 is gone", healthy=True), "web")
    scene.at(9, EffectExecuting(attempt=2), id_)
    scene.at(10, EffectAcked(took_us=5), id_)
    assert [" ".join(line.split()) for line in shown(scene, id_)[-4:]] == [
        "1 s executing attempt 1, the daemon ended meanwhile",
        "7 s process-died web: process 7 is gone",
        "8 s executing attempt 2",
        "9 s acked after 5 us",
    ]


def test_who_waits_for_another_is_told_with_its_own_end_and_who_stopped_the_other(scene: Scene) -> None:
    of = [{"name": "db", "start": ["db"]}, {"name": "web", "start": ["web"], "depends_on": ["db"]}]
    scene.settings = Settings.model_validate({"process": of})
    scene.at(1, ProcessStopRequested(expires_us=HOUR), "db", actor="root")
    scene.at(2, ProcessDied(pid=7, evidence="was stopped", healthy=True, intended=True), "db")
    scene.at(3, ProcessDied(pid=8, evidence="was killed by SIGKILL", healthy=True), "web")
    told = why(scene.home, "web").spelled()["about"]["why"]
    assert told.endswith("down: was killed by SIGKILL; waits for db; db is stopped by root")


def test_where_the_settings_cannot_be_read_no_name_is_refused_for_another_reason(scene: Scene) -> None:
    scene.faults = ("config.toml:2: it is no TOML",)
    words = "since the settings can't be read: config.toml:2: it is no TOML"
    with pytest.raises(PulseError, match=words):
        process_report(scene.home, "only", lambda pid: TreeUsage(), list)
    with pytest.raises(PulseError, match=words.removeprefix("since ")):
        why(scene.home, "only")


def test_who_was_renamed_is_told_under_its_old_name_as_alive_with_its_new_one(scene: Scene) -> None:
    scene.at(1, SettingsLoaded(digest="1", processes=("b",)))
    scene.at(2, ProcessUp(pid=7, started=7, evidence="process 7 is alive"), "b")
    scene.at(3, SettingsLoaded(digest="2", processes=("bee",)))
    scene.at(4, ProcessUp(pid=7, started=7, evidence="process 7 is alive"), "bee")
    words = shown(scene, "b")[1]
    assert words.endswith(": up, process 7 is alive; process 7 is guarded as bee now")


def test_of_what_only_its_port_was_known_nobody_is_told_to_be_the_same_process(scene: Scene) -> None:
    up = ProcessUp(pid=None, started=None, evidence="port 80 answers")
    scene.at(1, SettingsLoaded(digest="1", processes=("a", "b")))
    scene.at(2, up, "a")
    scene.at(3, up, "b")
    scene.at(4, SettingsLoaded(digest="2", processes=("a",)))
    assert shown(scene, "b")[1].endswith(": up, port 80 answers")


GUARDED = Settings.model_validate({"process": [{"name": "web", "start": ["web"]}]})


def test_a_sample_says_what_its_last_probe_found_once(scene: Scene) -> None:
    found = "http://x/: it answered 500"
    look: dict[str, Json] = {"up": False, "detail": found, "probe": {"failed": 3, "of": 3, "error": found}}
    sample = asyncio.run(scene.sample(1, "process-alive", {"web": look}))
    scene.at(2, restart(scene, sample), KEY)
    line = next(line for line in shown(scene, KEY) if "process-alive" in line)
    assert line.endswith(f"web is not up; 3 of the last 3 probes failed, the last one: {found}")
    told = Sample(1, "process-alive", Moment(1, "boot", 1), {"web": look})
    assert sample_words(told, ("flapping:web",), GUARDED).startswith("web is not up; ")


def test_a_sample_beside_a_bound_that_was_not_in_force_then_is_said_to_be() -> None:
    sample = Sample(1, "process-usage", Moment(1, "boot", 1), {"web": {"pid": 7, "memory": 40 << 20}})
    web = {"name": "web", "start": ["web"], "memory_max": "60M", "for": "1m"}
    settings = Settings.model_validate({"process": [web]})
    words = "web takes 40.0 MiB of memory (allowed: 60.0 MiB)"
    assert sample_words(sample, ("usage:web:memory",), settings) == words
    assert sample_words(sample, ("usage:web:memory",), settings, False) == f"{words}, by the settings of now"


def test_a_check_that_is_well_is_said_to_be_so_in_words() -> None:
    sample = Sample(1, "checks", Moment(1, "boot", 1), {"spool": {"ok": True}})
    assert sample_words(sample, ("check:spool",), Settings()) == "check:spool is well"


def test_a_process_says_why_it_is_as_it_is_though_nothing_was_ever_done_about_it(scene: Scene) -> None:
    scene.settings = GUARDED
    scene.at(1, ProcessUp(pid=7, started=1, evidence="process 7 is alive"), "web")
    told = why(scene.home, "web").spelled()
    assert (told["effect"], told["about"]["incident"], told["about"]["request"]) == (None, None, None)
    assert told["about"]["why"].endswith("process 7 is alive")
    assert shown(scene, "web")[-1] == "nothing was done about it yet"
    scene.at(2, Paused(), actor="ada")
    assert why(scene.home, "web").spelled()["about"]["held_by"] is None, "it is up"
    scene.at(2, ProcessStopRequested(expires_us=HOUR, why="surgery"), "web", actor="ada")
    assert any("ada requested a stop: surgery" in line for line in shown(scene, "web"))
    scene.at(3, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    assert why(scene.home, "web").spelled()["about"]["incident"]["evidence"] == "killed"


def test_what_the_log_does_not_take_is_told_in_words_of_who_it_is_about(scene: Scene) -> None:
    scene.settings = GUARDED
    scene.at(1, FULL, "disk:/x")
    scene.at(2, restart(scene), KEY)
    held = offline_status(scene.home, None)
    held["log"] |= {"unwritten": 3, "held": {"process-died": 2, "condition-raised": 1}}
    held["processes"][0] |= {"state": "flapping", "why": "it died 9 times"}
    held["conditions"] = [
        {"name": "unwritten", "state": "", "since": "2026-01-01T00:00:00Z", "evidence": "no room", "tried": 0}
    ]
    scene.daemon.answers = held
    assert "1 condition-raised; by now web is flapping: it died 9 times" in "; ".join(shown(scene, KEY))
    assert shown(scene, "unwritten")[0].startswith("condition unwritten  raised")
    assert shown(scene, "unwritten")[1] == "no room"
    assert "cleared" in shown(scene, "disk:/x")[0]
    with pytest.raises(PulseError, match="held in memory"):
        why(scene.home, "nobody")


def test_a_silence_says_whose_it_is_until_when_and_what_it_holds_back_now(scene: Scene) -> None:
    scene.settings = GUARDED
    scene.at(1, SilenceAdded(expires_us=HOUR, why="new disks"), "restart-process:*", actor="ada")
    assert "holds back nothing now" in shown(scene, "restart-process:*")
    scene.at(2, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    about = why(scene.home, "restart-process:*").spelled()["about"]
    assert (about["kind"], about["by"], about["why"]) == ("silence", "ada", "new disks")
    assert about["holds_back"] == [{"key": KEY, "reason": "web is dead: killed"}]
    held = why(scene.home, "web").spelled()["about"]["held_by"]
    assert held == "the silence 'restart-process:*' of ada (new disks)"


@pytest.mark.parametrize(("retry_us", "state"), [(None, "failed"), (60_000_000, "pending")])
def test_a_task_says_how_it_is_before_what_was_done_about_it(
    scene: Scene, retry_us: int | None, state: str
) -> None:
    task = "task_1a2b3c"
    scene.at(1, parse("project-set", {}), "app")
    scene.at(2, parse("task-created", {"project": "app", "title": "mend it"}), task)
    assert shown(scene, task)[0].startswith(f"task {task}  pending  since ")
    wish = Effect(action="assign-task", key=f"assign-task:{task}", params={"task": task})
    scene.at(3, wish, wish.key)
    claim = scene.at(5, parse("task-executing", {"agent": "ada", "lease_us": HOUR}), task)
    failed = {"token": claim["seq"], "error": "no such branch", "retry_us": retry_us}
    scene.at(6, parse("task-failed", failed), task)
    head, why_, effect, *_ = shown(scene, task)
    assert head.startswith(f"task {task}  {state}  since ")
    assert why_ == "mend it; no such branch; attempts: 1"
    assert effect.startswith(wish.key)
    if retry_us:
        scene.at(70, parse("task-executing", {"agent": "ada", "lease_us": HOUR}), task)
        assert shown(scene, task)[1] == "mend it; the attempt before: no such branch; attempts: 2"


def test_a_silenced_process_says_the_silence_once_and_no_effect_of_an_earlier_death(scene: Scene) -> None:
    scene.settings = GUARDED
    scene.at(1, restart(scene), KEY)
    scene.at(2, SilenceAdded(expires_us=HOUR, why="new disks"), "restart-process:*", actor="ada")
    scene.at(3, ProcessDied(pid=7, evidence="killed", healthy=True, printed="a\nb"), "web")
    lines = shown(scene, "web")
    assert "\n".join(lines).count("new disks") == 1, lines
    incident = next(
        line for line in lines if line.startswith("incident ongoing when a daemon last ran, since ")
    )
    assert incident.endswith("; all of it: upulse incidents")
    assert lines[-1] == "nothing was done about it yet"


@pytest.mark.parametrize(
    ("times", "words"), [(1, "it began between {} and {}"), (2, "the first of 2 times between {} and {}")]
)
def test_what_began_while_nobody_looked_is_not_said_to_be_ongoing_from_one_time_to_another(
    scene: Scene, times: int, words: str
) -> None:
    scene.settings = GUARDED
    scene.at(1, ProcessUp(pid=7, started=1, evidence="process 7 is alive"), "web")
    unseen = ProcessDied(pid=7, evidence="it is gone", healthy=True, last_seen=START + 2_000_000)
    scene.at(9, unseen, "web")
    if times > 1:
        scene.at(10, ProcessUp(pid=8, started=1, evidence="process 8 is alive"), "web")
        scene.at(11, ProcessDied(pid=8, evidence="it is gone", healthy=True), "web")
    between = words.format(*(local(iso(START + second * 1_000_000)) for second in (2, 9)))
    (incident,) = (line for line in shown(scene, "web") if line.startswith("incident ongoing"))
    assert incident.startswith(f"incident ongoing when a daemon last ran, {between}; all of it")


def test_a_process_that_the_budget_holds_back_tells_no_effect_of_an_earlier_death(scene: Scene) -> None:
    scene.settings = GUARDED
    scene.at(1, restart(scene), KEY)
    scene.at(3, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    scene.daemon.answers = held = offline_status(scene.home, None)
    now: HeldStatus = {"by": "the budget of 2 a minute", "since": "2023-11-14T22:13:23.000000Z"}
    held["processes"][0] |= {"state": "waiting", "why": "held back by the budget", "held": now}
    assert any(
        line.startswith("held back since 2023") and line.endswith(now["by"]) for line in shown(scene, "web")
    )
    assert shown(scene, "web")[-1] == "nothing was done about it yet"


def test_a_tick_tells_what_concerns_the_effect_and_counts_the_other_rules(scene: Scene) -> None:
    scene.settings = GUARDED
    notes = {
        "mine": ("web: due: dead", "web-2: waiting", "other: waiting"),
        "guard": ("usage:web:memory: held back",),
        "others": ("other: held back",),
        "silent": (),
    }
    layers = [{"rule": rule, "outcome": "passed", "notes": said} for rule, said in notes.items()]
    scene.at(1, ProcessDied(pid=7, evidence="killed", healthy=True), "web")
    scene.at(2, restart(scene), KEY)
    story = why(scene.home, KEY).spelled()
    story["tick"] = {
        "number": 1,
        "woken_by": "timer",
        "took_ms": 1.0,
        "snapshot_kept": True,
        "ms": 1.0,
        "layers": layers,
    }
    lines = drawn(story)
    place = next(number for number, line in enumerate(lines) if " tick " in line)
    assert lines[place + 1 : place + 4] == [
        "guard passed  usage:web:memory: held back",
        "mine passed  web: due: dead",
        "2 rules passed it on",
    ]
    story["effect"]["rule"] = layers[0]["rule"] = "process_watchdog"
    layers[0]["outcome"] = "dropped"  # another effect
    assert "process_watchdog added  web: due: dead" in drawn(story)


def test_pulse_itself_says_why_it_is_as_it_is(scene: Scene) -> None:
    scene.at(1, Paused(why="lunch"), actor="ada")
    about = why(scene.home, "pulse").spelled()["about"]
    assert (about["kind"], about["state"], about["why"]) == ("pulse", "stopped", "paused by ada: lunch")
    scene.at(2, Paused(), actor="bob")
    assert why(scene.home, "pulse").spelled()["about"]["why"] == "paused by ada: lunch"
    paused = home_status(scene.home)["paused"]
    assert paused
    assert paused["since"] == iso(START + 1_000_000)
    scene.at(3, Paused(why="new disks"), actor="bob")
    assert why(scene.home, "pulse").spelled()["about"]["why"] == "paused by bob: new disks"


def test_what_is_wrong_with_what_pulse_guards_is_said_of_it_too(scene: Scene, monkeypatch: Any) -> None:
    standing: Any = home_status(scene.home)
    standing["processes"] = [{"name": "web", "state": "flapping"}, {"name": "demo", "state": "up"}]
    standing["engine"] = {"quarantined": {"mine": "it was slow"}}
    monkeypatch.setattr(subject_report, "home_status", lambda home: standing)
    about = why(scene.home, "pulse").spelled()["about"]
    assert about["why"] == "the rule mine is passed over: it was slow; web is flapping"
    standing["processes"], standing["engine"], standing["samples_lost"] = [], None, "vitals.db is full"
    assert why(scene.home, "pulse").spelled()["about"]["why"] == "see: upulse status"
