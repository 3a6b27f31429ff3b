"""How a guarded process stands, in the words of `upulse status`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from pulse_core import composition
from pulse_core.app.compute_status import Beat, compute_status, process_conditions, process_status
from pulse_core.app.context import HomeContext
from pulse_core.app.doctor import FAIL, WARN, DaemonChecks, Finding, examine, repair
from pulse_core.app.explain import rule_trace
from pulse_core.app.state import CaveatedSnapshot
from pulse_core.app.status import silent_daemon
from pulse_core.composition import ALL_RULES
from pulse_core.model.home_status import DaemonStatus, GuardedProcessStatus
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment, iso
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.control import Control
from pulse_core.projections.effects import Effects
from pulse_core.projections.processes import Processes, ProcessHistory
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.holds import Hold
from pulse_core.rules.survival.process_watchdog import WATCHER
from pulse_core.settings.settings import Settings
from pulse_core.silences.projection import SILENCES, Silence, Silences
from pulse_core.silences.settings import SilenceSettings

SECOND, MINUTE = 1_000_000, 60_000_000
NOW = Moment(10**15, "boot", 200 * SECOND)
DEAD = ProcessHistory(pid=1, started=1, down=NOW.plus(-50 * SECOND), evidence="gone")
UP = ProcessHistory(pid=1, started=1, up=NOW.plus(-50 * SECOND), evidence="there")


def told_of(
    settings: Settings, facts: State, look: Mapping[str, Json] = {}, looked: Moment | None = NOW
) -> GuardedProcessStatus:
    windows = {WATCHER: Window((Sample(1, WATCHER, NOW, {"p": look}),))}
    seen = Snapshot(1, NOW, settings, windows, facts)
    return process_status("p", process_conditions(seen)["p"], seen, looked)


def sampled(key: str, data: Mapping[str, Json]) -> Mapping[str, Sample]:
    return {key: Sample(1, key, NOW, data)}


def standing(
    history: ProcessHistory,
    *silences: Silence,
    windows: tuple[SilenceSettings, ...] = (),
    looked: Moment | None = NOW,
) -> GuardedProcessStatus:
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    settings = settings.model_copy(update={"silence": windows})
    held = Silences({str(number): one for number, one in enumerate(silences)})
    facts = State(processes=Processes({"p": history}), parts={SILENCES.name: held})
    return told_of(settings, facts, looked=looked)


def test_capabilities_are_asked_once_what_they_hold_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Snapshot]()

    def holds(curr: Snapshot) -> Sequence[Hold]:
        asked.append(curr)
        return [Hold("restart-process:*", 5 * SECOND, "ada's wish")]

    one = replace(next(one for one in composition.LOADED if one.holds), holds=holds)
    monkeypatch.setattr(composition, "LOADED", (one,))
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    facts = State(processes=Processes({"p": DEAD}))
    status = compute_status(settings, facts, NOW, Beat(), cast("DaemonStatus", {}), {}, looked=NOW)
    assert status["processes"][0]["state"] == "silenced"
    assert len(asked) == 1


def test_what_the_budget_of_actions_holds_back_waits_and_says_for_how_long() -> None:
    settings = Settings.model_validate(
        {"process": [{"name": "p", "start": ["p"]}], "budget": {"actions_per_minute": 2}}
    )
    acted = (NOW.plus(-20 * SECOND), NOW.plus(-10 * SECOND))
    for spent, state in ((acted, "waiting"), (acted[1:], "due")):
        facts = State(processes=Processes({"p": DEAD}), effects=Effects(acted=spent))
        told = told_of(settings, facts, {"pid": 1})
        held = "; held back by the budget of 2 a minute ([budget] actions_per_minute), for another 40 s"
        assert (told["state"], held in told["why"]) == (state, state == "waiting")
        looked = {"process-alive": Window((Sample(1, "process-alive", NOW, {"p": {"pid": 1}}),))}
        seen = CaveatedSnapshot(Snapshot(1, NOW, settings, looked, facts))
        notes = [note for layer in rule_trace(seen, ALL_RULES).layers for note in layer.notes]
        assert f"p: {state}: dead: gone{held if state == 'waiting' else ''}" in notes


def test_of_several_that_the_budget_holds_back_each_is_told_when_its_turn_comes() -> None:
    names = [f"p{number}" for number in range(5)]
    settings = Settings.model_validate(
        {"process": [{"name": name, "start": [name]} for name in names], "budget": {"actions_per_minute": 2}}
    )
    acted = (NOW.plus(-20 * SECOND), NOW.plus(-10 * SECOND))
    facts = State(processes=Processes(dict.fromkeys(names, DEAD)), effects=Effects(acted=acted))
    beat, looks = Beat(), sampled("process-alive", {name: {"pid": 1} for name in names})
    daemon: DaemonStatus = {"state": "running", "pid": 1, "since": None, "version": "1"}
    told = compute_status(settings, facts, NOW, beat, daemon, looks, NOW)["processes"]
    assert [one["why"].rpartition(", for another ")[2] for one in told] == [
        "40 s",
        "50 s",
        "100 s",
        "110 s",
        "2.7 min",
    ]


def test_what_is_left_of_earlier_lives_is_told() -> None:
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    facts = State(processes=Processes({"p": UP}))
    assert told_of(settings, facts, {"leftovers": [7, 8]})["leftovers"] == [7, 8]
    assert told_of(settings, facts)["leftovers"] == []


def test_a_process_that_is_put_back_into_the_settings_is_not_told_as_left_of_an_earlier_life_of_itself() -> (
    None
):
    """While it was out of them, the search told it as left over, and none is made while no daemon runs."""
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    facts = State(processes=Processes({"p": UP}))
    assert UP.pid
    assert told_of(settings, facts, {"leftovers": [UP.pid, 8]})["leftovers"] == [8]


def test_what_goes_on_of_a_name_that_is_not_guarded_any_more_is_told_by_status_and_doctor() -> None:
    looks = sampled("process-alive", {"p": {"leftovers": [7]}, "gone": {"leftovers": [8, 9]}})
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    status = compute_status(settings, State(), NOW, Beat(), silent_daemon(None), looks, NOW)
    assert status["unguarded"] == [{"name": "gone", "pids": [8, 9]}]
    checks = DaemonChecks(cast("HomeContext", None))
    vars(checks)["status"] = status
    (_, told) = checks.leftovers()
    assert (told.words, told.remedy[:8]) == (
        "gone is not in the settings any more; still running: 8 9",
        "kill 8 9",
    )


def test_what_two_are_recognised_by_is_told_of_each() -> None:
    both = [{"name": name, "start": ["work", name], "match": "work"} for name in ("p", "q")]
    settings, daemon = Settings.model_validate({"process": both}), silent_daemon(None)
    status = compute_status(settings, State(), NOW, Beat(), daemon, {}, NOW)
    assert ["its `match` finds what" in one["why"] for one in status["processes"]] == [True, True]


@pytest.mark.parametrize("evidence", ["gone", "gone; process 7 matches"])
def test_who_matches_beside_it_is_told_once(evidence: str) -> None:
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    facts = State(processes=Processes({"p": DEAD._replace(evidence=evidence)}))
    look = {"others": "process 7 matches"}
    told = told_of(settings, facts, look)
    assert told["why"].count("process 7 matches") == 1


def test_what_is_up_is_told_by_the_last_answer_of_its_probe_and_not_by_its_first_one() -> None:
    settings = Settings.model_validate({"process": [{"name": "p", "start": ["p"]}]})
    facts = State(processes=Processes({"p": UP._replace(evidence="it answers 503")}))
    now: dict[str, Json] = {"pid": 1, "detail": "it answers 200"}
    assert told_of(settings, facts, now)["why"] == "it answers 200"
    assert told_of(settings, facts, {**now, "pid": 2})["why"] == "it answers 503"  # of another one
    probe: Json = {"failed": 1, "of": 3, "error": "it answered 500"}
    failing = told_of(settings, facts, {"pid": 1, "detail": "it answered 500", "probe": probe})["why"]
    assert failing == "1 of the last 3 probes failed, the last one: it answered 500"


def test_the_doctor_warns_of_what_is_left_of_earlier_lives() -> None:
    checks = DaemonChecks(cast("HomeContext", None))
    vars(checks)["status"] = {
        "processes": [{"name": "p", "leftovers": [7, 8]}, {"name": "q", "leftovers": []}]
    }
    (told,) = checks.leftovers()
    assert (told.level, told.words) == (WARN, "p: 7, 8 of earlier lives of it")


def test_the_doctor_says_what_the_daemon_says_of_its_log() -> None:
    checks = DaemonChecks(cast("HomeContext", None))
    vars(checks)["status"] = {
        "conditions": [{"name": name, "evidence": name} for name in ("log-gone", "disk")]
    }
    (told,) = checks.log()
    assert (told.level, told.words) == (FAIL, "the daemon can't record anything: log-gone")


def silence(match: str, minutes: int, why: str = "") -> Silence:
    return Silence(match, NOW, minutes * MINUTE, "ada", why)


def test_a_dead_process_is_due() -> None:
    now = standing(DEAD)
    assert (now["state"], now["why"]) == ("due", "dead: gone")


def test_a_dead_process_that_is_held_back_is_silenced_and_says_for_how_long() -> None:
    now = standing(DEAD, silence("restart-process:*", 5), silence("restart-process:p", 90, "new disks"))
    words = "held back by the silence 'restart-process:p' of ada (new disks), for another 90 min"
    assert (now["state"], now["why"]) == ("silenced", f"dead: gone; {words}")


def test_a_recurring_silence_counts_as_well() -> None:
    always = SilenceSettings.model_validate({"match": "restart-process:*", "at": "00:00", "for": "1d"})
    now = standing(DEAD, windows=(always,))
    assert now["state"] == "silenced"
    assert "the recurring silence 'restart-process:*', for another " in now["why"]


@pytest.mark.parametrize(
    "quiet", [silence("restart-process:other", 5), silence("notify:*", 5), silence("restart-process:p", 0)]
)
def test_a_silence_of_something_else_or_one_that_is_over_changes_nothing(quiet: Silence) -> None:
    assert standing(DEAD, quiet)["state"] == "due"


def test_what_lives_is_up_whatever_is_silenced() -> None:
    assert standing(UP, silence("*", 5))["state"] == "up"


def test_what_waits_for_its_next_try_says_so() -> None:
    tried = DEAD._replace(attempts=(NOW.plus(-SECOND),) * 2, error="no")
    now = standing(tried)
    assert (now["state"], now["why"].rpartition("; ")[2]) == ("backing-off", "next try in 1 s")
    assert standing(tried, silence("*", 5))["state"] == "backing-off"
    assert standing(tried, silence("*", 5))["why"].endswith("; next try in 5 min")
    assert "next try" not in standing(tried, looked=None)["why"]


def test_what_is_starting_does_so_since_it_was_started_not_since_it_went_down() -> None:
    started = NOW.plus(-SECOND)
    now = standing(DEAD._replace(starting=started, attempts=(started,)))
    assert (now["state"], now["since"]) == ("starting", iso(started.at))
    assert standing(DEAD)["since"] == iso(NOW.plus(-50 * SECOND).at)


def test_what_a_start_has_not_brought_up_is_down_for_as_long_as_before() -> None:
    started = NOW.plus(-20 * SECOND)
    now = standing(DEAD._replace(starting=started, attempts=(started,) * 9))
    assert (now["state"], now["since"]) == ("backing-off", standing(DEAD)["since"])


@pytest.mark.parametrize("history", [UP, DEAD])
def test_of_what_nobody_looks_at_only_what_was_known_is_said(history: ProcessHistory) -> None:
    stopped, stuck = standing(history, looked=None), standing(history, looked=NOW.plus(-40 * SECOND))
    assert (stopped["state"], stopped["pid"]) == (stuck["state"], stuck["pid"]) == ("unknown", None)
    assert (stopped["since"], stuck["since"]) == (None, iso(NOW.plus(-40 * SECOND).at))
    assert stopped["why"].startswith("no daemon tells of it; last known: ")
    assert stuck["why"].startswith("not looked at for 40 s; last known: ")
    assert standing(history, looked=NOW.plus(-20 * SECOND))["state"] != "unknown"


@pytest.mark.parametrize(("most", "known"), [(2, ": "), (9, ", by the settings of now: ")])
def test_a_state_that_nobody_looks_at_is_said_to_be_by_other_settings_than_it_was_known_by(
    most: int, known: str
) -> None:
    def allowing(restarts: int) -> Settings:
        patience = {"max": restarts, "backoff": "1m", "within": "1h"}
        return Settings.model_validate({"process": [{"name": "p", "start": ["p"], "restart": patience}]})

    attempts = tuple(NOW.plus(-number * SECOND) for number in (6, 5, 4))
    processes = Processes({"p": DEAD._replace(attempts=attempts)})
    facts = State(processes=processes, control=Control(digest=allowing(2).digest))
    silent = compute_status(allowing(most), facts, NOW, Beat(), silent_daemon(None), {}, None)
    (told,) = silent["processes"]
    assert told["why"].startswith(f"no daemon tells of it; last known{known}backing-off, dead after 3 tries")


def test_an_output_that_is_not_kept_is_said() -> None:
    now = standing(UP._replace(unlogged="the output is not kept"))
    assert (now["state"], now["why"]) == ("up", "there; the output is not kept")


def test_what_a_sample_says_is_as_old_as_the_sample() -> None:
    gateway = {"process": [{"name": "p", "start": ["p"]}], "openclaw": [{"process": "p"}]}
    seen = {"config": "c" * 64, "age_us": 4 * SECOND, "kept": [], "agents": 0, "session_files": 0}
    looks = sampled("openclaw", {"p": {**seen, "session_bytes": 0}})
    settings, later = Settings.model_validate(gateway), NOW.plus(15 * SECOND)
    status = compute_status(settings, State(), later, Beat(), silent_daemon(None), looks, later)
    assert "config cccccccccccc is new for 19 s;" in status["capabilities"]["openclaw"][0]


def test_a_check_of_the_doctor_that_breaks_hides_nothing_of_what_the_others_find() -> None:
    def odd_file() -> list[Finding]:
        raise ValueError("no such thing")

    def disk() -> Iterator[Finding]:
        def broken() -> str:
            raise KeyError("x")

        yield Finding("disk", WARN, "full", repair=broken)

    told = examine([odd_file, disk])
    assert [(one.name, one.level, one.words) for one in told] == [
        ("odd file", FAIL, "it can't be looked at: ValueError: no such thing"),
        ("disk", WARN, "full"),
    ]
    assert repair(told) == ["disk: could not be repaired: KeyError: 'x'"]
