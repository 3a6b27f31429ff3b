"""What the application says of a home and does in it: with a daemon that answers and without."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.workers.users import user_name
from pulse_core.app import append as append_module
from pulse_core.app import effects, incidents
from pulse_core.app.append import append
from pulse_core.app.compute_status import recorded_status
from pulse_core.app.context import LoadedSettings
from pulse_core.app.engine.user_rules import UserRules
from pulse_core.app.event_filter import EventFilter, events
from pulse_core.app.explain import RuleTrace, explain
from pulse_core.app.follow import follow, settled
from pulse_core.app.projections import described_projections
from pulse_core.app.state import CaveatedSnapshot, current_state, settings_for, snapshot, state_at
from pulse_core.app.status import (
    daemon_status,
    home_status,
    offline_status,
    status_at_stop,
    unwritten_words,
    why_unheard,
)
from pulse_core.app.subject_report import subject_report
from pulse_core.app.why import why
from pulse_core.model.errors import (
    HomeBusy,
    PulseError,
    Refused,
    SettingsRefused,
    UnknownName,
)
from pulse_core.model.home_status import FailedDaemon, HomeStatus, LockHolder, left_running
from pulse_core.model.kinds import (
    DaemonStarted,
    DaemonStopped,
    Effect,
    EffectAcked,
    EffectExecuting,
    EngineDisabled,
    Paused,
    ProcessDied,
    ProcessStopRequested,
    ProcessUp,
    SafeModeEntered,
    SettingsLoaded,
    SettingsRejected,
)
from pulse_core.model.stored_data import REDACTED
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import CannotLoad, Revision
from pulse_core.ports.engine_repository import EngineRepository
from pulse_core.settings.settings import Settings
from tests.unit.app.home_scene import SECOND, START, Scene
from upulse_cli.views.status import daemon_line
from upulse_cli.wiring import offline
from upulse_cli.wiring.engine import command_refusal

HOLDER = LockHolder(7, "boot", START, "0.1.0")


class NoHosts:
    """Hosts that load nothing, and remember what they were asked for."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def warm(self) -> None:
        self.did.append("warm")

    async def start(self, *_: object) -> Never:
        self.did.append("start")
        raise CannotLoad("nothing loads here")

    async def close(self) -> None:
        self.did.append("close")


def no_repository() -> EngineRepository:
    """Nobody asks for it."""
    raise AssertionError("git was asked")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def running(scene: Scene) -> HomeStatus:
    """The answer of a daemon that runs."""
    whole = home_status(scene.home)
    whole["daemon"] = {"state": "running", "pid": 5, "since": None, "version": "1"}
    return whole


def test_a_daemon_that_answers_is_believed(scene: Scene) -> None:
    scene.daemon.answers = running(scene)
    assert home_status(scene.home) is scene.daemon.answers
    assert (daemon_status(scene.home)["state"], why_unheard(scene.home)) == ("running", None)


def test_who_has_patience_is_told_what_is_written_and_goes_if_no_daemon_stays_up(scene: Scene) -> None:
    scene.at(1, Paused(why="tests"))
    assert [event["kind"] for event in follow(scene.home, 0, patience=0)] == ["paused"]


def test_without_a_daemon_the_files_tell_how_a_home_stands(scene: Scene) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.at(2, Paused(why="tests"))
    scene.at(3, DaemonStopped(pid=5, reason="asked"))
    now = home_status(scene.home)
    assert (now["daemon"]["state"], now["daemon"].get("died"), now["log"]["rows"]) == ("stopped", None, 3)
    assert now["daemon"]["since"] == "2023-11-14T22:13:23.000000Z"
    assert now["paused"] is not None
    assert now["paused"]["why"] == "tests"
    assert "no daemon runs" in (why_unheard(scene.home) or "")


def test_a_daemon_that_could_not_say_that_it_ended_died_at_its_last_sign_of_life(scene: Scene) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    asyncio.run(scene.sample(9))
    daemon = home_status(scene.home)["daemon"]
    assert (daemon.get("died"), daemon["since"]) == (True, "2023-11-14T22:13:29.000000Z")


def test_a_daemon_that_lives_on_without_its_file_system_is_not_said_to_have_died(scene: Scene) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.daemon.lost = LockHolder(5, "", 0, "")
    daemon = home_status(scene.home)["daemon"]
    assert (daemon["state"], daemon["pid"], daemon.get("died")) == ("not-answering", 5, None)


