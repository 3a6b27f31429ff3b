"""`upulse silence`: added, listed and removed, with a daemon and without one."""

from pathlib import Path

import pytest

from tests.integration.cli.cli_home import CliHome, eventually, is_id, sleeper

WINDOWS = """
[[silence]]
match = "restart-process:*"
at = "00:00"
for = "1d"
why = "always"

[[silence]]
match = "notify:*"
days = ["mon"]
at = "02:30"
for = "2h"
"""
DEMO = "restart-process:demo"


def added(home: CliHome, match: str = DEMO, lasting: str = "2h", *more: str) -> str:
    return home.upulse("silence", "add", match, "--for", lasting, *more).out.strip()


def ids(home: CliHome) -> list[str]:
    return [one["id"] for one in home.upulse("silence", "list", "--json").json["silences"]]


def test_a_silence_is_added_and_listed_while_no_daemon_runs(quiet: CliHome) -> None:
    said = quiet.upulse("silence", "add", DEMO, "--for", "2h", "--why", "new disks")
    id_ = said.out.strip()
    assert is_id(id_)
    assert f"{DEMO} is held back for 2 h; end that with: upulse silence remove {id_[-8:]}" in said.err
    assert "no daemon runs" in said.err
    (one,) = quiet.upulse("silence", "list", "--json").json["silences"]
    assert (one["id"], one["match"], one["why"]) == (id_, DEMO, "new disks")
    assert 7_190 < one["left_s"] <= 7_200
    table = quiet.upulse("silence", "list").out
    assert DEMO in table
    assert "new disks" in table


def test_a_pattern_may_be_given_as_an_argument(quiet: CliHome) -> None:
    id_ = quiet.upulse("silence", "add", DEMO, "--for", "2h").out.strip()
    (one,) = quiet.upulse("silence", "list", "--json").json["silences"]
    assert (one["id"], one["match"]) == (id_, DEMO)


def test_what_comes_again_is_listed_with_what_holds_now(quiet: CliHome) -> None:
    quiet.configure(sleeper("demo", 1), WINDOWS)
    always, mondays = quiet.upulse("silence", "list", "--json").json["recurring"]
    assert (always["active"], always["for"], always["why"]) == (True, "1d", "always")
    assert 0 < always["left_s"] <= 86_400
    assert mondays["days"] == ["mon"]
    assert mondays["next"].endswith("T02:30:00.000000Z")
    table = quiet.upulse("silence", "list").out
    assert "daily " in table
    assert "why" in table.splitlines()[0]
    assert "for another" in table


def test_without_silences_that_is_said(quiet: CliHome) -> None:
    assert "Nothing is held back" in quiet.upulse("silence", "list").err


@pytest.mark.parametrize("cut", [slice(None), slice(0, 20), slice(-8, None)])
def test_a_silence_is_removed_by_its_id_or_enough_of_it(quiet: CliHome, cut: slice) -> None:
    id_ = added(quiet)
    assert f"{DEMO} is no longer held back" in quiet.upulse("silence", "remove", id_[cut]).err
    assert ids(quiet) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((DEMO, "--for", "soon"), "'soon' is no duration"),
        ((DEMO, "--for", "0s"), "longer than 0"),
        ((DEMO, "--for", "31d"), "at most 30d"),
        (("", "--for", "1h"), "1 to 500 printable characters"),
        (("a\nb", "--for", "1h"), "1 to 500 printable characters"),
        (("x" * 501, "--for", "1h"), "Invalid value for PATTERN: give 1 to 500 printable"),
        ((DEMO,), "Missing option '--for'"),
        (("--for", "1h"), "Missing argument 'PATTERN'"),
        (("--match", DEMO, "--for", "1h"), "No such option: --match"),
    ],
)
def test_what_cannot_be_a_silence_is_refused(quiet: CliHome, words: tuple[str, ...], why: str) -> None:
    assert why in " ".join(quiet.upulse("silence", "add", *words, code=2).err.replace("│", " ").split())
    assert ids(quiet) == []


def test_an_unknown_id_is_refused_with_the_nearest(quiet: CliHome) -> None:
    assert "none holds at this time" in quiet.upulse("silence", "remove", "0123", code=1).err
    id_ = added(quiet)
    wrong = id_[:-1] + ("0" if id_[-1] != "0" else "1")
    assert f"did you mean '{id_}'?" in quiet.upulse("silence", "remove", wrong, code=1).err
    added(quiet)
    assert "begins the ids of several silences" in quiet.upulse("silence", "remove", id_[:5], code=1).err
    assert len(ids(quiet)) == 2


@pytest.mark.parametrize(
    ("match", "known"),
    [(DEMO, True), ("*:demo", True), ("notify:*", True), ("restart-proces:demo", False), ("demo", False)],
)
def test_a_pattern_that_fits_nothing_known_is_warned_of_and_taken(
    quiet: CliHome, match: str, known: bool
) -> None:
    said = quiet.upulse("silence", "add", match, "--for", "1h")
    assert ("fits nothing so far" in said.err) is not known
    assert len(ids(quiet)) == 1
    if match.startswith("restart-proces:"):
        assert f"did you mean '{DEMO}'?" in said.err


def test_a_home_whose_settings_are_broken_can_be_silenced(quiet: CliHome) -> None:
    quiet.configure("[daemon]\nnonsense = 1\n")
    added(quiet)
    assert len(ids(quiet)) == 1


def test_there_is_nothing_to_silence_without_a_home(tmp_path: Path, quiet: CliHome) -> None:
    nowhere = CliHome(tmp_path / "nowhere")
    assert "no Pulse home" in nowhere.upulse("silence", "list", code=1).err


def test_a_silenced_process_stays_dead_until_the_silence_is_removed(live: CliHome) -> None:
    import os
    import signal

    pid = live.pid_when_up("demo")
    id_ = added(live)
    assert ids(live) == [id_]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: live.process("demo")["state"] == "silenced", "its death to be seen")
    assert f"held back by the silence '{DEMO}' of " in live.process("demo")["why"]
    live.upulse("silence", "remove", id_[-8:])
    assert live.pid_when_up("demo", other_than=pid)
    assert ids(live) == []


def test_the_events_of_a_capability_can_be_asked_for_by_their_kind(quiet: CliHome) -> None:
    id_ = added(quiet)
    assert [event["id"] for event in quiet.upulse("events", "--kind", "silence-added", "--json").lines] == [
        id_
    ]
