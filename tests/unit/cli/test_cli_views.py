"""What people see, drawn from plain values."""

import re
from functools import partial
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from pulse_core.app.series import Point, Series
from pulse_core.model.moment import iso
from pulse_core.model.text import clean, count, one_line
from upulse_cli.commands.effect import parameters
from upulse_cli.commands.vitals import table as vitals_table
from upulse_cli.time_args import local
from upulse_cli.views import explain
from upulse_cli.views.effects import table
from upulse_cli.views.events import line, short
from upulse_cli.views.plot import plot, vital
from upulse_cli.views.process import report
from upulse_cli.views.status import overview
from upulse_cli.views.watch import screen
from upulse_cli.views.why import tree

ID = "01a20053-8ff0-7287-b5fe-00bbb988c3f5"
AT = "2026-01-31T08:15:00.000000Z"


def drawn(what: RenderableType, width: int = 80, height: int = 24) -> str:
    console = Console(file=StringIO(), width=width, height=height, markup=False, highlight=False)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def process(name: str, state: str = "up") -> dict[str, Any]:
    return {"name": name, "state": state, "pid": 7, "since": AT, "restarts": 2, "why": "because " * 30}


def effect(number: int = 0) -> dict[str, Any]:
    return {
        "id": ID, "seq": number, "at": AT, "actor": "root", "cause": None, "action": "run-command",
        "key": f"a-rather-long-key-that-says-a-lot-{number}", "params": {"argv": ["true"]}, "reason": "why " * 40,
        "rule": "", "tick": None, "state": "acked", "attempts": 1, "took_ms": 3.5, "outcome": {},
    }  # fmt: skip


def tick(number: int) -> dict[str, Any]:
    return {"tick": number, "took_us": 900, "woken_by": "process-died, process-up", "effects": ["a" * 90]}


def standing(processes: int, **more: Any) -> dict[str, Any]:
    return {
        "daemon": {"state": "running", "pid": 4711, "since": AT},
        "paused": None,
        "log": {"damage": None},
        "processes": [process(f"p{number}") for number in range(processes)],
        "effects": {"pending": 0, "executing": 0, "acked": 1, "failed": 2, "unknown": 0, "cancelled": 0},
        "tick": {"count": 9, "last_ms": 0.5, "p99_ms": 2.25},
        "vitals": {"system-resource": {"cpu": 0.5, "memory": 0.95, "disks": {"/": {"used": 0.2}, "/x": {"error": "?"}},
                                       "psi": {"cpu": {"some": 0.01}}, "load1": 1.0, "self_rss": 1 << 25}},
        **more,
    }  # fmt: skip


def test_what_is_left_of_earlier_lives_is_shown() -> None:
    one = {**process("p"), "why": "", "leftovers": [77, 78]}
    assert "of earlier lives 77, 78" in drawn(overview({**standing(0), "processes": [one]}))


def test_of_a_stopped_daemon_a_condition_is_told_as_the_last_known_one() -> None:
    hog = {"name": "usage:hog:memory", "state": "high", "since": AT, "evidence": "hog takes 68.5 MiB"}
    for state, words in (("stopped", ": last known: hog takes"), ("running", ": hog takes")):
        daemon = {"state": state, "pid": None, "since": AT}
        assert words in drawn(overview({**standing(0), "daemon": daemon, "conditions": [hog]}))


def test_a_process_is_shown_with_what_it_takes_too_much_of_and_what_holds_back_the_answer() -> None:
    held = {"by": "its own budget of restarts", "since": AT}
    hog = {
        "name": "usage:p:memory",
        "state": "high",
        "since": AT,
        "evidence": "p takes 68.5 MiB",
        "held": held,
    }
    page = {**process("p"), "conditions": [hog], "tree": None, "events": [], "last_lines": []}
    page["held"] = {**held, "or_earlier": True}
    assert "usage:p:memory" in (shown := drawn(report(page), width=200))
    assert "p takes 68.5 MiB (held back since " in shown
    assert " by its own budget of restarts)" in shown
    assert re.search(r"held +back since \S+ .*or earlier \(at least .*\) by its own budget", shown)


def test_whatever_number_somebody_s_watcher_brings_the_others_are_shown_too() -> None:
    numbers = [1.7e308, -1.7e308, *[1.7e308] * 100, 5e-324, 0.0]
    points = [Point(at, number, number, number) for at, number in enumerate(numbers)]
    series = [Series("mine.odd", points), Series("mine.odd.probe.failing", points[:2])]
    assert "mine.odd" in drawn(vitals_table(series, 80))
    assert len(plot(numbers)) == 10