@pytest.mark.parametrize(
    ("began", "second", "words"),
    [
        (11, 12, "did not start  at "),
        (0, 12, "gave up  at "),
        (4, 5, "died  last sign of life "),  # another one ran since then
    ],
)
def test_a_daemon_that_gave_up_says_why_and_is_not_told_to_have_died(
    scene: Scene, began: int, second: int, words: str
) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    asyncio.run(scene.sample(9))
    scene.daemon.failure = FailedDaemon(START + began * SECOND, START + second * SECOND, "the port is taken")
    status = home_status(scene.home)
    line = daemon_line(status["daemon"]).plain
    assert line.startswith(f"daemon    {words}")
    assert ("the port is taken" in line) is (second > 9)
    assert ("; the one before it: last sign of life " in line) is (words.startswith("did not"))
    about = why(scene.home, "pulse").spelled()["about"]
    assert about["state"] == words.partition("  ")[0]
    assert ("the port is taken" in about["why"]) is (second > 9)
    scene.daemon.holder = HOLDER
    assert "failed" not in home_status(scene.home)["daemon"], "somebody holds the home"


def test_a_daemon_that_failed_after_it_had_recorded_its_stop_is_not_told_to_have_never_started(
    scene: Scene,
) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.at(9, DaemonStopped(pid=5, reason="asked to stop"))
    scene.daemon.failure = FailedDaemon(START, START + 10 * SECOND, "the disk is full")
    line = daemon_line(home_status(scene.home)["daemon"]).plain
    assert line.startswith("daemon    gave up  at ")
    assert "the one before it" not in line


def test_what_a_dead_daemon_knew_stands_as_it_was_then(scene: Scene) -> None:
    scene.settings = Settings.model_validate({"process": [{"name": "web", "start": ["web"]}]})
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.at(2, SettingsRejected(faults=("config.toml:1: it is wrong",)))
    scene.at(3, ProcessStopRequested(expires_us=3_600_000_000), "web", actor="ada")
    scene.at(4, ProcessDied(pid=7, evidence="ended", healthy=True), "web")
    told = [home_status(scene.home)["processes"][0]["why"] for scene.clock.second in (4, 600)]
    assert told == ["no daemon tells of it; last known: stopped, stopped by ada, for another 60 min"] * 2
    scene.faults = ("config.toml:1: it is wrong",)
    status = home_status(scene.home)
    assert (status.get("settings_faults"), status.get("settings_refused")) == (scene.faults, None)


def test_whoever_holds_the_home_and_is_silent_does_not_answer(scene: Scene) -> None:
    scene.daemon.holder = HOLDER
    daemon = home_status(scene.home)["daemon"]
    assert (daemon["state"], daemon["pid"], daemon["version"]) == ("not-answering", 7, "0.1.0")
    assert "process 7" in (why_unheard(scene.home) or "")
    with scene.home.events() as log:
        told = subject_report(scene.home, log, "pulse")
    assert "process 7 does not answer" in (told or {})["why"]
    scene.daemon.holder = LockHolder(0, "", 0, "")
    assert "whoever holds the home" in (why_unheard(scene.home) or "")


def test_what_no_disk_takes_is_counted_in_words_where_only_the_log_is_told(scene: Scene) -> None:
    assert unwritten_words(scene.home) == "", "no daemon answers"
    scene.daemon.answers = offline_status(scene.home, None)
    assert unwritten_words(scene.home) == ""
    scene.daemon.answers["log"] |= {"unwritten": 2, "held": {"process-died": 2}}
    assert unwritten_words(scene.home) == "the log can't be written; held in memory: 2 process-died"


def test_of_refused_settings_only_the_names_are_known(scene: Scene) -> None:
    scene.at(1, SettingsLoaded(digest="d", processes=("gateway",)))
    scene.faults = ("config.toml:1: it is wrong",)
    now = home_status(scene.home)
    assert [one["name"] for one in now["processes"]] == ["gateway"]
    assert now.get("settings_faults") == ("config.toml:1: it is wrong",)
    scene.at(2, ProcessDied(pid=7, evidence="ended", healthy=True), "gateway")
    assert home_status(scene.home)["processes"][0]["why"] == (
        "no daemon tells of it, and its settings can't be read; last known: down: ended"
    )
    assert settings_for(scene.home, current_state(scene.home)).faults == scene.faults


