"""Processes by themselves, and processes with each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pulse_core.settings.cross_checks import dependency_cycles, disagreements, overlaps
from pulse_core.settings.probes import is_status_in
from pulse_core.settings.processes import UNLIMITED, ProcessSettings, RestartSettings
from pulse_core.settings.settings import DaemonSettings, Settings

HEALTH = "http://127.0.0.1:80/health"


def process(name: str, *needs: str) -> ProcessSettings:
    return ProcessSettings(name=name, start=("sleep",), depends_on=needs)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"start": ()}, "nothing says how to start it"),
        ({"command": ("x",)}, "start and command are two ways to start"),
        ({"match": "a", "tcp": "a:1"}, "match and tcp are two ways to recognise"),
        ({"start": (), "command": ("x",)}, "to be recognised by"),
        ({"match": "("}, "no regular expression"),
        ({"match": "a(?!b)"}, "uses a lookahead, which RE2 does not support"),
        ({"tcp": "localhost"}, "write host:port"),
        ({"tcp": "localhost:²"}, "write host:port"),
        ({"tcp": "localhost:65536"}, "write host:port"),
        ({"name": "a b"}, "no name"),
        ({"name": "a\n"}, "no name"),
        ({"start": ("",)}, "the program, is empty"),
        ({"start": ("x", "\0")}, "NUL"),
        ({"env": {"A=B": "1"}}, "can't be set"),
        ({"cwd": ""}, "no path"),
        ({"kill": "main", "systemd_unit": "nginx.service", "start": ()}, "say it by KillMode="),
        ({"kill": "all"}, "'tree' or 'main'"),
        ({"stop_signal": "KILL"}, "'TERM', 'INT'"),
        ({"stop_timeout": "11m"}, "stop_timeout"),
        (
            {"stop_timeout": "1m", "systemd_unit": "nginx.service", "start": ()},
            "say stop_timeout in the unit",
        ),
        ({"umask": "28"}, "three octal digits in quotes, as '027'"),
        ({"nice": 20}, "less than or equal to 19"),
        ({"limits": {"nofile": "many"}}, "a number, a size as '2G', or 'unlimited'"),
        ({"limits": {"nofile": -1}}, "a number, a size as '2G', or 'unlimited'"),
        ({"group": "adm", "systemd_unit": "nginx.service", "start": ()}, "say it in the unit"),
        ({"limits": {"as": "1G"}, "command": ("x",), "start": (), "match": "x"}, "say it in what `command`"),
        ({"systemd_unit": "nginx", "start": ()}, "as 'nginx.service'"),
        ({"http": "127.0.0.1:80"}, "no URL; write it in full"),
        ({"http": "http://localhost:80/"}, "'localhost' is a name, which .* write the address"),
        ({"http": "http://u:p@127.0.0.1/"}, "leave them out"),
        ({"http": HEALTH, "exec": ("true",)}, "http and exec are two ways to ask"),
        ({"http": HEALTH, "http_status": "2xx"}, "write them as '200', '200-299'"),
        ({"http": HEALTH, "http_status": "299-200"}, "names no statuses"),
        ({"http": HEALTH, "http_body": "a(?=b)"}, "uses a lookahead"),
        ({"http_body": "ok"}, "there is no http; give its URL too"),
        ({"exec": ("",)}, "the program, is empty"),
        ({"unix": "run/x.sock"}, "no absolute path"),
        ({"unix": "/" + "x" * 107}, "the kernel takes at most 107 bytes"),
        ({"every": "1s"}, "every is about probes, and there is none; give http"),
        ({"match": "a", "start_period": "1s"}, "start_period is about probes"),
        ({"http": HEALTH, "timeout": "0s"}, "greater than 0"),
        ({"http": HEALTH, "evidence": 5, "evidence_of": 3}, r"evidence \(5\) is more than evidence_of \(3\)"),
    ],
)
def test_a_process_that_can_not_work_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ProcessSettings.model_validate({"name": "a", "start": ("sleep",), **wrong})


@pytest.mark.parametrize(
    ("wanted", "status", "fits"),
    [("200-299", 204, True), ("200-299", 302, False), ("200, 302", 302, True), ("200", 201, False)],
)
def test_statuses_are_numbers_and_ranges(wanted: str, status: int, fits: bool) -> None:
    assert is_status_in(wanted, status) is fits


def test_the_strongest_way_to_ask_is_taken() -> None:
    both = ProcessSettings(name="a", command=("x",), tcp="a:1", http=HEALTH)
    assert (both.probe, ProcessSettings(name="a", start=("x",), tcp="a:1").probe) == ("http", "tcp")
    assert process("a").probe is None


def test_limits_are_numbers_sizes_and_unlimited() -> None:
    written = {"nofile": 1024, "as": "2G", "core": "0", "memlock": "unlimited"}
    chosen = ProcessSettings.model_validate({"name": "a", "start": ("x",), "nice": 0, "limits": written})
    assert chosen.attributes == {"nice": 0, "nofile": 1024, "core": 0, "memlock": UNLIMITED, "as": 2 << 30}
    assert process("a").attributes == {}


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="backoff_max is less than backoff"):
        RestartSettings(backoff=2, backoff_max=1)
    with pytest.raises(ValidationError, match=r"min_tick_ms \(500\) is more than tick_ms \(100\)"):
        DaemonSettings(tick_ms=100, min_tick_ms=500)


def test_a_doubled_name_is_told_at_the_second() -> None:
    processes = [process("a"), process("b"), process("a")]
    assert [(fault.place, fault.key) for fault in disagreements(processes)] == [(2, "name")]


def test_a_stranger_is_told_with_the_nearest_name_that_is_not_its_own() -> None:
    (fault,) = disagreements([process("workers", "worker"), process("work")])
    assert (fault.place, fault.text) == (
        0,
        "process 'workers' depends_on unknown 'worker' (did you mean 'work'?)",
    )


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            {"start": ["work", "a"]},
            {"start": ["work", "b"], "match": "work [ab]"},
            {"other": "what one starts"},
        ),
        ({"start": ["work", "a"]}, {"start": ["work", "b"], "match": "work b"}, {}),
        ({"start": ["work"]}, {"start": ["work"]}, {}),
        (
            {"start": ["a"], "match": "work"},
            {"command": ["b"], "match": "work"},
            {"other": "its `match` is that of one"},
        ),
        (
            {"start": ["a"], "tcp": "h:1"},
            {"start": ["b"], "tcp": "h:1"},
            {"other": "its `tcp` is that of one"},
        ),
        ({"systemd_unit": "a.service"}, {"systemd_unit": "a.service", "systemd_user": True}, {}),
    ],
)
def test_two_that_one_process_would_be_are_told(
    one: dict[str, Any], other: dict[str, Any], told: dict[str, str]
) -> None:
    said = overlaps(
        Settings.model_validate({"process": [{"name": "one", **one}, {"name": "other", **other}]}).process
    )
    assert said.keys() == told.keys()
    assert all(words in said[name] for name, words in told.items())


def test_every_circle_is_told_once_with_its_way_round() -> None:
    found = dependency_cycles(
        [process("x", "a"), process("a", "b"), process("b", "c"), process("c", "a"), process("self", "self")]
    )
    assert sorted((fault.place, fault.text) for fault in found) == [
        (1, "depends_on goes in a circle: a -> b -> c -> a"),
        (4, "depends_on goes in a circle: self -> self"),
    ]


def test_a_long_chain_is_no_circle_and_no_recursion() -> None:
    assert dependency_cycles([process(f"p{n}", f"p{n + 1}") for n in range(3000)]) == []


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_a_circle_is_found_exactly_when_following_the_needs_never_ends(edges: list[tuple[int, int]]) -> None:
    needs = {n: {b for a, b in edges if a == n} for n in range(7)}
    reach = {n: set(needs[n]) for n in needs}
    for _ in needs:
        reach = {n: reach[n].union(*(reach[m] for m in reach[n])) for n in reach}
    found = dependency_cycles([process(f"p{n}", *(f"p{m}" for m in sorted(needs[n]))) for n in needs])
    assert bool(found) == any(n in reach[n] for n in reach)


def test_settings_refuse_processes_that_do_not_agree() -> None:
    with pytest.raises(ValidationError, match="goes in a circle"):
        Settings(process=(process("a", "b"), process("b", "a")))


def test_the_digest_names_the_decisions() -> None:
    assert Settings().digest == Settings(process=()).digest
    assert Settings().digest != Settings(process=(process("a"),)).digest