def test_a_plot_of_small_shares_has_a_scale() -> None:
    labels = [
        row.split(" ┤")[0].strip() for row in plot([0.0, 0.02], form=partial(vital, "process-usage.p.cpu"))
    ]
    assert labels[:2] == ["1.8%", "1.6%"]


@pytest.mark.parametrize("kind", ["effect-acked", "effect-attempt-failed", "process-up", "log-matched"])
def test_an_event_without_what_its_kind_says_is_told_all_the_same(kind: str) -> None:
    odd = {"seq": 7, "at": AT, "kind": kind, "subject": "x", "actor": "pulse", "id": ID, "data": {"kex": "y"}}
    assert "kex=y" in line(odd)


@pytest.mark.parametrize("processes", [0, 1, 3, 50])
@pytest.mark.parametrize("paused", [None, {"since": AT, "by": "root", "why": ""}])
def test_the_live_screen_fits_into_80_by_24(processes: int, paused: object) -> None:
    lists = {"recent": [effect(n) for n in range(8)], "ticks": [tick(n) for n in range(8)]}
    lines = drawn(screen(standing(processes, paused=paused, **lists))).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_the_live_screen_shows_what_is_not_up_first() -> None:
    value = standing(50, recent=[], ticks=[])
    value["processes"][49] = process("broken", "flapping")
    assert "broken" in drawn(screen(value))


def test_a_home_without_a_sample_has_a_live_screen() -> None:
    assert "no sample yet" in drawn(screen(standing(1, vitals={}, recent=[], ticks=[])))


def test_the_live_screen_shows_how_cpu_and_memory_went() -> None:
    value = standing(1, recent=[], ticks=[], courses={"cpu": [0.0, 0.5, 1.0], "memory": [0.9, 0.9]})
    assert "cpu 50% ▁" in drawn(screen(value))


def test_the_live_screen_shows_how_load_and_the_only_disk_went() -> None:
    courses = {"cpu": [0.1] * 60, "memory": [0.9] * 60, "load1": [0.0, 1.0], "/": [0.1, 0.2], "/x": [0.3]}
    value = standing(1, recent=[], ticks=[], courses=courses)
    system = value["vitals"]["system-resource"]
    assert "/ 20%  /x -" in drawn(screen(value))
    system["disks"] = {"/": {"used": 0.2}}
    system |= {"swap": 0.0, "load5": 0.75, "load15": 0.5}
    lines = drawn(screen(value)).splitlines()
    (machine,) = (line.rstrip() for line in lines if line.startswith("machine"))
    (pressure,) = (line.rstrip() for line in lines if line.startswith("pressure"))
    assert machine.endswith("/ 20% ▁█")
    assert pressure.endswith("load 1.0 0.75 0.5 ▁█")


def test_what_is_held_back_is_said_once() -> None:
    held = "4 actions held back: 4 a minute over all targets are spent; mine: a"
    lines = drawn(overview(standing(1, held_back=[held])))
    assert "HELD BACK 4 actions: 4 a minute over all targets are spent; mine: a" in lines


def test_a_condition_that_stands_cannot_be_overlooked() -> None:
    one = {"name": "disk:/", "state": "high", "since": AT, "evidence": "95 % in use", "tried": 1}
    value = standing(1, conditions=[one], recent=[], ticks=[])
    for words in (drawn(screen(value)), drawn(overview(value))):
        assert "disk:/ (high) since" in words
        assert "95 % in use" in words


def test_pause_damage_and_faults_cannot_be_overlooked() -> None:
    value = standing(
        1,
        paused={"since": AT, "by": "root", "why": "surgery"},
        log={"damage": "row 7 was altered"},
        settings_faults=("config.toml:3: no",),
        settings_refused=("config.toml:4: unknown",),
    )
    text = drawn(overview(value), width=160)
    assert "by root: surgery; go on with: upulse resume" in text
    assert "DAMAGED LOG row 7 was altered" in text
    assert "settings: config.toml:3: no" in text
    assert "new settings are refused, the old ones stay in force: config.toml:4: unknown" in text


def test_a_stopped_daemon_is_said_to_be_known_only_from_before() -> None:
    value = standing(1, daemon={"state": "stopped", "pid": None, "since": None})
    assert "last known state" in drawn(overview(value))


