"""A settings file is loaded, or refused with every fault at once."""

import grp
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.catalogue import Setting, groups, settings_of
from pulse_adapters.config.file import NO_ENGINE, NO_PATTERN, load, load_to_start
from pulse_adapters.config.template import header
from pulse_adapters.config.toml_writer import key, value_as_toml
from pulse_core.model.durations import parse_duration
from pulse_core.model.errors import NoHome, SettingsRefused
from pulse_core.settings.secrets import IN_CLEAR
from pulse_core.settings.settings import Settings

OWN_GROUP = grp.getgrgid(os.getgid()).gr_name
SOMEBODY = next(user.pw_name for user in pwd.getpwall() if user.pw_uid)
OTHERS = """[[process]]
name = "database"
start = ["true"]
[[process]]
name = "litellm"
start = ["true"]
[[process]]
name = "openclaw"
start = ["true"]
[[log]]
unit = "app.service"
keywords = ["other"]
"""
USUAL = {
    "process": ['name = "other"', 'start = ["true"]'],
    "llm": ['url = "http://other/"'],
    "openclaw": ['process = "openclaw"'],
    "log": ['path = "/other"', 'keywords = ["other"]'],
    "agent": ['name = "other"', 'kind = "claude"'],
    "check": ['name = "other"', 'file = "/other"'],
    "silence": ['match = "other"', 'at = "00:00"', 'for = "1h"'],
    "notify_route": ['urls = ["json://other"]'],
    "tasks": ['project = "other"'],
    "resources.sessions": ['root = "/srv/other"'],
}
"""What a group of this path must have."""

INSTEAD = {
    ("process", "command"): ['name = "other"', 'match = "x"'],
    ("process", "systemd_unit"): ['name = "other"'],
    ("llm", "models"): ['url = "http://other"', 'kind = "litellm"'],
    ("process", "systemd_user"): ['name = "other"', 'systemd_unit = "other.service"'],
    **{
        ("process", key): ['name = "other"', 'start = ["true"]', 'http = "http://127.0.0.1:80/"', *more]
        for key, *more in (
            ("http_status",),
            ("http_body",),
            ("every",),
            ("timeout",),
            ("start_period",),
            ("evidence_of", "evidence = 1"),
        )
    },
    **{
        ("check", key): ['name = "other"', *more]
        for key, *more in (
            ("command",),
            ("http",),
            ("http_status", 'http = "http://other/"'),
            ("http_body", 'http = "http://other/"'),
            ("timeout", 'http = "http://other/"'),
            ("log",),
            ("lines", 'log = "app.service"'),
            ("within", 'log = "app.service"'),
            ("vital", "over = 1"),
            ("over", 'vital = "system-resource.load1"'),
            ("under", 'vital = "system-resource.load1"'),
            ("clear", 'vital = "system-resource.load1"', "over = 100"),
            ("grace", 'file = "/other"', 'then = "restart litellm"'),
            ("run", 'file = "/other"', 'then = "run-command"'),
            ("tries", 'file = "/other"', 'then = "run-command"', 'run = ["true"]'),
            ("pause", 'file = "/other"', 'then = "run-command"', 'run = ["true"]'),
        )
    },
    **{("process", key): ['name = "other"', 'start = ["true"]', "cpu_max = 1"] for key in ("for", "then")},
    ("log", "unit"): ['keywords = ["other"]'],
    ("log", "user"): ['unit = "other.service"', 'keywords = ["other"]'],
}
"""What it must have where this key stands beside it."""


def refused(tmp_path: Path, text: str | bytes) -> list[str]:
    """The faults of a file, without its path."""
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsRefused) as caught:
        load(path)
    assert all(fault.startswith(f"{path}:") for fault in caught.value.faults)
    return [fault.removeprefix(f"{path}:") for fault in caught.value.faults]


