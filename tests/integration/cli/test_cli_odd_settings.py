"""Settings that no parser takes are told, and a running daemon keeps those that it has."""

import os

import pytest

from tests.integration.cli.cli_home import CliHome
from tests.long_form import sampled

ODD = {
    "digits": "[daemon]\ntick_ms = " + "9" * 5_000,
    "parts of a key": ".".join("a" * 1_000) + " = 1",
    "depth": "a = " + "[" * 300 + "]" * 300,
    "a pipe": "",
}


@pytest.mark.parametrize("odd", sampled(ODD, 2))
def test_a_running_daemon_keeps_its_settings(live: CliHome, odd: str) -> None:
    config, pid = live.path / "config.toml", live.status()["daemon"]["pid"]
    good = config.read_text()
    try:
        config.unlink()
        if odd == "a pipe":
            os.mkfifo(config)
        else:
            config.write_text(ODD[odd])
        said = live.upulse("daemon", "reload", code=1).err
        assert f"{config}:" in said
        assert "Traceback" not in said
    finally:
        config.unlink()
        config.write_text(good)
    assert live.status()["daemon"]["pid"] == pid
    assert [process["state"] for process in live.status()["processes"]] == ["up"]
    live.upulse("daemon", "reload")