def test_a_silent_daemon_is_not_said_to_have_been_silent_since_its_start() -> None:
    value = standing(1, daemon={"state": "not-answering", "pid": 7, "since": AT})
    assert "not-answering  pid 7  started " in drawn(overview(value))


def test_what_is_guarded_is_not_known_where_the_settings_cannot_be_read() -> None:
    words = drawn(overview(standing(0, settings_faults=("config.toml:3: no",))), width=160)
    assert "what is guarded is not known" in words
    assert "no process is guarded" not in words


def test_a_log_cannot_steer_the_terminal() -> None:
    assert clean("a\x1b[2Jb\x07\tc\u202e") == "a\\x1b[2Jb\\x07 c\\u202e"


def test_a_line_break_forges_no_row() -> None:
    forged = "why\n00000000  12:00:00  acked"
    assert one_line("a\nb") == "a \u21b5 b"
    assert "\u21b5 00000000" in drawn(table([{**effect(), "reason": forged, "key": "k"}]), width=300)
    value = standing(1)
    value["processes"][0]["why"] = forged
    assert "\u21b5 00000000" in drawn(overview(value), width=300)


def test_square_brackets_in_an_effect_are_no_markup() -> None:
    value = {**effect(), "key": "[red]k[/red]", "state": "acked"}
    story: dict[str, Any] = {
        "effect": value, "origin": None, "samples": [], "seen": None, "tick": None, "attempts": [], "outcome": None,
        "about": None, "followed": None, "missing": ["everything"], "wish": {"ms": 0.0, "actor": "root", "at": AT},
    }  # fmt: skip
    text = drawn(tree(story))
    assert "[red]k[/red]" in text
    assert "missing  everything" in text


def test_what_each_rule_did_stands_in_one_column_however_long_their_names_are() -> None:
    rules = [
        {"rule": name, "outcome": "passed", "took_us": 10, "notes": ()} for name in ("short", "a_rule_" * 4)
    ]
    told = {"at": AT, "tick": 1, "seq": 1, "rules": rules, "effects": (), "next_tick_ms": 5, "caveats": ()}
    told["withheld"] = [{"key": "k", "rule": "mine", "why": "it was told already"}]
    assert "k  by mine: it was told already" in drawn(explain.tree(told))
    columns = [row.index(" passed") for row in drawn(explain.tree(told)).splitlines() if "passed" in row]
    assert len(columns) == 2
    assert len(set(columns)) == 1


def test_an_event_is_one_line_with_the_end_of_ids() -> None:
    event = {"seq": 3, "at": AT, "kind": "effect-acked", "subject": ID, "actor": "pulse",
             "data": {"took_us": 2500, "result": {"pid": 7}}}  # fmt: skip
    assert line(event).endswith("…b988c3f5  after 2.5 ms  pid=7")
    assert short("demo") == "demo"


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("promote", {"previous": "a", "watch_us": 600_000_000, "why": "calm", "projections": {"deaths": "1"}},
         "in force, and watched for 10 min: calm"),
        ("promote", {"previous": "a", "watch_us": 60_000_000, "asked_by": "root"},
         "in force, and watched for 1 min, asked by root"),
        ("engine-loaded", {"rules": ["a", "b"], "took_ms": 521}, "2 rules, loaded in 521 ms"),
        ("engine-loaded", {"rules": ["a"], "instead_of": "0123456789abcdef", "why": "no host", "took_ms": 5},
         "1 rule, loaded in 5 ms, instead of 0123456789ab: no host"),
        ("log-verified", {"rows": 3_000, "took_ms": 5}, "3,000 rows in 5 ms"),
        ("log-verified", {"rows": 3, "took_ms": 5, "fault": "row 2"}, "rows=3 took_ms=5 fault=row 2"),
        ("process-stopped", {"evidence": "unit is inactive", "expires_us": 86_400_000_000},
         "unit is inactive; left alone for 1 day"),
        ("effect-failed", {"error": "'sh' ended with 1: no", "result": {"exit": 1}, "not_startable": False},
         "'sh' ended with 1: no"),
        ("effect-failed", {"error": "b://: no answer", "result": {"sent_to": ["a://", "c://"]}},
         "b://: no answer; sent_to=a://,c://"),
        ("effect-unknown", {"why": "the daemon died while it was executing, and it must not run twice"},
         "the daemon died while it was executing, and it must not run twice"),
        ("effect-cancelled", {"why": "a newer one is wished for", "replaced": True},
         "a newer one is wished for; replaced=true"),
    ],
)  # fmt: skip
def test_what_an_event_holds_is_told_in_words(kind: str, data: dict[str, Any], words: str) -> None:
    event = {"seq": 3, "at": AT, "kind": kind, "subject": "", "actor": "pulse", "data": data}
    assert line(event).endswith(f"{kind:<22}  {words}")