def test_rules_are_not_explained_with_settings_that_nobody_knows(scene: Scene) -> None:
    scene.at(1, SettingsLoaded(digest="d", processes=("gateway",)))
    scene.at(2, ProcessDied(pid=7, evidence="ended", healthy=True), "gateway")
    scene.faults = ("config.toml:1: it is wrong",)
    with pytest.raises(SettingsRefused, match="it is wrong"):
        asyncio.run(explain(scene.home, None, None))


def test_a_stop_during_a_restart_tells_what_the_newer_daemon_leaves_running(scene: Scene) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.at(1, SettingsLoaded(digest="d", processes=("gateway", "web")))
    for name, pid in (("gateway", 7), ("web", 8)):
        scene.at(2, ProcessUp(pid=pid, started=1, evidence="there"), name)
    before = home_status(scene.home)
    before["daemon"]["pid"], before["unguarded"] = 5, [{"name": "gone", "pids": [9]}]
    scene.at(3, DaemonStopped(pid=5, reason="asked to stop"))
    told = left_running(status_at_stop(scene.home, before, lambda one: True))
    assert told == "Left running, unguarded: gone (not in the settings any more: 9)."
    scene.at(4, DaemonStarted(pid=6, version="1"))
    scene.at(5, ProcessDied(pid=7, evidence="ended", healthy=True), "gateway")
    scene.at(6, ProcessUp(pid=17, started=2, evidence="there"), "gateway")
    scene.at(7, ProcessDied(pid=8, evidence="ended", healthy=True), "web")
    scene.at(8, DaemonStopped(pid=6, reason="asked to stop"))
    told = left_running(status_at_stop(scene.home, before, lambda one: one.pid == 17))
    assert told == "Left running, unguarded: gateway (process 17)."


def test_a_stop_tells_of_what_lives_after_it_and_not_of_what_it_has_waited_for(scene: Scene) -> None:
    scene.at(1, DaemonStarted(pid=5, version="1"))
    scene.at(1, SettingsLoaded(digest="d", processes=("gateway", "web", "unit")))
    for name, pid in (("gateway", 7), ("web", 8)):
        scene.at(2, ProcessUp(pid=pid, started=1, evidence="there"), name)
    before, state = home_status(scene.home), current_state(scene.home)
    before["daemon"]["pid"] = 5
    before["processes"] = [recorded_status(name, state) for name in ("gateway", "web", "unit")]
    before["processes"][2]["state"] = "up"
    scene.at(3, DaemonStopped(pid=5, reason="asked to stop"))
    told = left_running(status_at_stop(scene.home, before, lambda one: one.pid == 8))
    assert told == "Left running, unguarded: web (process 8), unit."


def test_an_append_goes_through_the_daemon_if_one_answers(scene: Scene) -> None:
    scene.daemon.answers = running(scene)
    answer = append(scene.home, "paused", data={"why": "now"})
    assert (answer.by_daemon, answer.existing, answer.event["data"]) == (True, False, {"why": "now"})
    assert [event.kind for event in scene.rows()] == ["paused"]


def test_without_a_daemon_an_append_is_made_under_the_lock(scene: Scene) -> None:
    answer = append(scene.home, "paused", data={"why": "now"})
    assert (answer.by_daemon, answer.event["kind"], answer.event["actor"]) == (
        False,
        "paused",
        user_name(os.getuid()),
    )
    with pytest.raises(Refused):
        append(scene.home, "paused", data={"odd": 1})
    with pytest.raises(UnknownName):
        append(scene.home, "pausd")
    assert len(scene.rows()) == 1


def test_who_holds_the_home_and_does_not_answer_is_waited_for_and_then_named(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_module, "PATIENCE", 0.01)
    scene.daemon.holder = HOLDER
    with pytest.raises(PulseError, match="no daemon answers"):
        append(scene.home, "paused")
    monkeypatch.setattr(offline, "LOCK_WAIT", 0.0)
    scene.daemon.holder = None
    with HomeLock(scene.files.lock, "1"), pytest.raises(HomeBusy):
        append(scene.home, "paused")
    assert scene.rows() == []


def wish(key: str = "restart-process:gateway") -> Effect:
    return Effect(action="restart-process", key=key, params={"process": "gateway"}, reason="it died")


def effect_done(scene: Scene) -> str:
    """A death, the effect that answered it, and the process up again."""
    scene.at(1, ProcessDied(pid=1, evidence="gone", healthy=True), "gateway")
    id_ = str(scene.at(2, wish(), "restart-process:gateway")["id"])
    scene.at(3, EffectExecuting(attempt=1), id_)
    scene.at(4, EffectAcked(took_us=5), id_)
    scene.at(6, ProcessUp(pid=2, started=2, evidence="there"), "gateway")
    return id_


