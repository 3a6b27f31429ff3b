"""What the groups of the survival layer refuse, each with its line and what would work."""

from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.file import load
from pulse_core.model.errors import SettingsRefused

LITELLM = '[[process]]\nname = "litellm"\nstart = ["litellm"]\n'


def refused(tmp_path: Path, text: str) -> list[str]:
    """The faults of a file, without its path."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(SettingsRefused) as caught:
        load(path)
    return [fault.removeprefix(f"{path}:") for fault in caught.value.faults]


def test_every_fault_of_every_group_comes_at_once(tmp_path: Path) -> None:
    assert refused(
        tmp_path,
        """[resources]
memory = { rise = 0.9, clear = 1.5, for = 30 }
swap = 0.9
pressure = { raise = 0.2, clear = 0.2 }
clean = ["~/.cache/agent", "cache"]
sessions = { keep = "7 days", archive = "up/../here" }
stop = ["("]
[[resources.disk]]
raise = 0.9
clear = 0.95
[[resources.disk]]
path = "srv"
[network]
dns = ["one.example", "https://two.example"]
http = ["127.0.0.1:18080"]
slow = "10s"
[self]
cpu = true
[[llm]]
url = "http://127.0.0.1:4000/a"
restart = "litelm"
[[llm]]
restart = 5
[[log]]
keywords = ["ERROR", ""]
severity = "Error"
[[log]]
path = "/var/log/a.log"
match = ["(["]
[[silence]]
match = "restart-process:gateway"
days = ["sat", "sunday"]
at = "2:30"
"""
        + LITELLM,
    ) == [
        "2: resources.memory.clear: 1.5 is out of bounds: at least 0, less than 1",
        "2: resources.memory.for: 30 has no unit; write it in quotes with one, as '30s' or '30m'",
        "2: resources.memory.rise: unknown key 'rise' (did you mean 'raise'?)",
        "3: resources.swap: expected a table, not the number 0.9; "
        'write swap = { raise = 0.9, clear = 0.7, for = "5m" }',
        "4: resources.pressure.clear: clear (0.2) is not below raise (0.2); lower clear, so that there is a gap",
        "5: resources.clean[2]: 'cache' is no absolute path; write one from \"/\" or \"~/\" on",
        "6: resources.sessions.archive: 'up/../here' is no absolute path; write one from \"/\" or \"~/\" on",
        "6: resources.sessions.keep: '7 days' is no duration; "
        "write a number and a unit, as '500ms', '10s', '5m', '1h30m', '7d'",
        "6: resources.sessions.root: is missing (directory whose entries are sessions); "
        'write root = "~/.openclaw/sessions"',
        "7: resources.stop[1]: '(' is no regular expression: missing ): (",
        "10: resources.disk[1].clear: clear (0.95) is not below raise (0.9); lower clear, so that there is a gap",
        "12: resources.disk[2].path: 'srv' is no absolute path; "
        'write the absolute path, as "/usr/local/bin/clean-up" or "/srv"',
        "14: network.dns[2]: 'https://two.example' is no host name; write one as 'example.org'",
        "15: network.http[1]: '127.0.0.1:18080' is no URL; write it in full, as 'http://127.0.0.1:18080/'",
        "16: network.slow: slow is longer than timeout; lower slow or raise timeout",
        "18: self.cpu: expected a number (more than 0, at most 64), not true; write cpu = 0.25",
        "21: llm[1].restart: there is no [[process]] 'litelm' (did you mean 'litellm'?)",
        "22: llm[2].url: is missing (URL that answers with 2xx when it is well); "
        'write url = "http://127.0.0.1:4000/health/liveliness"',
        '23: llm[2].restart: expected a string, not the number 5; write restart = "litellm"',
        "24: log[1]: give either path or unit, to say what is followed",
        '25: log[1].keywords[2]: is empty; write keywords = ["ERROR", "Traceback"]',
        "26: log[1].severity: 'Error' is none of 'warning', 'error', 'critical' (did you mean 'error'?)",
        "29: log[2].match[1]: '([' is no regular expression: missing ]: [",
        "30: silence[1].for: is missing (how long it lasts); write for = \"2h\"",
        "32: silence[1].days[2]: 'sunday' is none of 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun' "
        "(did you mean 'sun'?)",
        "33: silence[1].at: '2:30' is no time of day; write it as '02:30'",
    ]  # fmt: skip


def test_a_route_that_asks_for_keys_fits_no_topic(tmp_path: Path) -> None:
    (fault,) = refused(tmp_path, '[[notify_route]]\nurls = ["json://a"]\nmatch = "notify:check:*"')
    assert "notify_route[1].match: 'notify:check:*' fits no topic" in fault


@pytest.mark.parametrize(
    ("group", "row", "fault"),
    [
        ("resources", "memory = { raise = 0.7 }", "memory.raise: clear (0.8) is not below raise (0.7); lower clear"),
        ("resources", "memory = { raise = nan }", "memory.raise: nan is out of bounds: more than 0, at most 1"),
        ("resources", "memory = [{ raise = 0.9 }]", "memory: expected a table, not a list; write memory = { raise = 0.9"),
        ("resources", 'disk = { path = "/", raise = 0.8 }', "disk.raise: clear (0.85) is not below raise (0.8)"),
        ("resources", 'disk = { pth = "/" }', "disk.pth: unknown key 'pth' (did you mean 'path'?)"),
        ("resources", 'disk = { clear = "x" }', "disk.clear: expected a number (less than 1), not the string 'x'"),
        ("resources", 'disk = "/"', "disk: expected a table or a list of tables, not the string '/'; write disk = [{ raise"),
        ("resources", 'disk = [{ path = "/a" }, { path = "/a" }]', "disk: '/a' is there twice; take one out"),
        ("resources", 'clean = ["/"]', "clean[1]: '/' holds far more than what may go; name a directory in it"),
        ("resources", 'clean = ["~/"]', "clean[1]: '~/' holds far more"),
        ("resources", 'clean = ["/usr//."]', "clean[1]: '/usr//.' holds far more"),
        ("resources", 'clean = ["/home/me/"]', "clean[1]: '/home/me/' holds far more"),
        ("resources", 'clean = ["/tmp/../etc"]', "clean[1]: '/tmp/../etc' goes up again; write it without '..'"),
        ("resources", 'stop = ["x*"]', "stop[1]: 'x*' is found in '/usr/lib/systemd/systemd --user', "),
        ("resources", 'sessions = { root = "/" }', "sessions.root: '/' holds far more"),
        ("resources", 'sessions = { root = "/a/b", archive = "/a/b/old" }', "sessions.archive: archive lies in root"),
        ("network", 'http = ["http://a/", "http://a/"]', "http: 'http://a/' is there twice; take one out"),
        ("network", 'http = ["http://a:99999/"]', "http[1]: 'http://a:99999/' is no URL"),
        ("network", 'http = ["http://a /"]', "http[1]: 'http://a /' is no URL"),
        ("network", 'http = ["http://me:secret@a/"]', "http[1]: the URL holds a user or a password"),
        ("network", 'dns = ["a..example"]', "dns[1]: 'a..example' is no host name"),
        ("network", 'resolvers = ["dns.example"]', "resolvers[1]: 'dns.example' is no server; write its IP address"),
        ("network", 'resolvers = ["127.0.0.1#0"]', "resolvers[1]: '127.0.0.1#0' is no server"),
        ("notify", 'urls = ["env:NOT-A-NAME"]', "urls[1]: what follows 'env:' is no variable's name; write it as"),
        ("notify", 'urls = ["$URL"]', "urls[1]: this is no notification URL; write an Apprise URL, 'scheme://…'"),
        ("heartbeat", 'url = "env:"', "url: what follows 'env:' is no variable's name"),
        ("heartbeat", 'url = "slack://a"', "url: this is no URL; write it in full, or 'env:NAME'"),
        ("metrics", 'listen = "9464"', "listen: '9464' is no address; write host:port, as '127.0.0.1:9464'"),
        ("metrics", 'otlp = "127.0.0.1:4318"', "otlp: '127.0.0.1:4318' is no URL"),
        ("metrics", 'textfile = "pulse.prom"', "textfile: 'pulse.prom' is no absolute path"),
        ("metrics", 'textfile = "/etc/passwd"', "textfile: '/etc/passwd' does not end with '.prom'; "),
        ("network", 'timeout = "-1s"', "timeout: "),
        ("network", "timeout = 1", "timeout: 1 has no unit"),
    ],
)  # fmt: skip
def test_what_could_not_work_or_would_do_harm_is_refused(
    tmp_path: Path, group: str, row: str, fault: str
) -> None:
    (said,) = refused(tmp_path, f"[{group}]\n{row}\n")
    assert said.startswith(f"2: {group}.{fault}")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (['path = "/a"', 'unit = "a.service"', 'match = ["x"]'], "2: log[1].path: give either path or unit"),
        (['path = "/a"'], "1: log[1]: nothing is looked for; give keywords or match"),
        (['path = "/a"', 'match = [""]'], "3: log[1].match[1]: is empty; write match"),
        (['path = "a"', 'match = ["x"]'], "2: log[1].path: 'a' is no absolute path"),
        (['path = "/a/"', 'match = ["x"]'], "2: log[1].path: '/a/' is a directory; name the files in it, as '/a/*.log'"),
        (['unit = "a"', 'match = ["x"]'], "2: log[1].unit: 'a' is no unit's name; write it in full"),
        (['path = "/a"', 'match = ["x"]', "user = true"], "4: log[1].user: user says whose the unit is"),
        (['path = "/a"', 'match = ["x"]', "severity = 5"], "4: log[1].severity: expected a string (one of "
         '"warning", "error", "critical"), not the number 5; write severity = "error"'),
    ],
)  # fmt: skip
def test_a_log_says_where_and_what(tmp_path: Path, rows: list[str], fault: str) -> None:
    (said,) = refused(tmp_path, "\n".join(["[[log]]", *rows]))
    assert said.startswith(fault)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('llm = { url = "http://a/" }', "1: llm: expected tables, each under double brackets, not a table; write [[llm]]"),
        ("[[network]]", "1: network: expected a table, not a list; write [network]"),
        ("[executors]\nrun-command = 5", "2: executors.run-command: expected a table, not the number 5; "
         "write [executors.run-command]"),
    ],
)  # fmt: skip
def test_a_table_of_the_wrong_kind_is_told_with_the_right_header(
    tmp_path: Path, text: str, fault: str
) -> None:
    assert refused(tmp_path, text) == [fault]


def llm(**keys: Any) -> str:
    return "\n".join(["[[llm]]", *(f'{key} = "{value}"' for key, value in keys.items()), ""])


def test_an_endpoint_is_there_once_and_so_is_its_process(tmp_path: Path) -> None:
    first = llm(url="http://a/", restart="litellm")
    assert refused(tmp_path, LITELLM + first + llm(url="http://a/")) == [
        "8: llm[2].url: 'http://a/' is there twice; keep one"
    ]
    assert refused(tmp_path, LITELLM + first + llm(url="http://b/", restart="litellm")) == [
        "9: llm[2].restart: 'litellm' is restarted for another [[llm]] already; keep one"
    ]
    assert refused(tmp_path, first) == ["3: llm[1].restart: there is no [[process]] 'litellm'"]


def test_the_process_of_an_endpoint_is_missed_even_where_processes_are_faulty(tmp_path: Path) -> None:
    assert refused(tmp_path, '[[process]]\nstart = 5\n[[process]]\nname = "b"\n' + llm(restart="a")) == [
        '1: process[1].name: is missing (its name everywhere); write name = "gateway"',
        "2: process[1].start: expected a list of strings, not the number 5; "
        'write start = ["python3", "-m", "http.server", "18080"]',
        "3: process.b: nothing says how to start it; give start = [argv…], command = [argv…] or systemd_unit",
        "5: llm[1].url: is missing (URL that answers with 2xx when it is well); "
        'write url = "http://127.0.0.1:4000/health/liveliness"',
        "6: llm[1].restart: there is no [[process]] 'a' (there are: b)",
    ]


@pytest.mark.parametrize("pattern", [".", ".+", "/", "[a-z]", "^", r"\w", " ", "d", "$", "(?i)[A-Z]", "-"])
def test_a_pattern_that_finds_whatever_runs_is_no_choice_of_what_may_be_stopped(
    tmp_path: Path, pattern: str
) -> None:
    (said,) = refused(tmp_path, f"[resources]\nstop = ['{pattern}']\n")
    assert "that is no choice; name what may be stopped" in said


@pytest.mark.parametrize("pattern", ["batch-worker", "^python3 worker", "chrom(e|ium)", "node ", "sh"])
def test_a_pattern_that_names_something_says_what_may_be_stopped(tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[resources]\nstop = ['{pattern}']\n")
    assert load(path).resources.stop == (pattern,)


def test_a_short_timeout_needs_no_word_about_slow(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[network]\ntimeout = "1s"\n')
    assert load(path).network.slow == 1_000_000
    path.write_text('[network]\ntimeout = "10s"\n')
    assert load(path).network.slow == 2_000_000


@pytest.mark.parametrize("place", ["{home}", "{home}/", "{home}/logs", "{home}/..", "{home}/../x", "/{home}"])
def test_in_its_own_home_pulse_deletes_nothing(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    place = place.format(home=home)
    for row in (f'clean = ["{place}"]', f'sessions = {{ root = "{place}" }}'):
        (said,) = refused(home, f"[resources]\n{row}\n")
        assert ("goes up again" if ".." in place else f"holds Pulse's own files ({home})") in said
    (said,) = refused(home, f'[resources]\nclean = ["{tmp_path}"]\n')
    assert said.startswith("2: ")


@pytest.mark.parametrize("place", ["{home}/anchor", "{home}/../home/run/anchor", "{home}", "/{home}/anchor"])
def test_a_file_in_the_home_is_no_anchor_of_it(tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (said,) = refused(home, f'[anchor]\nfile = "{place.format(home=home)}"\n')
    assert f"lies in the home that it is to vouch for ({home}); name a file elsewhere" in said
    (home / "config.toml").write_text(f'[anchor]\nfile = "{home}.anchor"\n')
    assert load(home / "config.toml").anchor.file == f"{home}.anchor"


def test_a_directory_beside_the_home_may_be_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "home" / "config.toml"
    path.parent.mkdir()
    path.write_text(f'[resources]\nclean = ["{tmp_path}/home2"]\n')
    assert load(path).resources.clean == (f"{tmp_path}/home2",)