def test_redacted_data_is_said_to_be_redacted() -> None:
    assert "(redacted)" in line(
        {"seq": 3, "at": AT, "kind": "error", "subject": "", "actor": "x", "data": None}
    )


def test_parameters_are_json_or_else_text() -> None:
    assert parameters(['argv=["a", "b=c"]', "cwd=/tmp", "n=3", "empty="]) == {
        "argv": ["a", "b=c"], "cwd": "/tmp", "n": 3, "empty": "",
    }  # fmt: skip


def test_nouns_are_counted() -> None:
    assert [count(1, "process"), count(2, "process"), count(0, "row")] == [
        "1 process",
        "2 processes",
        "0 rows",
    ]


def test_work_that_is_shed_is_not_overlooked() -> None:
    shed = {"level": 1, "measures": ["watchers look less often"], "evidence": "50% of a core"}
    assert "REDUCED OPERATION (level 1): 50% of a core" in drawn(overview(standing(1, shed=shed)), width=200)
    assert "REDUCED OPERATION" not in drawn(overview(standing(1, shed=None)))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("checks.backup.age_s", 5_400.0, "90 min"),
        ("checks.backup.size_bytes", 3 << 30, "3.0 GiB"),
        ("checks.page.latency_ms", 12.0, "12 ms"),
        ("checks.page.status", 503, "503"),
        ("system-resource.load1", 8.113, "8.11"),
        ("process-usage.web.cpu", 0.0034, "0.34%"),
        ("process-usage.web.cpu", 0.984, "98%"),
        ("process-usage.web.cpu", 0, "0%"),
        ("process-alive.db.started", 18_000, "3 min after boot"),
        ("process-alive.started.pid", 18_000, "18000"),
    ],
)
def test_a_sensed_number_has_the_unit_that_its_name_says(name: str, value: float, shown: str) -> None:
    assert vital(name, value) == shown


def test_a_sensed_time_is_told_as_a_time() -> None:
    assert vital("process-alive.web.probe.failing", 1_795_941_119_620_567) == local(
        iso(1_795_941_119_620_567)
    )


def test_a_vital_that_is_not_in_the_newest_sample_is_told_with_its_time() -> None:
    begin = 1_795_941_119_000_000

    def sensed(name: str, *values: float) -> Series:
        return Series(
            name, [Point(begin + at * 1_000_000, value, value, value) for at, value in enumerate(values)]
        )

    of = [sensed("llm.page.failures", 5), sensed("llm.page.ok", 0, 1), sensed("network.streak", 3)]
    shown = [line.split() for line in drawn(vitals_table(of, 120), width=120).splitlines()]
    lasts = {line[0]: line[1:-3] for line in shown if line and line[0].startswith(("llm", "network"))}
    assert lasts["llm.page.ok"] == ["1"]
    assert lasts["network.streak"] == ["3"]
    assert " ".join(lasts["llm.page.failures"]) == f"5 at {local(iso(begin))}"


@pytest.mark.parametrize("width", [60, 85, 120])
def test_names_of_vitals_are_never_broken_nor_are_the_words_of_numbers(width: int) -> None:
    names = [f"process-usage.gateway-of-the-agents.{what}" for what in ("memory", "cpu")]
    points = [Point(at, *[at % 2 + 0.5] * 3) for at in range(40)]
    found = [Series(names[0], points[:20]), Series(names[1], points)]
    text = drawn(vitals_table(found, width), width)
    assert all(word in text for word in (*names, "highest", *local(iso(19)).split()))
    assert ("lowest   50%" in text) == (
        width < 80
    )  # each in lines of its own, where there is too little room


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_ids_and_keys_of_effects_are_never_broken(width: int) -> None:
    text = drawn(table([effect(1), effect(2)]), width)
    for number in (1, 2):
        assert effect(number)["key"] in text
    assert text.count(short(ID)) == 2
    assert "reason" in text