def test_a_comment_means_the_defaults_and_an_empty_file_is_one_that_was_lost(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("# the defaults\n")
    assert load(tmp_path / "config.toml") == Settings()
    assert "it is empty, as a crash or a full disk leaves a file" in refused(tmp_path, "")[0]


def every_setting() -> list[tuple[str, str]]:
    return [
        (path, setting.key) for path, model in groups() for setting in settings_of(model) if not setting.inner
    ]


def another(setting: Setting) -> Any:
    """A value that is not the default, durations in microseconds."""
    value = setting.default
    match setting.kind:
        case "duration":
            return parse_duration(setting.example) if value is None else value + 1_500_000
        case "whole number":
            return (value or 0) + 1
        case "number":
            return {"raise": 0.95, "clear": 0.05}.get(setting.key, (value or 0) / 2 or 0.5)
        case "true or false":
            return not value
    if setting.key == "group" and value is None:
        return OWN_GROUP
    if setting.key == "user" and value is None:
        return SOMEBODY
    if setting.kind == "text" and setting.choices:
        return next(choice for choice in setting.choices if choice != value)
    return (setting.field.examples or [["/elsewhere"]])[0]


def found(settings: Settings, path: str) -> Any:
    """The group of this path, the last one of many, as a mapping."""
    held: Any = settings.model_dump(by_alias=True, context=dict(IN_CLEAR))
    for part in path.split("."):
        held = held[part]
        held = held[-1] if isinstance(held, tuple) else held
    return held


@pytest.mark.parametrize(("path", "name"), every_setting())
def test_every_setting_can_be_changed(tmp_path: Path, path: str, name: str) -> None:
    setting = next(s for s in settings_of(dict(groups())[path]) if s.key == name)
    value, top = another(setting), path.split(".")[0]
    companions = INSTEAD.get((path, name), USUAL.get(path, []))
    rows = [f"[[{top}]]", *(USUAL[top] if path != top else [])] if header(top).startswith("[[") else []
    rows += [] if rows and path == top else [f"[{path}]"]
    rows += [row for row in companions if not row.startswith(f"{name} = ")]
    (tmp_path / "config.toml").write_text(
        "\n".join([OTHERS, *rows, f"{key(name)} = {value_as_toml(setting, value)}"])
    )
    changed = found(load(tmp_path / "config.toml"), path)[name]
    assert (list(changed) if isinstance(changed, tuple) else changed) == value
    assert changed != setting.default


def test_all_faults_come_at_once_each_with_line_key_and_what_would_work(tmp_path: Path) -> None:
    assert refused(
        tmp_path,
        """[daemon]
tik_ms = 5
tick_ms = "15s"
concurrency = 5000
stop_grace = 10
[watch]
disks = "/"
system_interval = "1ms"
[executors.run_command]
allow = []
[[process]]
name = "gateway"
start = ["x", 5]
match = "("
[[process]]
name = "gateway"
start = ["a"]
depends_on = [
  "gatewy",
]
restart = { backoff = "10m", max_ = 3 }
[[process]]
start = "x"
pid_file = "/a"
tcp = "localhost:1"
""",
    ) == [
        "2: daemon.tik_ms: unknown key 'tik_ms' (did you mean 'tick_ms'?)",
        "3: daemon.tick_ms: expected a whole number (at least 100, at most 3600000), not the string '15s'; "
        "write tick_ms = 15000",
        "4: daemon.concurrency: 5000 is out of bounds: at least 1, at most 1024",
        "5: daemon.stop_grace: 10 has no unit; write it in quotes with one, as '10s' or '10m'",
        "7: watch.disks: expected a list of strings, not the string '/'; write disks = [\"/\"]",
        "8: watch.system_interval: '1ms' is out of bounds: at least 50ms",
        "9: executors.run_command: unknown key 'run_command' (did you mean 'run-command'?)",
        "13: process.gateway.start[2]: expected a string, not the number 5; "
        'write start = ["python3", "-m", "http.server", "18080"]',
        "14: process.gateway.match: '(' is no regular expression: missing ): (",
        "16: process.gateway.name: process 'gateway' is there twice; names must differ",
        "18: process.gateway.depends_on: process 'gateway' depends_on unknown 'gatewy'",
        "21: process.gateway.restart.backoff: backoff_max is less than backoff; "
        "raise backoff_max or lower backoff",
        "21: process.gateway.restart.max_: unknown key 'max_' (did you mean 'max'?)",
        '22: process[3].name: is missing (its name everywhere); write name = "gateway"',
        "23: process[3].start: expected a list of strings, not the string 'x'; "
        'write start = ["python3", "-m", "http.server", "18080"]',
        "24: process[3].pid_file: pid_file and tcp are two ways to recognise one process; keep one of them",
    ]


def test_a_circle_is_told_even_when_another_group_is_faulty(tmp_path: Path) -> None:
    text = '[daemon]\nx = 1\n[[process]]\nname = "a"\nstart = ["a"]\n[[process]]\nname = "b"\nstart = ["b"]\n'
    text = (
        text.replace('["a"]', '["a"]\ndepends_on = ["b"]').replace('["b"]\n[', '["b"]\n[')
        + 'depends_on = ["a"]'
    )
    assert any(
        "6: process.a.depends_on: depends_on goes in a circle: a -> b -> a" in f
        for f in refused(tmp_path, text)
    )


def test_a_typo_is_not_told_twice_as_a_missing_key(tmp_path: Path) -> None:
    assert refused(tmp_path, '[[process]]\nname = "a"\nstrat = ["x"]\n') == [
        "3: process.a.strat: unknown key 'strat' (did you mean 'start'?)"
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[daemon]\ntick_ms 5\n", "2: no valid TOML: Expected '=' after a key in a key/value pair"),
        ("[daemon]\ntick_ms = 500\ntick_ms = 500\n", "3: no valid TOML: this key is there twice"),
        ("[agents]\nassign = true\n\n[agents]\nfailures = 2\n",
         "4: no valid TOML: [agents] is there already, on line 1; put both under one header"),
        ("a = [1,\n2\n", "3: no valid TOML: a list is not closed; a ']' is missing"),
        (b"[daemon]\n# caf\xe9\n", "2: byte 0xe9 is no UTF-8; save it as UTF-8 text"),
        ("a = " + "[" * 100_000, "1: no usable TOML: lists and tables lie more than 8 deep in each other"),
        ("x" * 2_000_000, "1: this has 2000000 bytes; settings have at most 262144"),
        ("process = 5", "1: process: expected tables, each under double brackets, not the number 5; write [[process]]"),
        ("[process]\nname = 'a'", "1: process: expected tables, each under double brackets, not a table; write [[process]]"),
        ("process = [5]", "1: process[1]: expected tables, each under double brackets, not the number 5; write [[process]]"),
        ("daemon = 1979-05-27", "1: daemon: expected a table, not a date or time; write [daemon]"),
        ("[daemon]\nstop_grace = 10:00:00", "2: daemon.stop_grace: expected a duration as a string, not a date or time; "
         'write stop_grace = "10s"'),
        ("[daemon]\ntick_ms = true", "2: daemon.tick_ms: expected a whole number (at least 100, at most 3600000), "
         "not true; write tick_ms = 15000"),
        ("[daemon]\nmin_tick_ms = 400\ntick_ms = 200", "2: daemon.min_tick_ms: min_tick_ms (400) is more than "
         "tick_ms (200); lower it or raise tick_ms"),
    ],
)  # fmt: skip
def test_one_fault_is_said_plainly(tmp_path: Path, text: str | bytes, fault: str) -> None:
    assert refused(tmp_path, text) == [fault]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[socket]\ndirectory = 'run'", "2: socket.directory: 'run' is no absolute path"),
        ("[watch]\ndisks = ['/', '']", "2: watch.disks[2]: '' is no absolute path"),
        ("[watch]\ndisks = ['data']", "2: watch.disks[1]: 'data' is no absolute path"),
        ("[watch]\ndisks = [\"/a\\u0000\"]", "2: watch.disks[1]: '/a\\x00' is no absolute path"),
        ("[executors.run-command]\nallow = ['sh']", "2: executors.run-command.allow[1]: 'sh' is no absolute path; "
         'write the absolute path, as "/usr/local/bin/clean-up"'),
        ("[socket]\ngroup = 'no-such-group'", "2: socket.group: there is no group 'no-such-group' on this machine"),
        (f"[socket]\ngroup = '{OWN_GROUP}x'", f"(did you mean '{OWN_GROUP}'?)"),
        ("[engine]\nuser = 'no-such-user'", "2: engine.user: there is no user 'no-such-user' on this machine"),
        ("[engine]\nuser = 'root'", "2: engine.user: 'root' is root, to whom nothing is closed"),
        ("[[process]]\nname = 'a'\nstart = ['b']\nrestart = { max = -3 }", "-3 is out of bounds: at least 0, at most 1000"),
        ("[[process]]\nname = 'a'\nstart = ['b']\nsystemd_user = true", "4: process.a.systemd_user: "),
    ],
)  # fmt: skip
def test_what_could_never_work_is_a_fault_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    (said,) = refused(tmp_path, text)
    assert fault in said


