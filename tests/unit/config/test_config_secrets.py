"""What is secret in the settings is seen by nobody, and what is shown in its place is not taken for it."""

import tomllib
from pathlib import Path

import pytest

from pulse_adapters.config.catalogue import groups, settings_of
from pulse_adapters.config.file import load
from pulse_adapters.config.toml_writer import settings_as_toml
from pulse_core.model.errors import SettingsRefused
from pulse_core.settings.secrets import MASKED
from pulse_core.settings.settings import Settings

IN_CLEAR = """\
[notify]
urls = ["slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "env:PULSE_NOTIFY_URL"]
[heartbeat]
url = "https://beats.example/T1JJ3T3L2"
[[process]]
name = "gateway"
start = ["gateway", "--token=T1JJ3T3L2", "--api-key", "T1JJ3T3L2", "/srv/***"]
env = { TOKEN = "T1JJ3T3L2" }
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "config.toml").write_text(IN_CLEAR)
    return load(tmp_path / "config.toml")


def test_a_secret_may_be_written_in_clear_and_is_there_for_whoever_uses_it(settings: Settings) -> None:
    assert settings.notify.urls[0].startswith("slack://T1JJ3T3L2/")
    assert settings.heartbeat.url == "https://beats.example/T1JJ3T3L2"
    assert settings.process[0].env == {"TOKEN": "T1JJ3T3L2"}
    assert settings.process[0].start[1] == "--token=T1JJ3T3L2"


def test_a_secret_is_never_written_out(settings: Settings) -> None:
    shown = tomllib.loads(settings_as_toml(settings))
    assert shown["notify"]["urls"] == ["slack://***", "env:PULSE_NOTIFY_URL"]
    assert shown["heartbeat"]["url"] == "https://***"
    assert shown["process"][0]["env"] == {"TOKEN": "***"}
    assert shown["process"][0]["start"] == ["gateway", "--token=***", "--api-key", "***", "/srv/***"]
    assert settings.model_dump(mode="json", by_alias=True)["heartbeat"]["url"] == "https://***"
    assert not [text for text in (repr(settings), settings.model_dump_json()) if "T1JJ3T3L2" in text]


def test_what_is_shown_for_a_secret_is_refused_as_a_setting(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "config.toml").write_text(settings_as_toml(settings))
    with pytest.raises(SettingsRefused) as caught:
        load(tmp_path / "config.toml")
    assert [fault.split(": ", 1)[1] for fault in caught.value.faults] == [
        "notify.urls[1]: 'slack://***' stands for a URL that was hidden; write that, or 'env:NAME'",
        "heartbeat.url: 'https://***' stands for a URL that was hidden; write that, or 'env:NAME'",
        "process.gateway.start: '--token=***' stands for a secret that was hidden; write that",
        "process.gateway.env: '***' stands for a value of TOKEN that was hidden; write that",
    ]


@pytest.mark.parametrize(
    "row",
    [
        '[notify]\nurls = "slack://T1JJ3T3L2"',
        '[notify]\nurls = ["T1JJ3T3L2"]',
        '[notify]\nurls = ["env:slack://T1JJ3T3L2"]',
        '[notify]\nurls = ["slack://T1JJ3T3L2 x"]',
        '[heartbeat]\nurl = ["https://T1JJ3T3L2/"]',
        '[heartbeat]\nurl = "T1JJ3T3L2"',
        '[network]\nhttp = ["http://me:T1JJ3T3L2@host/"]',
        '[[process]]\nname = "a"\nstart = ["a"]\nenv = { TOKEN = "T1JJ3T3L2\\u0000" }',
        '[[process]]\nname = "a"\nstart = ["a"]\nenv = { TOKEN = ["T1JJ3T3L2"] }',
    ],
)
def test_a_fault_does_not_repeat_the_secret(tmp_path: Path, row: str) -> None:
    (tmp_path / "config.toml").write_text(row)
    with pytest.raises(SettingsRefused) as caught:
        load(tmp_path / "config.toml")
    assert len(caught.value.faults) == 1
    assert "T1JJ3T3L2" not in str(caught.value)


def test_the_digest_knows_one_secret_from_another(settings: Settings) -> None:
    other = settings.model_copy(
        update={"notify": settings.notify.model_copy(update={"urls": ("slack://b",)})}
    )
    another = settings.model_copy(
        update={"notify": settings.notify.model_copy(update={"urls": ("slack://c",)})}
    )
    assert settings_as_toml(other) == settings_as_toml(another)
    assert other.digest != another.digest


def test_the_catalogue_knows_what_is_secret() -> None:
    secret = {
        (path, setting.key) for path, model in groups() for setting in settings_of(model) if setting.secret
    }
    assert secret == {
        ("notify", "urls"),
        ("notify_route", "urls"),
        ("heartbeat", "url"),
        ("process", "env"),
        ("agent", "env"),
    }


def test_settings_that_were_written_out_are_read_by_whoever_needs_no_secrets(settings: Settings) -> None:
    text = settings.model_dump_json(by_alias=True)
    read = Settings.model_validate_json(text, context=dict(MASKED))
    assert read.process[0].start[1:4] == ("--token=***", "--api-key", "***")
    assert (read.process[0].env, read.heartbeat.url) == ({"TOKEN": "***"}, "https://***")
    assert read.model_dump_json(by_alias=True) == text
