"""The groups of the survival layer load as they are written, in whole and in part."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.file import load
from pulse_adapters.config.settings_check import validate
from pulse_core.llm.settings import ENDPOINTS
from pulse_core.model.durations import parse_duration
from pulse_core.settings.groups import Bound
from pulse_core.settings.resources import DiskBound
from pulse_core.settings.settings import Settings

WRITTEN = """\
[resources]
memory = { raise = 0.90, clear = 0.80, for = "30s" }
disk   = { path = "/", raise = 0.90, clear = 0.85 }
clean  = ["~/.cache/agent"]
sessions = { root = "~/.openclaw/sessions", keep = "7d" }

[network]
dns  = ["one.example", "two.example"]
http = ["http://127.0.0.1:18080/"]

[[llm]]
url = "http://127.0.0.1:4000/health/liveliness"
restart = "litellm"            # a [[process]] name

[[log]]
path = "/var/log/agent/*.log"
keywords = ["ERROR", "Traceback"]

[notify]
urls = ["env:PULSE_NOTIFY_URL"]
"""
LITELLM = '[[process]]\nname = "litellm"\nstart = ["litellm"]\n'


def bound(raised: float, cleared: float, lasting: str = "0s") -> Bound:
    return Bound(**{"raise": raised, "clear": cleared, "for": parse_duration(lasting)})


def resources(text: str) -> Any:
    return validate(tomllib.loads(f"[resources]\n{text}")).resources


def test_the_settings_of_every_room_load_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(WRITTEN + LITELLM)
    settings = load(tmp_path / "config.toml")
    assert settings.resources.memory == bound(0.9, 0.8, "30s")
    assert settings.resources.disk == (DiskBound(**{"path": "/", "raise": 0.9, "clear": 0.85}),)
    assert settings.resources.clean == ("~/.cache/agent",)
    assert settings.resources.sessions is not None
    assert settings.resources.sessions.root == "~/.openclaw/sessions"
    assert settings.resources.sessions.keep == parse_duration("7d")
    assert settings.network.dns == ("one.example", "two.example")
    assert settings.network.http == ("http://127.0.0.1:18080/",)
    (llm,), (log,) = ENDPOINTS.of(settings), settings.log
    assert (llm.url, llm.restart) == ("http://127.0.0.1:4000/health/liveliness", "litellm")
    assert (log.path, log.keywords) == ("/var/log/agent/*.log", ("ERROR", "Traceback"))
    assert settings.notify.urls == ("env:PULSE_NOTIFY_URL",)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("memory = { raise = 0.95 }", "memory", bound(0.95, 0.8, "30s")),
        ("swap = { raise = 0.75 }", "swap", bound(0.75, 0.7, "5m")),
        ('pressure = { for = "1m" }', "pressure", bound(0.4, 0.1, "1m")),
        ("pressure = {}", "pressure", Settings().resources.pressure),
        ("memory = { raise = 1, clear = 0 }", "memory", bound(1.0, 0.0, "30s")),
    ],
)
def test_a_bound_that_is_written_in_part_keeps_the_rest_of_its_default(
    text: str, key: str, expected: Bound
) -> None:
    assert getattr(resources(text), key) == expected


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", ["/"]),
        ("disk = []", []),
        ('disk = { path = "/srv" }', ["/srv"]),
        ('disk = [{ path = "/" }, { path = "/srv" }]', ["/", "/srv"]),
        ('[resources.disk]\npath = "/srv"', ["/srv"]),
        ('[[resources.disk]]\npath = "/"\n[[resources.disk]]\npath = "/srv"', ["/", "/srv"]),
    ],
)
def test_disks_are_one_table_or_many(text: str, paths: list[str]) -> None:
    assert [disk.path for disk in resources(text).disk] == paths
