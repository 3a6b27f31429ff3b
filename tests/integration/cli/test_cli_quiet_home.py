"""The command line while no daemon runs: what is recorded, what is shown, what is refused."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from docs.json_types import EventJson
from pulse_adapters.ipc import daemon_process
from pulse_adapters.ipc.lock import HomeLock
from pulse_core.app import append
from tests.integration.cli.cli_home import CliHome, is_id, sleeper
from upulse_cli.__main__ import main


def events(home: CliHome, *words: str) -> list[str]:
    return [event["kind"] for event in home.upulse("events", "--json", *words).lines]


def test_the_hints_after_init_name_the_home_that_was_made(
    tmp_path: Path,
) -> None:
    made = tmp_path / "a home"
    said = CliHome(made).upulse("init", "--no-engine").err
    assert f"upulse config check --home '{made}'" in said
    assert f"upulse daemon start --home '{made}'" in said


def test_an_init_that_was_killed_as_it_made_the_log_is_finished_by_the_next_one(tmp_path: Path) -> None:
    home = CliHome(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    (home.path / "events.db").touch(0o600)  # SQLite writes its first page later
    home.upulse("init", "--no-engine")
    assert "0 rows" in home.upulse("verify").out


def test_a_character_that_stdout_has_no_place_for_is_written_otherwise(quiet: CliHome) -> None:
    quiet.upulse("effect", "add", "run-command", "--key", "café", "--param", 'argv=["/bin/true"]')
    command = [sys.executable, "-m", "upulse_cli", "events", "--home", str(quiet.path)]
    ascii_only = {**os.environ, "TZ": "UTC", "PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(command, env=ascii_only, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "times in UTC\n")
    assert "caf\\xe9" in done.stdout


def test_times_are_local_and_those_of_utc_if_asked(quiet: CliHome) -> None:
    quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["/bin/true"]')
    for option, zone in ((), "times in JST\n"), (("--utc",), "times in UTC\n"):
        command = [sys.executable, "-m", "upulse_cli", "events", *option, "--home", str(quiet.path)]
        tokyo = {**os.environ, "TZ": "Asia/Tokyo"}
        done = subprocess.run(command, env=tokyo, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, zone)


def test_init_in_a_checkout_leaves_it_alone_and_makes_a_whole_home(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    before = (tmp_path / ".git/config").read_text()
    home, inside = tmp_path / "home", {**os.environ, "GIT_DIR": str(tmp_path / ".git")}
    command = [sys.executable, "-m", "upulse_cli", "init", "--home", str(home)]
    done = subprocess.run(command, cwd=tmp_path, env=inside, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {"config.toml", "engine", "events.db", "staging"} <= {one.name for one in home.iterdir()}
    assert (home / "staging/engine.py").exists()
    assert (tmp_path / ".git/config").read_text() == before


def test_init_twice_keeps_what_is_there(quiet: CliHome) -> None:
    before = (quiet.path / "config.toml").read_text()
    again = quiet.upulse("init", "--demo")
    assert "left as it is" in again.err
    assert not quiet.upulse("init", "--demo", "--quiet").err
    assert (quiet.path / "config.toml").read_text() == before


def test_a_demo_home_guards_one_process(tmp_path: Path) -> None:
    home = CliHome(tmp_path / "demo")
    assert "upulse daemon start" in home.upulse("init", "--demo").err
    assert [found["name"] for found in home.status()["processes"]] == ["demo"]


def test_a_resume_says_whether_anything_was_paused(quiet: CliHome) -> None:
    quiet.upulse("pause")
    assert "Resumed: Pulse acts." in quiet.upulse("resume").err
    assert "Pulse was not paused: it acts." in quiet.upulse("resume").err


def test_a_home_has_its_own_id_from_the_beginning(quiet: CliHome) -> None:
    quiet.upulse("pause")
    quiet.upulse("resume")
    hosts = {event["host"] for event in quiet.upulse("events", "--json").lines}
    assert [is_id(host) for host in hosts] == [True]


@pytest.mark.parametrize(
    "words",
    ["status", "events", "verify", "why", "pause", "effect list", "effect add run-command --key k",
     "process list", "daemon start", "daemon stop", "daemon reload", "config show"],
)  # fmt: skip
def test_without_a_home_every_command_says_how_to_make_one(words: str, tmp_path: Path) -> None:
    nowhere = CliHome(tmp_path / "nowhere")
    assert f"upulse init --home {nowhere.path}" in nowhere.upulse(*words.split(), code=1).err
    assert not nowhere.path.exists()


def test_an_effect_is_recorded_and_its_id_printed(quiet: CliHome) -> None:
    said = quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')
    (event,) = quiet.upulse("events", "--json").lines
    assert said.out == f"{event['id']}\n"
    assert (event["subject"], event["data"]["params"]) == ("k", {"argv": ["true"]})
    assert "no daemon runs" in said.err


def test_an_open_key_prints_the_id_that_it_has(quiet: CliHome) -> None:
    add = ("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')
    first, second = quiet.upulse(*add), quiet.upulse(*add)
    assert first.out == second.out
    assert "open already" in second.err
    assert events(quiet) == ["effect"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("effect add run-comand --key k", "did you mean 'run-command'?"),
        ('effect add run-command --key k --param argv=["/bin/ls"]', "may not be run"),
        ("effect add run-command --key k --param argv=7", "params of run-command: argv"),
        ("effect show 123456", "no effect '123456'"),
        ("effect cancel nosuch", "no effect 'nosuch'"),
        ("effect retry nosuch", "no effect 'nosuch'"),
        ("effect add run-command --key k --wait", "no daemon runs"),
        ("process stop dem", "did you mean 'demo'?"),
        ("process start dem", "did you mean 'demo'?"),
        ("process show dem", "did you mean 'demo'?"),
        ("process logs dem", "did you mean 'demo'?"),
        ("process logs demo", "nothing that demo printed is kept"),
        ("process restart demo dem", "no guarded process 'dem'; there are: demo"),
        ("events --kind proces-up", "did you mean 'process-up'?"),
        ("why", "there has been no effect yet"),
        ("why nosuch", "no process, condition or effect 'nosuch'"),
        ("why dem", "(did you mean 'demo'?); give an id"),
        ("daemon reload", "no daemon runs"),
        ("daemon logs", "nothing was said yet"),
        ("daemon uninstall", "upulse daemon install"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(quiet: CliHome, words: str, hint: str) -> None:
    said = quiet.upulse(*words.split(), code=1)
    assert hint in said.err
    assert said.out == ""
    assert events(quiet) == []


@pytest.mark.parametrize(
    "words",
    ["events --since soon", "effect add run-command", "effect add run-command --key k --param argv",
     "effect add run-command --key k --param a=1 --param a=2", "effect add run-command --key k --not-after 5",
     "process restart", "process restart demo --all",
     "process stop demo --for ever", "process stop demo --for 0s", "status --jsn"],
)  # fmt: skip
def test_a_command_line_that_makes_no_sense_exits_2(quiet: CliHome, words: str) -> None:
    said = quiet.upulse(*words.split(), code=2)
    assert "Error: " in said.err
    assert events(quiet) == []


def test_effects_are_found_by_key_and_by_either_end_of_their_id(quiet: CliHome) -> None:
    name = quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]').out.strip()
    for said in ("k", name, name[:20], name[-6:]):
        assert quiet.upulse("effect", "show", said, "--json").json["id"] == name
    quiet.upulse("effect", "add", "run-command", "--key", "l", "--param", 'argv=["true"]')
    assert "may mean several effects" in quiet.upulse("effect", "show", name[:4], code=1).err


def test_open_effects_are_listed(quiet: CliHome) -> None:
    assert quiet.upulse("effect", "list", "--json").json == []
    quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]', "--reason", "fun")
    (listed,) = quiet.upulse("effect", "list", "--json").json
    assert (listed["state"], listed["key"], listed["reason"]) == ("pending", "k", "fun")
    assert "pending" in quiet.upulse("effect", "list").out


def test_an_open_effect_is_not_retried_and_one_of_nobody_is_not_explained_by_a_tick(quiet: CliHome) -> None:
    quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')
    assert "is pending still" in quiet.upulse("effect", "retry", "k", code=1).err
    story = quiet.upulse("why", "--json").json
    assert (story["tick"], story["missing"], story["effect"]["key"]) == (None, [], "k")
    assert "requested by root" in quiet.upulse("why", "k").out


def test_a_parameter_may_say_that_it_is_idempotent_and_has_a_deadline(quiet: CliHome) -> None:
    add = ("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')
    quiet.upulse(*add, "--idempotent", "--not-after", "10m")
    (event,) = quiet.upulse("events", "--json").lines
    assert event["data"]["params"]["idempotent"] is True
    assert event["data"]["not_after"] > 1_000_000 * time.time()


def test_a_stopped_daemon_has_a_status(quiet: CliHome) -> None:
    quiet.upulse("pause", "--why", "surgery")
    status = quiet.status()
    assert status["daemon"]["state"] == "stopped"
    assert status["paused"]["why"] == "surgery"
    assert status["tick"] == {"count": 0, "last_ms": None, "p99_ms": None}
    assert {"pending", "executing", "acked", "failed", "unknown"} <= status["effects"].keys()
    assert [(one["name"], one["state"], one["pid"]) for one in status["processes"]] == [
        ("demo", "unknown", None)
    ]
    assert "PAUSED" in quiet.upulse("status").out
    assert "no sample yet" in quiet.upulse("status", "--watch").out


def test_settings_that_do_not_load_hide_nothing_else(quiet: CliHome) -> None:
    quiet.upulse("pause")
    quiet.configure("[daemon]\ntik_ms = 3\n")
    status = quiet.status()
    assert "did you mean 'tick_ms'?" in status["settings_faults"][0]
    assert status["paused"] is not None
    assert "did you mean 'tick_ms'?" in " ".join(quiet.upulse("status").out.split())


def test_a_home_that_is_held_by_somebody_silent_is_not_answering(
    quiet: CliHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_process, "LONGEST_COMMAND", 0.1)
    with HomeLock(quiet.path / "run" / "lock", "0.1.0"):
        daemon = quiet.status()["daemon"]
        assert (daemon["state"], daemon["pid"]) == ("not-answering", os.getpid())
        refused = quiet.upulse("daemon", "start", code=1)
    assert f"is held by process {os.getpid()}; stop it first" in refused.err


def test_nothing_is_appended_past_a_holder_that_does_not_answer(
    quiet: CliHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "PATIENCE", 0.1)
    with HomeLock(quiet.path / "run" / "lock", "0.1.0"):
        assert "no daemon answers" in quiet.upulse("pause", code=1).err
    assert events(quiet) == []


def test_a_reload_of_a_daemon_that_does_not_answer_says_so(quiet: CliHome) -> None:
    with HomeLock(quiet.path / "run" / "lock", "0.1.0"):
        said = quiet.upulse("daemon", "reload", code=1).err
    assert f"the daemon (process {os.getpid()}) does not answer" in said
    assert "no daemon runs" not in said


def test_everything_in_a_new_home_is_the_owners_alone(
    tmp_path: Path,
) -> None:
    before = os.umask(0)
    try:
        CliHome(tmp_path / "home").upulse("init")
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    made = list((tmp_path / "home").rglob("*"))
    assert {"config.toml", "events.db"} <= {path.name for path in made}
    assert [path for path in made if path.stat().st_mode & 0o077] == []


LOST = {"missing": lambda path: path.unlink(), "altered": lambda path: path.write_text('{"action":"note"}')}


@pytest.mark.parametrize("how", LOST)
def test_a_lost_payload_is_said_in_its_row_and_hides_no_other(quiet: CliHome, how: str) -> None:
    large = json.dumps(["true", "x" * 40_000])
    lost = quiet.upulse("effect", "add", "run-command", "--key", "l", "--param", f"argv={large}").out.strip()
    quiet.upulse("effect", "add", "run-command", "--key", "k", "--param", 'argv=["true"]')
    (path,) = (path for path in (quiet.path / "objects").rglob("*") if path.is_file())
    LOST[how](path)
    first, second = quiet.upulse("events", "--json").lines
    assert list(first["data"]) == ["$damaged"]
    assert second["data"]["params"] == {"argv": ["true"]}
    assert "(damaged: " in quiet.upulse("events").out
    assert [one["key"] for one in quiet.upulse("effect", "list", "--all", "--json").json] == ["l", "k"]
    assert "(damaged: " in quiet.upulse("effect", "list", "--all").out
    assert "k" in [one["key"] for one in quiet.upulse("effect", "list", "--json").json]
    assert quiet.upulse("effect", "show", lost, "--json").json["damaged"]
    assert "restore it from a backup" in quiet.upulse("effect", "show", lost).out
    assert "damaged" in quiet.upulse("why", lost).out
    quiet.upulse("why", lost, "--json")
    assert quiet.status()["effects"]["pending"] >= 1


def test_stopping_what_does_not_run_is_no_failure(quiet: CliHome) -> None:
    assert "No daemon runs." in quiet.upulse("daemon", "stop").err


def test_settings_with_faults_start_nothing(quiet: CliHome) -> None:
    quiet.configure("[daemon]\ntik_ms = 3\ntick_ms = 'x'\n")
    said = quiet.upulse("daemon", "start", code=1)
    assert "config.toml:2: " in said.err
    assert "config.toml:3: " in said.err
    assert said.err.endswith("No daemon was started.\n")
    assert events(quiet) == []


def test_several_processes_are_stopped_and_started_at_once_or_none_of_them(quiet: CliHome) -> None:
    quiet.configure(sleeper("demo", 86_399), sleeper("other", 86_399))
    assert "did you mean 'other'?" in quiet.upulse("process", "stop", "demo", "othr", code=1).err
    assert events(quiet) == []
    said = quiet.upulse("process", "stop", "demo", "other", "--for", "1h").err
    again = "start them before with: upulse process start demo other"
    assert f"Stop requested: demo, other stay down for 1 h; {again}" in said
    assert "Start requested: other, demo." in quiet.upulse("process", "start", "other", "demo").err
    assert events(quiet) == ["process-stop-requested"] * 2 + ["process-start-requested"] * 2


def test_a_stop_while_pulse_is_paused_says_that_nothing_is_ended_yet(quiet: CliHome) -> None:
    assert "paused" not in quiet.upulse("process", "stop", "demo").err
    quiet.upulse("pause")
    said = quiet.upulse("process", "stop", "demo").err
    assert said.splitlines()[-1].startswith("Pulse is paused by ")
    assert said.endswith(", and ends nothing until: upulse resume\n")


def test_a_stop_of_what_does_not_start_by_itself_says_that_it_stays_down(quiet: CliHome) -> None:
    quiet.configure(sleeper("demo", 86_399) + "autostart = false\n")
    said = quiet.upulse("process", "stop", "demo", "--for", "1h").err
    assert "demo stays down after that, too (autostart = false), until: upulse process start demo\n" in said


def test_config_check_says_every_fault_of_any_file(quiet: CliHome, tmp_path: Path) -> None:
    assert "guards 1 process." in quiet.upulse("config", "check").err
    assert quiet.upulse("config", "check", "--json").json["faults"] == []
    other = tmp_path / "other.toml"
    other.write_text("[daemon]\ntik_ms = 3\n[budgt]\n")
    assert len(quiet.upulse("config", "check", str(other), code=1).err.splitlines()) == 2
    assert len(quiet.upulse("config", "check", str(other), "--json", code=1).json["faults"]) == 2
    assert "no such file" in quiet.upulse("config", "check", str(tmp_path / "none"), code=1).err


def test_an_address_that_no_service_knows_is_a_fault(quiet: CliHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_TEST_URL", "nope://secret-word")
    quiet.configure('[notify]\nurls = [\n"json://localhost",\n"env:PULSE_TEST_URL",\n"env:PULSE_NOT_SET"]\n')
    said = quiet.upulse("config", "check", code=1).err
    assert (
        f"{quiet.path}/config.toml:4: notify.urls[2]: Apprise knows no service for env:PULSE_TEST_URL" in said
    )
    assert "secret-word" not in said
    (fault,) = quiet.upulse("config", "check", "--json", code=1).json["faults"]
    assert fault in said


def test_config_show_is_whole_and_loads_again(quiet: CliHome) -> None:
    shown = quiet.upulse("config", "show").out
    values = quiet.upulse("config", "show", "--json").json
    quiet.configure(shown)
    assert quiet.upulse("config", "show", "--json").json == values
    assert values["process"][0]["name"] == "demo"
    assert quiet.upulse("config", "path").out == f"{quiet.path}/config.toml\n"


def test_events_are_chosen_by_row_time_kind_and_number(quiet: CliHome) -> None:
    for command in ("pause", "resume", "pause"):
        quiet.upulse(command)
    assert events(quiet) == ["paused", "resumed", "paused"]
    assert events(quiet, "--since", "1") == ["resumed", "paused"]
    assert events(quiet, "--since", "1h") == ["paused", "resumed", "paused"]
    assert events(quiet, "--since", "2999-01-01") == []
    assert events(quiet, "--kind", "paused") == ["paused", "paused"]
    assert events(quiet, "--kind", "paused", "--kind", "resumed", "-n", "2") == ["resumed", "paused"]
    assert "resumed" in quiet.upulse("events").out


def test_without_a_daemon_no_state_is_shown_as_the_present_one(quiet: CliHome) -> None:
    assert "no daemon runs; the states are the last known ones" in quiet.upulse("process", "list").err
    quiet.upulse("status")
    quiet.upulse("status", "--exit-code", code=3)
    quiet.upulse("status", "--exit-code", "--json", code=3)


def test_an_event_has_all_its_fields(quiet: CliHome) -> None:
    quiet.upulse("pause", "--why", "because")
    (event,) = quiet.upulse("events", "--json").lines
    assert list(event) == ["format", *EventJson.__annotations__]
    assert (event["seq"], event["data"]) == (1, {"why": "because"})


def test_a_process_has_its_own_events_and_those_of_its_effects(quiet: CliHome) -> None:
    quiet.upulse("process", "stop", "demo", "--for", "1h")
    quiet.upulse("pause")
    add = ("effect", "add", "restart-process", "--key", "restart-process:demo", "--param", "process=demo")
    name = quiet.upulse(*add).out.strip()
    quiet.upulse("effect", "cancel", name)
    assert events(quiet, "--subject", "demo") == [
        "process-stop-requested",
        "effect",
        "effect-cancel-requested",
    ]
    assert events(quiet, "--subject", name) == ["effect", "effect-cancel-requested"]
    assert events(quiet, "--subject", "demo", "-n", "1") == ["effect-cancel-requested"]
    assert events(quiet, "--subject", "demo", "--kind", "effect") == ["effect"]
    assert events(quiet, "--subject", "dem") == []
    assert quiet.upulse("events", "--subject", "dem").err.endswith("no event that matches is about 'dem'\n")
    assert "no event" not in quiet.upulse("events", "--subject", "demo").err


def test_a_sound_log_is_verified(quiet: CliHome) -> None:
    quiet.upulse("pause")
    assert quiet.upulse("verify", "--json").json["rows"] == 1
    assert "ok: 1 row verified" in quiet.upulse("verify").out


def test_an_altered_row_is_named(quiet: CliHome) -> None:
    quiet.upulse("pause", "--why", "a")
    quiet.upulse("resume")
    with closing(sqlite3.connect(quiet.path / "events.db")) as connection:
        connection.execute("DROP TRIGGER event_never_changes")
        connection.execute("""UPDATE event SET data = '{"why":"b"}' WHERE seq = 1""")
        connection.commit()
    verdict = json.loads(quiet.upulse("verify", "--json", code=1).out)
    assert verdict["rows"] == 0
    assert "row 1" in verdict["fault"]
    assert "row 1" in quiet.upulse("verify", code=1).out


def test_the_home_may_come_from_the_environment(
    quiet: CliHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UPULSE_HOME", str(quiet.path))
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{quiet.path}/config.toml\n"
