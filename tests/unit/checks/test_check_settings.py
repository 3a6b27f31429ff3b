"""`[[check]]`: what one looks at, from which number on that is bad, and each fault with what would work."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pulse_adapters.checks import doubts
from pulse_adapters.config.file import load
from pulse_adapters.config.settings_check import validate
from pulse_core.checks.settings import CHECKS, SENSES, CheckSettings, NumberBound
from pulse_core.model.errors import SettingsRefused
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample
from pulse_core.watch.error_log import ErrorLog
from pulse_core.watch.network import Network
from pulse_core.watch.process_alive import ProcessAlive

FILE = {"file": "/var/backups/db.gz"}
LOAD = {"vital": "system-resource.load1"}
TABLES = """
[[process]]
name = "gateway"
start = ["gateway"]
[[log]]
path = "/var/log/app/*.log"
keywords = ["ERROR"]
[[log]]
unit = "app.service"
keywords = ["ERROR"]
[[check]]
name = "it"
"""


def check(**said: Any) -> CheckSettings:
    return CheckSettings.model_validate({"name": "it", **said})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "nothing says what is looked at; give command, http, file, log or vital"),
        ({**FILE, "http": "http://127.0.0.1/"}, "http and file are more than one thing to look at"),
        ({**FILE, "command": ["true"], "log": "x"}, "command and file and log are more than one thing"),
        ({**FILE, "http_status": "200"}, "http_status is about http; give that, or take http_status out"),
        ({"command": ["true"], "age_over": "1h"}, "age_over is about file"),
        ({"command": ["true"], "lines": 3}, "lines is about log"),
        ({**FILE, "over": 3}, "over is about vital"),
        ({**FILE, "timeout": "5s"}, "timeout is about command or http"),
        ({**FILE, "age_over": "1h", "size_over": "1G"}, "age_over and size_over are more than one bound"),
        ({**FILE, "missing": "wanted", "size_over": "1G"}, "must not be there has no size_over"),
        ({**FILE, "size_over": "0"}, "size_over is no bound; write a size as '2G'"),
        ({**FILE, "size_over": "2 G"}, "no size; write a number, or one with a unit, as '2G'"),
        ({**FILE, "missing": "fine"}, "'bad', 'good' or 'wanted'"),
        ({"file": "db.gz"}, "no absolute path"),
        (LOAD, "give either over or under"),
        ({**LOAD, "over": 3, "under": 1}, "give either over or under"),
        ({**LOAD, "over": 3, "clear": 3}, r"clear \(3\) is not below over \(3\); lower it"),
        ({**LOAD, "under": 3, "clear": 2}, r"clear \(2\) is not above under \(3\); raise it"),
        ({**LOAD, "over": float("nan")}, "finite number"),
        ({"vital": "load1", "over": 3}, "write its name as `upulse vitals` does"),
        (
            {**FILE, "then": "reboot"},
            "nothing that may follow; write 'tell', 'restart NAME' or 'run-command'",
        ),
        ({**FILE, "then": "restart"}, "write 'tell', 'restart NAME'"),
        ({**FILE, "then": "run-command"}, r"runs nothing; give run = \[argv…\]"),
        ({**FILE, "run": ["true"]}, "run is about run-command; give that, or take run out"),
        ({**FILE, "pause": "2m"}, "pause is about run-command"),
        (
            {**FILE, "then": "run-command", "run": ["true"], "grace": "2m"},
            "grace is about restart; give that, or take grace out",
        ),
        ({**FILE, "name": "a b"}, "no name"),
        ({**FILE, "every": "100ms"}, "greater than or equal to"),
        ({"log": "x", "lines": 21}, "less than or equal to 20"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_work(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        check(**said)


@pytest.mark.parametrize(
    ("said", "bound"),
    [
        ({"command": ["true"]}, None),
        (FILE, None),
        ({**FILE, "missing": "wanted"}, None),
        ({**FILE, "age_over": "1h"}, NumberBound(3600, 3600)),
        ({**FILE, "age_under": "10s"}, NumberBound(10, 10, True)),
        ({**FILE, "size_over": "2G"}, NumberBound(2 << 30, 0.95 * (2 << 30))),
        ({**FILE, "size_under": "1000"}, NumberBound(1000, 1050, True)),
        ({"log": "x"}, NumberBound(1, 1)),
        ({"log": "x", "lines": 5}, NumberBound(5, 3)),
        ({**LOAD, "over": 16}, NumberBound(16, 15.2)),
        ({**LOAD, "over": 16, "clear": 8}, NumberBound(16, 8)),
        ({**LOAD, "over": 0, "clear": -1}, NumberBound(0, -1)),
        ({**LOAD, "over": -10}, NumberBound(-10, -10.5)),
        ({**LOAD, "under": 1}, NumberBound(1, 1.05, True)),
        ({**LOAD, "under": 0, "clear": 1}, NumberBound(0, 1, True)),
    ],
)
def test_from_which_number_on_it_is_bad_and_well_again(
    said: dict[str, Any], bound: NumberBound | None
) -> None:
    assert check(**said).bound == bound


def test_a_page_must_fail_three_times_in_a_row_and_all_else_once() -> None:
    assert check(http="http://127.0.0.1/").needed == 3
    assert check(**FILE).needed == 1
    assert check(http="http://127.0.0.1/", evidence=2).needed == 2


def test_what_follows_names_a_process_or_runs_a_command() -> None:
    assert (check(**FILE).restart, check(**FILE).runs) == (None, False)
    assert check(**FILE, then="restart gateway").restart == "gateway"
    assert check(**FILE, then="run-command", run=["true"]).runs


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('file = "/x"\nthen = "restart gatway"', "no [[process]] 'gatway' (did you mean 'gateway'?)"),
        ('log = "app.servce"', "no [[log]] with the path or unit 'app.servce' (did you mean 'app.service'?)"),
        ('vital = "system-resorce.memory"\nover = 1', "nothing senses 'system-resorce' (did you mean 'system-resource'?)"),
        ('file = "/x"\n[[check]]\nname = "it"\nfile = "/y"', "check 'it' is there twice; names must differ"),
    ],
)  # fmt: skip
def test_names_of_what_there_is_not_are_told_with_the_nearest_one(
    said: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f"{TABLES}{said}\n")
    with pytest.raises(SettingsRefused) as refused:
        load(tmp_path / "config.toml")
    assert [words in fault for fault in refused.value.faults] == [True]


def test_they_are_told_beside_other_faults(tmp_path: Path) -> None:
    faulty = f'{TABLES}log = "/nowhere"\nthen = "restart gatway"\nevery = "often"\n'
    (tmp_path / "config.toml").write_text(faulty)
    with pytest.raises(SettingsRefused) as refused:
        load(tmp_path / "config.toml")
    told = "\n".join(refused.value.faults)
    assert len(refused.value.faults) == 3
    assert "'often' is no duration" in told
    assert "check.it.log: there is no [[log]]" in told
    assert "check.it.then: there is no [[process]] 'gatway'" in told


@pytest.mark.parametrize(
    "said", ['log = "/var/log/app/*.log"', 'log = "app.service"', 'vital = "gpu.heat"\nunder = 1.5']
)
def test_names_of_what_there_is_are_taken_and_those_of_an_engines_own_senses(said: str) -> None:
    (one,) = CHECKS.of(validate(tomllib.loads(TABLES + said)))
    assert one.name == "it"


def test_the_senses_that_names_are_compared_with_are_there() -> None:
    assert {ErrorLog.key, Network.key, ProcessAlive.key} <= set(SENSES)


def test_a_vital_that_nothing_has_sensed_is_doubtful_once_anything_was() -> None:
    system = Sample(1, "system-resource", Moment(0, "boot", 0), {"memory": 0.5})
    told = {}
    for vital in ("system-resource.memory", "system-resource.memroy", "gpu.heat"):
        settings = validate(tomllib.loads(f'{TABLES}vital = "{vital}"\nover = 1'))
        assert doubts(Path("/"), settings, ()) == {}
        told[vital] = doubts(Path("/"), settings, (system,)).get("check it", "")
    assert told == {
        "system-resource.memory": "",
        "system-resource.memroy": "nothing senses system-resource.memroy (did you mean 'system-resource.memory'?)",
        "gpu.heat": "nothing has sensed gpu.heat yet (there are: system-resource)",
    }


def test_a_vital_of_what_only_these_settings_have_is_not_doubted() -> None:
    system = Sample(1, "system-resource", Moment(0, "boot", 0), {"memory": 0.5})
    looks = Sample(2, "checks", Moment(0, "boot", 0), {"db": {"ok": 1}})
    usage = Sample(3, "process-usage", Moment(0, "boot", 0), {"older": {"memory": 1}})
    told = {}
    for vital in (
        "checks.page.latency_ms",
        "checks.db.latency",
        "process-usage.gateway.memory",
        "checks.no.ok",
    ):
        checks = '[[check]]\nname = "page"\nhttp = "http://127.0.0.1:1/"\n[[check]]\nname = "db"\ncommand = ["true"]\n'
        settings = validate(tomllib.loads(f'{checks}{TABLES}vital = "{vital}"\nover = 1'))
        told[vital] = doubts(Path("/"), settings, (system, looks, usage)).get("check it", "")
    assert {vital: bool(words) for vital, words in told.items()} == {
        "checks.page.latency_ms": False,
        "checks.db.latency": True,
        "process-usage.gateway.memory": False,
        "checks.no.ok": True,
    }