def test_why_tells_an_effect_from_its_cause_to_what_followed(scene: Scene) -> None:
    id_ = effect_done(scene)
    for name in (id_, "restart-process:gateway", "gateway", None):
        told = why(scene.home, name).spelled()
        assert (told["effect"]["id"], told["effect"]["state"]) == (id_, "acked")
        assert [told[part]["kind"] for part in ("seen", "wish", "outcome", "followed")] == [
            "process-died",
            "effect",
            "effect-acked",
            "process-up",
        ]
        assert (told["followed"]["ms"], told["attempts"][0]["took_ms"]) == (5_000, 1_000)
    with pytest.raises(PulseError, match="no process, condition or effect 'nothing'"):
        why(scene.home, "nothing")


def test_an_incident_says_what_was_done_and_that_it_helped(scene: Scene) -> None:
    effect_done(scene)
    (one,) = [found.spelled() for found in incidents.incidents(scene.home, None)]
    assert (one["subject"], one["helped"], one["lasted_ms"]) == ("gateway", True, 5_000)
    assert incidents.incidents(scene.home, START + 60 * SECOND) == []


def test_events_of_a_process_are_its_own_and_those_of_its_effects(scene: Scene) -> None:
    effect_done(scene)
    scene.at(9, Paused())
    for name in ("db", "gateway"):  # restarted by a rule under a key of its own
        bounce = Effect(action="restart-process", key=f"bounce:{name}", params={"process": name})
        scene.at(9, bounce, bounce.key)
    about = EventFilter(subject="gateway")
    found = list(events(scene.home, about, and_new=False))
    kinds = ["process-died", "effect", "effect-executing", "effect-acked", "process-up", "effect"]
    assert [event["kind"] for event in found] == kinds
    assert found[-1]["subject"] == "bounce:gateway"
    last = EventFilter(("paused",), last=1)
    assert [event["kind"] for event in events(scene.home, last, and_new=False)] == ["paused"]
    with pytest.raises(UnknownName):
        EventFilter(("pausd",))


def test_events_that_come_follow_those_that_are_there(scene: Scene) -> None:
    scene.daemon.answers = running(scene)
    scene.at(1, Paused())
    coming = events(scene.home, EventFilter(), and_new=True)
    assert next(coming)["kind"] == "paused"
    scene.at(2, DaemonStopped(pid=1, reason="now"))
    assert next(coming)["kind"] == "daemon-stopped"


def test_the_end_of_an_effect_is_waited_for(scene: Scene) -> None:
    scene.daemon.answers = running(scene)
    id_ = effect_done(scene)
    assert settled(scene.home, id_)["kind"] == "effect-acked"


def test_effects_that_are_open_are_told_apart_from_all(scene: Scene) -> None:
    effect_done(scene)
    scene.at(9, wish("other"), "other")
    assert [one.wish.subject for one in effects.open_effects(scene.home)] == ["other"]
    newest = [one.wish.subject for one in effects.newest_effects(scene.home, 5)]
    assert newest == ["restart-process:gateway", "other"]


def test_only_an_open_effect_is_cancelled_and_only_a_settled_one_repeated(scene: Scene) -> None:
    done = effects.effect(scene.home, effect_done(scene))
    with pytest.raises(PulseError, match="there is nothing to cancel"):
        effects.cancel_effect(scene.home, done, "")
    with pytest.raises(PulseError, match="was done; to do it again"):
        effects.retry_effect(scene.home, done)
    scene.at(9, wish("other"), "other")
    pending = effects.effect(scene.home, "other")
    with pytest.raises(PulseError, match="wait for its end, or cancel it"):
        effects.retry_effect(scene.home, pending)
    assert effects.cancel_effect(scene.home, pending, "no").event["kind"] == "effect-cancel-requested"


def test_an_effect_whose_content_was_redacted_is_not_repeated(scene: Scene) -> None:
    done = effects.effect(scene.home, effect_done(scene))
    redacted = replace(done, wish=done.wish._replace(data=REDACTED))
    with pytest.raises(PulseError, match="what it was to do is not known any more"):
        effects.retry_effect(scene.home, redacted, force=True)


