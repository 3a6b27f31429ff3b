"""Checks of every source under a real daemon on loopback: what each one tells, restarts or runs."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.acceptance.test_real_processes import argv, free_port
from tests.dead_mount import dead
from tests.integration.cli.cli_home import CliHome

PAGE = """
import http.server, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if os.path.exists(sys.argv[2]) else 200)
        self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
if os.path.exists(sys.argv[2]):
    os.remove(sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""
QUICK = 'every = "500ms"\n'


def check(name: str, said: str) -> str:
    return f'[[check]]\nname = "{name}"\n{QUICK}{said}\n'


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def events(served: Served, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Subject and data of every event of this kind."""
    with SqliteEventReader(served.home.path) as log:
        return [(row.subject, json.loads(row.data)) for row in log.events(EventQuery(kinds=(kind,)))]


def raised(served: Served) -> set[str]:
    return {subject for subject, _ in events(served, "condition-raised")}


def cleared(served: Served) -> set[str]:
    return {subject for subject, _ in events(served, "condition-cleared")}


def wishes(served: Served) -> list[str]:
    return [data["key"] for _, data in events(served, "effect")]


def test_each_source_is_looked_at_and_answered(served: Served, tmp_path: Path) -> None:
    port, sick, full, log, file = (
        free_port(),
        tmp_path / "sick",
        tmp_path / "full",
        tmp_path / "app.log",
        tmp_path / "file",
    )
    look = script(tmp_path / "look", f"[ ! -e {full} ] || {{ echo it is full; exit 3; }}")
    mend = script(tmp_path / "mend", f"echo mended; rm {full}")
    for path in (log, file):
        path.touch()
    restart = 'restart = { max = 10, backoff = "10ms", grace = "20s" }'
    process = (
        f'[[process]]\nname = "page"\nstart = {argv(sys.executable, "-c", PAGE, port, sick)}\n{restart}\n'
    )
    served.configure(
        process
        + f'[[log]]\npath = "{log}"\nkeywords = ["ERROR"]\n'
        + f'[executors.run-command]\nallow = ["{mend}"]\n'
        + check("full", f'command = ["{look}"]\nthen = "run-command"\nrun = ["{mend}"]\npause = "1s"')
        + check(
            "page", f'http = "http://127.0.0.1:{port}/"\nevidence = 2\nthen = "restart page"\ngrace = "1s"'
        )
        + check("file", f'file = "{file}"\nage_over = "1h"')
        + check("lines", f'log = "{log}"\nlines = 2\nwithin = "2s"')
        + check("ok", 'vital = "checks.full.ok"\nunder = 0\nclear = 0.5')
    )
    served.start()
    first = served.pid_when_up("page")
    names = {"full", "page", "file", "lines", "ok"}
    served.eventually(lambda: served.status()["vitals"].get("checks", {}).keys() == names, "all have looked")
    served.eventually(lambda: served.status()["vitals"]["checks"]["page"].get("ok"), "the page answers")
    served.eventually(
        lambda: "excused" not in served.status()["vitals"]["checks"]["page"], "its grace is over"
    )
    before = len(wishes(served))

    full.touch()
    sick.touch()
    os.utime(file, (0, 0))
    log.write_text("ERROR one\nERROR two\n")
    all_raised = {f"check:{name}" for name in names}
    served.eventually(lambda: raised(served) == all_raised, "all are bad")
    served.eventually(lambda: not full.exists(), "the command has mended it")
    served.pid_when_up("page", other_than=first)
    os.utime(file)
    served.eventually(lambda: cleared(served) == all_raised, "all are well again")

    told = wishes(served)[before:]
    assert told.count("run-command:check:full") == 1
    assert told.count("restart-process:page") == 1
    assert {key for key in told if key.startswith("notify:")} == {
        f"notify:check:{name}" for name in ("file", "lines", "ok")
    }
    evidence = dict(events(served, "condition-raised"))
    assert evidence["check:full"]["evidence"] == f"'{look}' exited with 3: it is full"
    assert evidence["check:page"]["evidence"].endswith(" answers 500; 2 checks in a row failed")
    assert evidence["check:lines"]["evidence"].endswith(": ERROR one (good: under 2)")
    assert served.stop() == 0


def test_a_file_on_a_file_system_that_does_not_answer_holds_up_nothing(
    served: Served, tmp_path: Path
) -> None:
    (place := tmp_path / "mount").mkdir()
    (there := tmp_path / "there").touch()
    with dead(place):
        served.configure(check("dead", f'file = "{place}/x"') + check("there", f'file = "{there}"'))
        served.start()
        served.eventually(
            lambda: served.status()["vitals"].get("checks", {}).keys() == {"dead", "there"}, "both"
        )
        entry = served.status()["vitals"]["checks"]["dead"]
        assert "ok" not in entry
        assert entry["detail"].endswith(f"the file system of {place}/x does not answer")
        there.unlink()
        served.eventually(lambda: raised(served) == {"check:there"}, "the other one looks on")
        assert served.stop() == 0


def test_config_check_says_whose_program_is_not_there_or_may_not_be_run(tmp_path: Path) -> None:
    (home := CliHome(tmp_path / "home")).upulse("init", "--no-engine")
    runs = check("two", 'file = "/x"\nthen = "run-command"\nrun = ["/bin/rm", "/x"]')
    others = check("one", 'command = ["/no/such"]') + check("three", 'file = "/x"')
    (home.path / "config.toml").write_text(others + runs)
    said = home.upulse("config", "check").err
    assert "check one: there is no program '/no/such' that may be executed" in said
    assert "check two: '/bin/rm' may not be run; to allow it, add \"/bin/rm\" to `allow`" in said
    assert "check three" not in said
    (home.path / "config.toml").write_text(runs.replace("/bin/rm", "/bin/sh"))
    assert "write what it is to do into a script" in home.upulse("config", "check").err
    (home.path / "config.toml").write_text(f'[executors.run-command]\nallow = ["/bin/rm"]\n{runs}')
    assert "check two" not in home.upulse("config", "check").err
