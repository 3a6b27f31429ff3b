"""The command line beside a running daemon."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pulse_adapters.ipc.client import Client
from pulse_core.model.errors import UnknownName
from tests.integration.cli.cli_home import UPULSE, CliHome, eventually, is_id
from tests.processes import child_of_test

ADD = ("effect", "add", "run-command")


def acted(home: CliHome, key: str, program: str = "true") -> str:
    """The id of an effect that was added and is settled."""
    code = 0 if program == "true" else 1
    return home.upulse(*ADD, "--key", key, "--param", f'argv=["{program}"]', "--wait", code=code).out.strip()


def test_status_says_who_runs(live: CliHome) -> None:
    status = live.status()
    assert status["daemon"]["state"] == "running"
    assert (live.path / "run" / "pid").read_text() == f"{status['daemon']['pid']}\n"
    assert status["daemon"]["since"]
    assert status["tick"]["count"] > 0
    text = live.upulse("status").out
    assert f"pid {status['daemon']['pid']}" in text
    assert "demo" in text


def test_status_exits_0_unless_something_is_wrong(live: CliHome) -> None:
    live.pid_when_up("demo")
    live.upulse("status", "--exit-code")
    live.upulse("pause")
    os.kill(live.pid_when_up("demo"), signal.SIGKILL)
    eventually(lambda: live.process("demo")["state"] == "waiting", "its death to be seen")
    live.upulse("status", "--exit-code", "--json", code=4)
    live.upulse("resume")
    pid = live.pid_when_up("demo")
    assert f"demo is up already (process {pid})" in live.upulse("process", "start", "demo").err
    assert "last known" not in live.upulse("process", "list").err


def test_a_process_is_shown_with_its_tree_its_events_and_its_last_lines(live: CliHome) -> None:
    pid = live.pid_when_up("demo")
    (live.path / "logs" / "demo.log").write_text("first\nsecond \x1b[31m\n")
    shown = live.upulse("process", "show", "demo", "--json").json
    assert (shown["state"], shown["pid"], shown["last_known"]) == ("up", pid, None)
    (main,) = shown["tree"]["processes"]
    assert (main["pid"], main["threads"], main["memory"]) == (pid, 1, shown["tree"]["memory"])
    assert main["memory"] > 0 < main["descriptors"]
    assert "process-up" in [event["kind"] for event in shown["events"]]
    text = live.upulse("process", "show", "demo").out
    assert f"process {pid}" in text
    assert "second" in text
    assert live.upulse("process", "logs", "demo", "-n", "1").out.startswith("second ")
    assert "\x1b" not in live.upulse("process", "logs", "demo").out + text


def test_what_a_process_printed_that_is_not_guarded_any_more_is_shown_and_that_said(live: CliHome) -> None:
    kept = live.path / "logs" / "former.log"
    kept.write_text("first\nits last words with token=secretword\n")
    shown = live.upulse("process", "logs", "former", "-n", "1")
    assert shown.out == "its last words with token=***\n"
    assert shown.err == "former is not guarded any more; this is what is kept of what it printed.\n"
    assert "did you mean 'former'" in live.upulse("process", "logs", "formre", code=1).err
    assert "did you mean 'demo'" in live.upulse("process", "logs", "dmo", code=1).err
    assert "no guarded process '../daemon'" in live.upulse("process", "logs", "../daemon", code=1).err
    kept.unlink()
    assert "no guarded process 'former'" in live.upulse("process", "logs", "former", code=1).err


def test_a_projection_is_told_over_the_socket(live: CliHome) -> None:
    with Client(live.path / "run" / "pulse.sock") as client:

        def pid() -> object:
            told = client.ask("state", projection="processes")
            assert (told["projection"], told["seq"] > 0) == ("processes", True)
            return told["value"]["of"]["demo"]["pid"]

        eventually(  # another test may just have killed it
            lambda: pid() == live.upulse("state", "processes").json["of"]["demo"]["pid"],
            "both to be the same",
        )
        with pytest.raises(UnknownName, match=r"no projection 'proceses' .*did you mean 'processes'"):
            client.ask("state", projection="proceses")
        with pytest.raises(UnknownName, match="no projection '' "):
            client.ask("state")


def test_the_watch_screen_is_printed_once_without_a_terminal(live: CliHome) -> None:
    acted(live, "for the screen")
    text = live.upulse("status", "--watch").out
    assert "for the screen" in text
    assert "woken by" in text


def test_an_effect_is_done_and_its_outcome_waited_for(live: CliHome) -> None:
    name = acted(live, "waited")
    assert is_id(name)
    shown = live.upulse("effect", "show", name, "--json").json
    assert (shown["state"], shown["attempts"]) == ("acked", 1)
    assert [event["kind"] for event in shown["events"]] == ["effect", "effect-executing", "effect-acked"]
    assert "acked" in live.upulse("effect", "show", name).out


def test_waiting_for_an_effect_that_fails_exits_1(live: CliHome) -> None:
    name = acted(live, "failing", "false")
    assert live.upulse("effect", "show", name, "--json").json["state"] == "failed"


def test_what_failed_is_retried_with_its_cause(live: CliHome) -> None:
    old = acted(live, "retried", "false")
    new = live.upulse("effect", "retry", old, "--wait", code=1).out.strip()
    shown = live.upulse("effect", "show", new, "--json").json
    assert (shown["cause"], shown["key"], shown["params"]) == (old, "retried", {"argv": ["false"]})
    assert f"follows  effect retried  {old}" in live.upulse("why", new).out


def test_what_was_done_is_done_again_only_by_force(live: CliHome) -> None:
    old = acted(live, "forced")
    assert "give --force" in live.upulse("effect", "retry", old, code=1).err
    assert "nothing to cancel" in live.upulse("effect", "cancel", old, code=1).err
    assert live.upulse("effect", "retry", old, "--force", "--wait").out.strip() != old


def test_an_executing_effect_keeps_its_key_until_it_is_cancelled(live: CliHome) -> None:
    add = (*ADD, "--key", "long", "--param", 'argv=["sleep", "86397"]')
    name = live.upulse(*add).out
    assert live.upulse(*add).out == name
    assert "long" in live.upulse("effect", "list").out
    live.upulse("effect", "cancel", "long", "--why", "enough")
    state = eventually(lambda: settled(live, "long"), "the cancelled effect to settle")
    assert state in ("cancelled", "failed", "unknown")


def settled(home: CliHome, key: str) -> str | None:
    state = home.upulse("effect", "show", key, "--json").json["state"]
    return None if state in ("pending", "executing", "retrying") else str(state)


def test_a_refusal_of_the_daemon_is_its_sentence(live: CliHome) -> None:
    assert "may not be run" in live.upulse(*ADD, "--key", "ls", "--param", 'argv=["ls"]', code=1).err
    assert "did you mean 'demo'?" in live.upulse("process", "stop", "dmo", code=1).err


def test_a_restart_that_a_person_asks_for_is_shown_as_such_by_why(live: CliHome) -> None:
    before = live.pid_when_up("demo")
    assert "Restart requested: demo." in live.upulse("process", "restart", "demo", "--why", "new model").err
    live.pid_when_up("demo", other_than=before)
    story = live.upulse("why", "demo", "--json").json
    assert story["seen"]["kind"] == "process-restart-requested"
    assert "asked for it (new model)" in story["wish"]["data"]["reason"]
    assert story["wish"]["data"]["params"] == {"process": "demo"}
    assert story["wish"]["cause"] == story["seen"]["id"]


def test_a_start_that_a_person_asks_for_is_shown_as_such_by_why(live: CliHome) -> None:
    live.pid_when_up("demo")
    live.upulse("process", "stop", "demo")
    eventually(lambda: live.process("demo")["state"] == "stopped", "the stop")
    live.upulse("process", "start", "demo", "--why", "new model")
    live.pid_when_up("demo")
    story = live.upulse("why", "demo", "--json").json
    assert story["seen"]["kind"] == "process-start-requested"
    assert "demo is to be started: " in story["effect"]["reason"]
    assert "asked for it (new model)" in story["effect"]["reason"]


def test_why_explains_a_restart_from_sample_to_outcome(live: CliHome) -> None:
    before = live.pid_when_up("demo")
    os.kill(before, signal.SIGKILL)
    after = live.pid_when_up("demo", other_than=before)
    story = eventually(lambda: whole(live), "the tick's record to be written")
    assert story["seen"]["kind"] == "process-died"
    assert story["seen"]["data"]["pid"] == before
    assert [sample["key"] for sample in story["samples"]] == ["process-alive"]
    assert story["effect"]["rule"] == "process_watchdog"
    assert story["effect"]["cause"] == story["origin"]["id"] == story["seen"]["id"]
    assert "process_watchdog" in [layer["rule"] for layer in story["tick"]["layers"]]
    assert story["outcome"]["data"]["result"]["pid"] == after
    assert story["followed"]["kind"] == "process-up"
    for last in ("outcome", "followed"):  # on a busy machine a look finds it before its start is acknowledged
        times = [story[part]["ms"] for part in ("seen", "tick", last)]
        assert times == sorted(times)
    text = live.upulse("why", story["effect"]["id"][-8:]).out
    assert all(
        word in text for word in ("sample", "process-died", "process_watchdog added", "acked", "process-up")
    )
    parts = {" sample ": story["samples"][0], " executing ": story["attempts"][0]}
    parts |= {f" {part['kind']} ": part for part in (story["seen"], story["followed"])}
    assert sorted(parts, key=text.rindex) == sorted(parts, key=lambda word: parts[word]["ms"])


def whole(home: CliHome) -> dict | None:  # type: ignore[type-arg]  # JSON
    story = home.upulse("why", "demo", "--json").json
    is_whole = story["tick"] and story["tick"]["snapshot_kept"] and story["samples"] and story["followed"]
    return story if is_whole else None


@contextmanager
def following(home: CliHome, *words: str) -> Iterator["subprocess.Popen[str]"]:
    command = [*UPULSE, "events", "--follow", "--json", *words, "--home", str(home.path)]
    with child_of_test(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_events_are_followed_until_interrupted(live: CliHome) -> None:
    acted(live, "seen before")
    with following(live, "-n", "1", "--kind", "paused", "--kind", "effect") as reader:
        assert reader.stdout is not None
        assert json.loads(reader.stdout.readline())["subject"] == "seen before"  # it is there, now it follows
        live.upulse("pause", "--why", "followed")
        live.upulse("resume")
        assert json.loads(reader.stdout.readline())["data"] == {"why": "followed"}
        reader.send_signal(signal.SIGINT)
        assert reader.wait(60) == 130
        assert reader.stderr is not None
        assert reader.stderr.read() == ""


def test_the_events_of_a_new_effect_are_followed_by_its_key(live: CliHome) -> None:
    acted(live, "before")
    with following(live, "--subject", "subject") as reader:
        assert reader.stdout is not None
        acted(live, "subject")
        kinds = [json.loads(reader.stdout.readline())["kind"] for _ in range(3)]
    assert kinds == ["effect", "effect-executing", "effect-acked"]


def test_who_stops_reading_ends_the_command_quietly(live: CliHome) -> None:
    script = f"{shlex.join((*UPULSE, 'events', '--json', '--home', str(live.path)))} | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["seq"] == 1
    assert done.stderr == ""


def test_a_stopped_process_stays_down_until_it_is_started(live: CliHome) -> None:
    before = live.pid_when_up("demo")
    live.upulse("process", "stop", "demo", "--why", "rest")
    eventually(lambda: live.process("demo")["state"] == "stopped", "demo to be stopped")
    assert "stopped by" in live.upulse("process", "list").out
    live.upulse("process", "start", "demo")
    assert live.pid_when_up("demo", other_than=before)


def test_a_second_daemon_says_who_has_the_home(live: CliHome) -> None:
    pid = live.status()["daemon"]["pid"]
    assert f"is held by process {pid}; stop it first" in live.upulse("daemon", "start", code=1).err
    foreground = live.as_process("daemon", "start", "--foreground", code=1)
    assert f"is held by process {pid}" in foreground.err
    assert live.status()["daemon"]["pid"] == pid


def test_a_reload_answers_with_what_came_of_it(live: CliHome) -> None:
    config = live.path / "config.toml"
    good = config.read_text()
    try:
        config.write_text(f"{good}\n[budget]\nactions_per_minute = 61\n")
        assert "Settings reloaded: 1 process guarded." in live.upulse("daemon", "reload").err
        config.write_text(f"{good}\n[budgt]\n")
        refused = live.upulse("daemon", "reload", code=1)
    finally:
        config.write_text(good)
    assert "did you mean 'budget'?" in refused.err
    assert "The old settings stay in force." in refused.err
    live.upulse("daemon", "reload")


def test_a_reload_says_what_has_a_changed_start_at_its_next_start_and_restarts_it_if_asked(
    live: CliHome,
) -> None:
    config = live.path / "config.toml"
    good, before = config.read_text(), live.pid_when_up("demo")
    try:
        config.write_text(good.replace('name = "demo"', 'name = "demo"\nenv = { LANG = "C" }', 1))
        said = live.upulse("daemon", "reload").err
        assert f"demo: process {before} was started before its `start`" in said
        assert "at its next start: upulse process restart demo" in said
        assert live.pid_when_up("demo") == before
        assert "Restart requested: demo." in live.upulse("daemon", "reload", "--restart").err
        changed = live.pid_when_up("demo", other_than=before)
        assert live.upulse("daemon", "reload", "--restart").err == "Settings reloaded: 1 process guarded.\n"
    finally:
        config.write_text(good)
    live.upulse("daemon", "reload", "--restart")
    live.pid_when_up("demo", other_than=changed)  # the next test is to find none that is about to be ended


def test_a_reload_names_what_is_down_for_now_and_tries_it_at_once_if_asked(live: CliHome) -> None:
    config = live.path / "config.toml"
    good, before = config.read_text(), live.pid_when_up("demo")
    rarely = re.sub("^restart = .*", 'restart = { max = 1, backoff = "5m" }', good, flags=re.MULTILINE)
    try:
        config.write_text(re.sub("^start = .*", 'start = ["false"]', rarely, flags=re.MULTILINE))
        live.upulse("daemon", "reload", "--restart")
        eventually(lambda: live.process("demo")["state"] == "flapping", "its restarts not to help")
        config.write_text(rarely)
        said = live.upulse("daemon", "reload").err
        assert "; next try in " in said
        assert said.endswith("To restart demo now: upulse daemon reload --restart\n")
        assert "Restart requested: demo." in live.upulse("daemon", "reload", "--restart").err
        live.pid_when_up("demo", other_than=before)
    finally:
        config.write_text(good)
    live.upulse("daemon", "reload", "--restart")


def test_the_daemon_tells_its_own_part(live: CliHome) -> None:
    told = live.upulse("daemon", "status", "--json").json
    assert (told["state"], told["unit"]) == ("running", None)
    assert "running" in live.upulse("daemon", "status").out


def test_what_the_daemon_said_is_printed_as_words(live: CliHome) -> None:
    said = live.upulse("daemon", "logs", "-n", "1000").out
    assert "daemon-started" in said
    assert "{" not in said.split("settings-loaded")[0]


def test_the_log_is_verified_beside_the_daemon(live: CliHome) -> None:
    assert live.upulse("verify", "--json").json["fault"] == ""