def test_a_user_that_is_gone_keeps_the_engine_from_running_and_no_daemon_from_starting(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[engine]\nuser = 'no-such-user'\n")
    settings, (fault,) = load_to_start(path)
    assert settings.engine.user == "no-such-user"
    assert fault.endswith(f"; {NO_ENGINE}")


def test_a_group_that_is_gone_keeps_nobody_from_starting_but_any_other_fault_does(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[socket]\ngroup = 'no-such-group'\n[budget]\nactions_per_minute = 7\n")
    settings, faults = load_to_start(path)
    assert (settings.socket.group, settings.budget.actions_per_minute) == ("no-such-group", 7)
    assert [fault.split(": ")[1] for fault in faults] == ["socket.group"]
    path.write_text("[socket]\ngroup = 'no-such-group'\n[budget]\nactions = 7\n")
    with pytest.raises(SettingsRefused) as caught:
        load_to_start(path)
    assert len(caught.value.faults) == 2
    for broken in ("[socket]\ngroup = 7", "[socket", f"[socket]\ngroup = '{OWN_GROUP}'"):
        path.write_text(broken)
        if OWN_GROUP in broken:
            assert load_to_start(path) == (load(path), ())
        else:
            with pytest.raises(SettingsRefused):
                load_to_start(path)


def test_a_pattern_of_an_earlier_version_keeps_no_daemon_from_starting_but_a_broken_one_does(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.toml"
    text = (
        "[[process]]\nname = 'a'\nstart = ['b']\nmatch = 'b(?!c)'\n[[log]]\npath = '/a'\nmatch = ['(x)\\1']\n"
    )
    path.write_text(text)
    settings, faults = load_to_start(path)
    assert settings.process[0].match == "b(?!c)"
    assert [fault.removeprefix(f"{path}:") for fault in faults] == [
        "4: process.a.match: 'b(?!c)' uses a lookahead, which RE2 does not support; write what must be there, "
        f"not what must not; {NO_PATTERN}",
        r"7: log[1].match[1]: '(x)\\1' uses a back-reference, which RE2 does not support; write the repeated text "
        f"twice; {NO_PATTERN}",
    ]
    with pytest.raises(SettingsRefused):
        load(path)
    path.write_text(text + "[resources]\nstop = ['(']\n")
    with pytest.raises(SettingsRefused, match="no regular expression"):
        load_to_start(path)


def test_a_directory_that_holds_the_home_keeps_the_daemon_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[resources]\nclean = ['{tmp_path}']\n")
    with pytest.raises(SettingsRefused, match="holds Pulse's own files"):
        load_to_start(path)


def test_what_is_no_readable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match="this is a directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsRefused, match="no regular file"):
        load(tmp_path / "pipe")
    with pytest.raises(SettingsRefused, match=r"config\.toml:1: there is no such file; 'upulse init'"):
        load(tmp_path / "config.toml")
    with pytest.raises(NoHome, match="upulse init"):
        load(tmp_path / "nowhere" / "config.toml")


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[daemon]\r\ntick_ms = 500\r\n")
    assert load(tmp_path / "config.toml").daemon.tick_ms == 500