def test_nobody_waits_for_an_effect_that_nobody_would_do(scene: Scene) -> None:
    with pytest.raises(PulseError, match="leave out --wait"):
        effects.add_effect(scene.home, {"action": "notify", "key": "k"}, to_wait=True)


def test_the_state_at_a_row_knows_nothing_of_later_ones(scene: Scene) -> None:
    scene.at(1, Paused())
    scene.at(2, DaemonStarted(pid=5, version="1"))
    with scene.home.events() as log:
        assert state_at(scene.home, log, 1).control.started is None
    assert current_state(scene.home).control.pid == 5


def test_a_moment_in_the_past_is_seen_as_it_was_and_one_to_come_is_refused(scene: Scene) -> None:
    scene.at(1, Paused())
    scene.at(9, DaemonStarted(pid=5, version="1"))
    seen, caveats = snapshot(scene.home, START + 5 * SECOND)
    assert (seen.state.seq, seen.state.control.paused is not None) == (1, True)
    assert any("samples of that minute are gone" in words for words in caveats)
    with pytest.raises(PulseError, match="has not come yet"):
        snapshot(scene.home, START + 10 * SECOND)
    with pytest.raises(PulseError, match="the log begins after"):
        snapshot(scene.home, START)


def test_a_snapshot_says_of_faulty_settings_whether_more_than_names_is_known(scene: Scene) -> None:
    usable = replace(scene.home, settings=lambda: LoadedSettings(scene.settings, ["no such folder"]))
    assert "the settings are faulty: no such folder" in snapshot(usable, None).caveats
    scene.faults = ("unknown key",)
    words = "the settings are faulty, so only the names of processes are known: unknown key"
    assert words in snapshot(scene.home, None).caveats


def test_explain_tells_each_rule_and_what_is_not_known(scene: Scene) -> None:
    scene.at(1, Paused(why="tests"))
    hosts = NoHosts()
    rules = UserRules(
        scene.home, hosts, no_repository, lambda: "a", lambda commit: Revision(commit, "/nowhere")
    )
    told = asyncio.run(explain(scene.home, None, rules)).spelled()
    assert "the user's rules could not be asked: nothing loads here" in told["caveats"]
    assert hosts.did == ["warm", "start", "close"]
    assert (told["seq"], told["effects"]) == (1, [])
    assert "process_watchdog" in [rule["rule"] for rule in told["rules"]]
    for payload, reason in (
        (SafeModeEntered(crashes=3, left_out=("engine",)), "left out by safe mode"),
        (EngineDisabled(), "disabled"),
    ):
        scene.at(2, payload)
        told = asyncio.run(explain(scene.home, None, rules)).spelled()
        assert f"the engine is {reason}: the user's rules are not asked" in told["caveats"]
    assert hosts.did.count("start") == 1


def test_explain_tells_of_a_command_that_is_not_allowed_that_it_is_wished_for_in_vain(scene: Scene) -> None:
    scene.at(1, Paused(why="tests"))
    seen, caveats = snapshot(scene.home, None)
    wish = Effect(action="run-command", key="mine:run", params={"argv": ["/bin/false"]}, rule="tells")
    trace = RuleTrace(CaveatedSnapshot(seen, caveats), (), Verdict((wish,)))
    told = trace.without_refused(command_refusal).spelled()
    assert (told["effects"], [one["key"] for one in told["withheld"]]) == ([], ["mine:run"])
    assert told["withheld"][0]["why"].startswith("left out: '/bin/false' may not be run; to allow it, add ")
    allowed = Settings.model_validate({"executors": {"run-command": {"allow": ["/bin/false"]}}})
    trace = RuleTrace(CaveatedSnapshot(replace(seen, settings=allowed), caveats), (), Verdict((wish,)))
    told = trace.without_refused(command_refusal).spelled()
    assert ([one["key"] for one in told["effects"]], told["withheld"]) == (["mine:run"], [])


def test_projections_are_told_by_their_names_now_and_at_a_moment(scene: Scene) -> None:
    scene.at(1, Paused(why="tests"))
    scene.at(9, DaemonStarted(pid=5, version="1"))
    now = described_projections(scene.home, None).spelled()
    assert (now["seq"], now["control"]["why"], now["control"]["pid"]) == (2, "tests", 5)
    then = described_projections(scene.home, START + 5 * SECOND, "control").spelled("control")
    assert (then["paused"], then["started"]) == ("2023-11-14T22:13:21.000000Z", None)
    with pytest.raises(UnknownName, match="did you mean 'control'"):
        described_projections(scene.home, None, "contrl")
