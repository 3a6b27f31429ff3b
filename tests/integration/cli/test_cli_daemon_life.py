"""Starting, stopping and restarting the daemon from the command line."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse_adapters.host.spawner import Spawner
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_adapters.workers.control_group import NoControlGroups, home_groups
from pulse_adapters.workers.host_groups import end_hosts_left_over
from pulse_adapters.workers.proc import command_line, start_time_of
from pulse_adapters.workers.process_tree import end_chosen, in_tree
from pulse_core.model.moment import iso
from pulse_core.projections.incidents import NAME
from tests.integration.cli.cli_home import ALLOW, CliHome, eventually, sleeper
from tests.long_form import sampled


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    """A home that guards one process; whatever runs in the end is killed."""
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure(sleeper("demo", 86_396), ALLOW)
    try:
        yield home
    finally:
        home.end_everything()


def test_a_daemon_comes_and_goes_and_what_it_guards_stays(home: CliHome, tmp_path: Path) -> None:
    link = tmp_path / "link"  # it need not be there for longer than the start
    link.symlink_to(home.path)
    started = CliHome(link).upulse("daemon", "start")
    link.unlink()
    for word in ("pause", "resume"):
        home.upulse(word)
    first, demo = home.status()["daemon"]["pid"], home.pid_when_up("demo")
    assert f"process {first}" in started.err
    home.upulse("daemon", "restart")
    second = home.status()["daemon"]["pid"]
    assert second != first
    assert home.pid_when_up("demo") == demo
    stopped = home.upulse("daemon", "stop")
    assert f"demo (process {demo})" in stopped.err
    os.kill(demo, 0)
    status = home.status()
    assert status["daemon"]["state"] == "stopped"
    assert status["tick"]["count"] > 0
    assert status["vitals"].keys() >= {"process-alive", "system-resource"}


def test_a_daemon_that_gave_up_while_it_started_did_not_die(home: CliHome) -> None:
    home.upulse("daemon", "start")
    os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)
    eventually(lambda: home.status()["daemon"]["state"] == "stopped" or None, "it is gone")
    assert "daemon    died  last sign of life " in home.upulse("status").out
    home.configure("restrat = 1")
    serve = [sys.executable, "-P", "-m", "upulse_cli.serve", "--home", str(home.path)]  # as systemd does
    assert subprocess.run(serve, capture_output=True, timeout=60, check=False).returncode == 1
    said = home.upulse("status").out
    assert said.count("unknown key 'restrat'") == 1
    (line,) = (one for one in said.splitlines() if one.startswith("daemon "))
    assert line.startswith("daemon    did not start  at ")
    assert "unknown key 'restrat'" in line
    assert "; the one before it: last sign of life " in line
    home.configure(sleeper("demo", 86_396), ALLOW)
    home.upulse("daemon", "start")
    home.upulse("daemon", "stop")
    assert "daemon    stopped  since " in home.upulse("status").out


def test_a_start_says_which_processes_its_settings_name_no_more(home: CliHome) -> None:
    home.upulse("daemon", "start")
    demo = home.pid_when_up("demo")
    home.upulse("daemon", "stop")
    home.configure(ALLOW)  # cut to a good half, as by a disk
    goes_on = f"demo is not guarded any more; process {demo} goes on"
    started = home.upulse("daemon", "start").err
    assert "Not in the settings any more: demo." in started
    assert goes_on in started
    assert "not in the settings any more: demo" in home.upulse("events", "--kind", "settings-loaded").out
    restarted = home.upulse("daemon", "restart").err
    assert goes_on in restarted
    assert "Not in the settings any more" not in restarted, "the settings before did not name it either"
    home.configure(sleeper("demo", 86_396), ALLOW)
    home.upulse("daemon", "reload")
    assert home.pid_when_up("demo") == demo
    home.configure(ALLOW)
    assert "Not in the settings any more: demo." in home.upulse("daemon", "reload").err


@pytest.mark.parametrize("has_group", sampled([True, False], 2))
async def test_a_daemon_that_a_guarded_process_of_another_home_starts_outlives_it(
    home: CliHome, tmp_path: Path, has_group: bool
) -> None:
    try:
        folder = home_groups(tmp_path) if has_group else None
    except NoControlGroups as error:
        pytest.skip(str(error))
    life = folder.child("life-1") if folder else None
    join = f"echo $$ >{life.path}/cgroup.procs && " if life else ""
    upulse = f"{sys.executable} -m upulse_cli daemon start --home {home.path}"
    marks = {"PULSE_EFFECT": "it began", "PULSE_PROCESS": f"agent@{tmp_path}"}
    agent = await Spawner().start(
        ["sh", "-c", f"{join}{upulse} && exec sleep 1000"], output=tmp_path / "log", env=marks
    )
    try:
        demo = home.pid_when_up("demo")
        eventually(lambda: command_line(agent.pid) == ["sleep", "1000"], "the command is over")
    except AssertionError as error:
        raise AssertionError(f"{error}; the command said: {(tmp_path / 'log').read_text()}") from error
    finally:
        if life:
            assert life.end(60)
        await end_chosen(in_tree(agent, "PULSE_EFFECT=it began"))
    assert home.status()["daemon"]["state"] == "running"
    os.kill(demo, 0)
    home.upulse("daemon", "stop")
    os.kill(demo, signal.SIGKILL)
    eventually(lambda: start_time_of(demo) is None, "it is dead")
    if folder:
        place = folder.path

        def is_removed() -> (
            bool
        ):  # what has helped the daemon ends when that hangs up: a moment later than it
            end_hosts_left_over(tmp_path)
            return not os.path.exists(place)

        eventually(is_removed, "nothing of its groups is left")


def test_a_killed_daemon_has_died_and_counts_as_stopped_since_its_last_sign_of_life(home: CliHome) -> None:
    home.start_daemon()
    home.pid_when_up("demo")
    pid = home.status()["daemon"]["pid"]
    eventually(lambda: kept_later_than_told(home), "a sample after the last event")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: home.status()["daemon"]["state"] == "stopped", "its end to be seen")
    home.upulse("pause")
    recorded = [event for event in home.upulse("events", "--json").lines if event["actor"] == "pulse"]
    assert recorded[0]["kind"] == "daemon-started"
    daemon = home.status()["daemon"]
    assert daemon["died"]
    assert daemon["since"] == iso(kept_later_than_told(home)) > recorded[-1]["at"]
    assert "daemon    died  last sign of life " in home.upulse("status").out
    assert "it was killed, or the machine went down" in home.upulse("why", "pulse").out
    home.start_daemon()
    (incident,) = [one for one in home.upulse("incidents", "--json").json if one["about"] == "daemon"]
    assert incident["began_after"] == daemon["since"]
    home.upulse("daemon", "stop")
    assert "died" not in home.status()["daemon"]
    home.start_daemon()
    started = home.upulse("events", "--json", "--kind", "daemon-started").lines
    assert ["last_seen" in event["data"] for event in started] == [False, True, False]
    home.upulse("daemon", "stop")


def test_a_daemon_is_started_again_though_a_folder_has_the_name_of_its_log(home: CliHome) -> None:
    home.start_daemon()
    demo = home.pid_when_up("demo")
    os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)
    log = home.path / "daemon.log"
    log.unlink(missing_ok=True)
    log.mkdir()
    words = f"{log} is no plain file; what the daemon says is kept nowhere"
    assert words in home.as_process("daemon", "start").err
    assert home.pid_when_up("demo") == demo


def test_the_log_is_read_again_as_often_as_the_settings_say(home: CliHome) -> None:
    home.configure('[daemon]\nverify_every = "1s"\n')
    home.start_daemon(reads_log=True)

    def times_read() -> int:
        return len(home.upulse("events", "--kind", "log-verified", "--json").lines)

    eventually(lambda: times_read() > 1, "the log to be read once more")


def test_an_incident_that_no_daemon_sees_is_not_told_as_ongoing_now(home: CliHome) -> None:
    home.start_daemon()
    demo, daemon = home.pid_when_up("demo"), home.status()["daemon"]["pid"]
    home.upulse("pause")
    os.kill(demo, signal.SIGKILL)
    eventually(lambda: "held back since" in home.upulse("incidents").out, "the hold")
    said = home.upulse("incidents")
    assert (", ongoing\n" in said.out, said.err) == (True, "")
    os.kill(daemon, signal.SIGSTOP)
    try:
        unheard = f"ongoing ones: the daemon (process {daemon}) does not answer; see: upulse daemon logs\n"
        assert home.upulse("incidents").err.endswith(unheard)
    finally:
        os.kill(daemon, signal.SIGKILL)
    eventually(lambda: home.status()["daemon"]["state"] == "stopped", "its end to be seen")
    said = home.upulse("incidents")
    assert ", ongoing when a daemon last ran\n" in said.out
    assert ("held back since" in said.out, "held back from" in said.out) == (False, True)
    assert said.err.endswith("ongoing ones: no daemon runs; start one with: upulse daemon start\n")
    assert "incident ongoing when a daemon last ran, since" in home.upulse("why", "demo").out


def test_incidents_read_the_same_from_the_checkpoint_of_the_daemon_and_from_the_whole_log(
    home: CliHome,
) -> None:
    home.configure('[daemon]\ncheckpoint_every = "1s"\n', sleeper("demo", 86_396))
    home.start_daemon()
    os.kill(pid := home.pid_when_up("demo"), signal.SIGKILL)
    home.pid_when_up("demo", other_than=pid)
    eventually(lambda: NAME in read_checkpoints(home.path / "state.db"), "a checkpoint of the incidents")
    home.upulse("daemon", "stop")
    told = home.upulse("incidents", "--json").json
    assert [(one["subject"], one["helped"]) for one in told] == [("demo", True)]
    (home.path / "state.db").unlink()
    assert home.upulse("incidents", "--json").json == told


def kept_later_than_told(home: CliHome) -> int:
    """When the daemon kept its newest sample or tick, if that is later than its newest event; else 0."""
    with SqliteVitalsReader(home.path) as vitals, SqliteEventReader(home.path) as log:
        kept = max(
            (
                *(tick.moment.at for tick in vitals.ticks(1)),
                *(one.moment.at for one in vitals.last_samples()),
            ),
            default=0,
        )
        told = next(row.at for row in log.events(newest_first=True) if row.actor == "pulse")
    return kept if kept > told else 0


def test_why_says_what_is_missing_when_vitals_were_deleted(home: CliHome) -> None:
    home.start_daemon()
    home.pid_when_up("demo")
    home.upulse("daemon", "stop")
    for file in home.path.glob("vitals.db*"):
        file.unlink()
    story = home.upulse("why", "demo", "--json").json
    assert story["outcome"]["kind"] == "effect-acked"
    assert [words.split(":")[0] for words in story["missing"]] == [
        "1 of its 1 sample",
        f"the record of tick {story['effect']['tick']}",
    ]
    assert "missing" in home.upulse("why", "demo").out


def test_a_daemon_that_dies_at_its_start_is_quoted(home: CliHome) -> None:
    (home.path / "events.db").write_bytes(b"this was a database once" * 1000)
    said = home.upulse("daemon", "start", code=1)
    assert "the daemon did not start" in said.err
    assert "events.db" in said.err
    (home.path / "events.db").unlink()


@pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="here a unit could be installed")
def test_without_systemd_nothing_is_installed(home: CliHome) -> None:
    assert "use: upulse daemon start" in home.upulse("daemon", "install", code=1).err
