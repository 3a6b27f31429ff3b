"""A daemon and a gateway that stands for OpenClaw's: a config that it does not boot with is put back."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.cli_home import CliHome, eventually

GATEWAY = """
import json, signal, sys
with open(sys.argv[1]) as file:
    config = json.load(file)
if config["gateway"]["mode"] != "local":
    sys.exit("Invalid config: gateway.mode")
print("listening", flush=True)
signal.pause()
"""
GOOD, BAD = {"gateway": {"mode": "local"}}, {"gateway": {"mode": "nonsense"}}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    home, folder, script = CliHome(tmp_path / "home"), tmp_path / "openclaw", tmp_path / "gateway.py"
    script.write_text(GATEWAY)
    (folder / "agents" / "main" / "sessions").mkdir(parents=True)
    (folder / "agents" / "main" / "sessions" / "one.jsonl").write_text("{}")
    (folder / "openclaw.json").write_text(json.dumps(GOOD))
    home.upulse("init", "--no-engine")
    start = json.dumps([sys.executable, str(script), str(folder / "openclaw.json")])
    restart = '{ max = 1000, within = "10m", backoff = "200ms", grace = "0s" }'
    home.configure(
        f'[[process]]\nname = "gateway"\nstart = {start}\nrestart = {restart}\n'
        f'[[openclaw]]\nprocess = "gateway"\nfolder = "{folder}"\nproven = "1s"'
    )
    home.start_daemon()
    yield home
    home.end_everything()


def test_a_gateway_that_does_not_boot_with_its_new_config_is_up_again_with_the_last_good_one(
    home: CliHome, tmp_path: Path
) -> None:
    config, kept = tmp_path / "openclaw" / "openclaw.json", home.path / "openclaw" / "gateway"
    first = home.pid_when_up("gateway")
    eventually(lambda: kept.is_dir() and len(list(kept.iterdir())) == 1, "the config to be kept")
    config.write_text(json.dumps(BAD))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: json.loads(config.read_text()) == GOOD, "the good config to be put back")
    assert home.pid_when_up("gateway", other_than=first)
    (rejected,) = config.parent.glob("openclaw.json.rejected-*")
    assert json.loads(rejected.read_text()) == BAD
    assert "Invalid config: gateway.mode" in (home.path / "logs" / "gateway.log").read_text()

    def told() -> bool:
        said = home.upulse("status").out
        return "is good; 1 session file of 1 agent" in said

    eventually(told, "the status to say so")
    (put_back,) = home.upulse(
        "events", "--kind", "effect", "--json", "--subject", "restore-config:gateway"
    ).lines
    assert put_back["data"]["survival"] is True
