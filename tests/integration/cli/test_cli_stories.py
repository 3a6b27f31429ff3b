"""What an operator asks afterwards: explain, incidents, vitals, state."""

import os
import signal

import pytest

from tests.integration.cli.cli_home import CliHome, eventually
from upulse_cli.views.plot import plot, sparkline, thinned


def killed(home: CliHome) -> None:
    """The guarded process dies, and is back."""
    pid = home.pid_when_up("demo")
    os.kill(pid, signal.SIGKILL)
    home.pid_when_up("demo", other_than=pid)


def test_an_incident_tells_what_happened_what_was_done_and_whether_it_helped(live: CliHome) -> None:
    killed(live)

    def story() -> dict[str, object] | None:
        told = [one for one in live.upulse("incidents", "--json").json if one["ended"]]
        return told[-1] if told and told[-1]["helped"] else None

    found = eventually(story, "an incident that is over")
    assert (found["about"], found["subject"], found["helped"]) == ("process", "demo", True)
    text = live.upulse("incidents", "--since", "1h").out
    assert "was killed by SIGKILL" in text
    assert "restart-process" in text
    assert "recovered" in text


def test_incidents_of_a_time_without_any_are_none(live: CliHome) -> None:
    assert live.upulse("incidents", "--since", "2999-01-01", "--json").json == []
    assert "0 incidents" in live.upulse("incidents", "--since", "2999-01-01").out


def test_explain_goes_through_every_rule_and_acts_not(live: CliHome) -> None:
    rows = str(live.status()["log"]["rows"])
    told = live.upulse("explain", "--json").json
    assert told["rules"][0]["rule"] == "kill_switch"
    assert "process_watchdog" in [rule["rule"] for rule in told["rules"]]
    assert "process_watchdog" in live.upulse("explain").out
    later = live.upulse("events", "--json", "--since", rows).lines
    assert not [event for event in later if event["actor"] != "pulse" or event["kind"] == "effect"]


def test_explain_says_why_nothing_is_done(live: CliHome) -> None:
    live.upulse("pause", "--why", "test")
    try:
        killed_pid = live.pid_when_up("demo")
        os.kill(killed_pid, signal.SIGKILL)
        note = "paused"
        eventually(lambda: note in live.upulse("explain").out, "the pause to be noted")
    finally:
        live.upulse("resume")
    live.pid_when_up("demo", other_than=killed_pid)


def test_the_state_of_a_moment_is_the_log_up_to_it(live: CliHome) -> None:
    events = live.upulse("events", "--json").lines
    began = next(event for event in events if event["kind"] == "settings-loaded")
    then = live.upulse("state", "--at", began["at"]).json
    assert then["seq"] == began["seq"]
    assert then["processes"]["of"] == {}
    assert live.upulse("state", "processes").json["of"]["demo"]["pid"]


def test_the_state_of_a_moment_after_a_kept_snapshot_agrees_with_the_whole_log(live: CliHome) -> None:
    killed(live)
    last = live.upulse("events", "--json").lines[-1]
    quick = live.upulse("state", "--at", last["at"]).json
    objects = live.path / "objects"
    objects.rename(live.path / "elsewhere")
    try:
        assert live.upulse("state", "--at", last["at"]).json == quick
    finally:
        (live.path / "elsewhere").rename(objects)


def test_vitals_are_shown_by_how_their_names_begin(live: CliHome) -> None:
    eventually(lambda: "system-resource.self_cpu" in live.upulse("vitals").out, "a first sample")
    names = [one["name"] for one in live.upulse("vitals", "system-resource.disks", "--json").json]
    assert names
    assert all(name.startswith("system-resource.disks.") for name in names)
    assert names[0] in live.upulse("vitals", "system-resource.disks").out


def test_a_moment_before_the_log_is_refused(live: CliHome) -> None:
    said = live.upulse("state", "--at", "2001-01-01", code=1)
    assert "the log begins after 2001-01-01" in said.err


@pytest.mark.parametrize("command", ["state", "explain"])
def test_a_moment_to_come_is_refused(live: CliHome, command: str) -> None:
    assert "has not come yet" in live.upulse(command, "--at", "2999-01-01", code=1).err


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("state", "proceses"), 1, "did you mean 'processes'"),
        (("state", "--at", "tomorrow"), 2, "expected 10m, 15:20"),
        (("explain", "--at", "tomorrow"), 2, "expected 10m, 15:20"),
        (("vitals", "system-resource.cpuu"), 1, "did you mean 'system-resource.cpu'"),
        (("vitals", "--since", "now"), 2, "expected 10m, 15:20"),
        (("vitals", "system-resource.cpu", "--since", "2999-01-01"), 1, "nothing was sensed"),
        (("incidents", "--since", "soon"), 2, "expected 10m, 15:20"),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_refused_with_what_would_work(
    live: CliHome, words: tuple[str, ...], code: int, hint: str
) -> None:
    eventually(lambda: live.upulse("vitals", "--json").json, "a first sample")
    assert hint in live.upulse(*words, code=code).err


def test_vitals_are_a_table_a_plot_and_json(live: CliHome) -> None:
    found = eventually(lambda: live.upulse("vitals", "--json").json, "a first sample")
    names = [one["name"] for one in found]
    assert "system-resource.cpu" in names
    assert "system-resource.cpu" in live.upulse("vitals").out
    drawn = live.upulse("vitals", "system-resource.cpu").out
    assert "┤" in drawn
    assert live.upulse("vitals", "system-resource.cpu", "--json").json[0]["points"]


def test_a_plot_reaches_from_the_lowest_to_the_highest() -> None:
    lines = plot([0.0, 1.0], height=4)
    assert [line[-2:] for line in lines] == [" █", " █", " █", " █"]
    assert sparkline([0, 7]) == "▁█"
    assert sparkline([5, 5]) == "▄▄"
    assert sparkline([]) == ""
    assert thinned([1, 3, 5, 7], 2) == [2, 6]
