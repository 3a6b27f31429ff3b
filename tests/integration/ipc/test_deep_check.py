"""The log is verified by a command of its own; what that says stays readable if it is no answer."""

from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.host.spawner import Spawner
from pulse_core.model.errors import PulseError
from upulse_cli.wiring.daemon import read_log


async def test_what_kept_the_log_from_being_verified_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("INSPECT", "1"), ("IOENCODING", "utf-16"), ("WARNINGS", "always"), ("VERBOSE", "1")):
        monkeypatch.setenv(f"PYTHON{name}", value)  # of whoever started the daemon
    home, spawner = Home(tmp_path / "home"), Spawner()
    with pytest.raises(PulseError) as refused:
        await read_log(home, spawner)
    spawner.close()
    assert str(refused.value).startswith(f"upulse verify said no Pulse home at {home.path}")
