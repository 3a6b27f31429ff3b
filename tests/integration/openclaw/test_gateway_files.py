"""The files of a gateway: good configs are kept by their hash, a few of them, and put back whole, once."""

import hashlib
import os
from pathlib import Path

import pytest

from pulse_adapters.openclaw.gateway_files import LARGEST, MOST_FILES, GatewayFiles
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.openclaw.settings import OpenClawSettings
from pulse_core.ports.executor import GivenUp


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "openclaw"
    for agent in ("main", "work"):
        (folder / "agents" / agent / "sessions").mkdir(parents=True)
    (folder / "agents/main/sessions/one.jsonl").write_bytes(b"x" * 100)
    return folder


@pytest.fixture
def files(tmp_path: Path, state: Path) -> GatewayFiles:
    gateway = OpenClawSettings(process="gateway", folder=str(state), keep=2)
    return GatewayFiles(HomeLayout(tmp_path / "home"), gateway)


def write(state: Path, text: str) -> str:
    """Replace the config; its hash."""
    (state / "openclaw.json").write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_good_config_is_put_back_and_the_bad_one_stays_beside_it(state: Path, files: GatewayFiles) -> None:
    good = write(state, "{good: 1}")
    (state / "openclaw.json").chmod(0o640)
    files.keep(good)
    bad = write(state, "{bad")
    seen = files.look()
    assert (seen["config"], seen["kept"]) == (bad, [good])
    assert 0 <= seen["age_us"] < 60_000_000
    aside = state / f"openclaw.json.rejected-{bad[:12]}"
    assert files.restore(bad, good) == {"aside": str(aside)}
    assert (state / "openclaw.json").read_text() == "{good: 1}"
    assert (state / "openclaw.json").stat().st_mode & 0o777 == 0o640
    assert aside.read_text() == "{bad"
    assert files.restore(bad, good) == {"already": True}


def test_of_good_configs_the_newest_are_kept_for_the_owner_alone(
    tmp_path: Path, state: Path, files: GatewayFiles
) -> None:
    hashes = []
    for number in range(4):
        hashes.append(write(state, f"{{a: {number}}}"))
        files.keep(hashes[-1])
        os.utime(tmp_path / "home/openclaw/gateway" / hashes[-1], (number, number))
    files.keep(hashes[-1])
    assert files.look()["kept"] == hashes[:1:-1]
    folder = tmp_path / "home/openclaw/gateway"
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    files.keep("0" * 64)  # it was changed since it was looked at
    assert files.look()["kept"] == hashes[:1:-1]


def test_a_config_that_is_gone_is_put_back(state: Path, files: GatewayFiles) -> None:
    good = write(state, "{good: 1}")
    files.keep(good)
    (state / "openclaw.json").unlink()
    assert files.look()["config"] == ""
    assert files.restore("", good) == {"aside": ""}
    assert files.look()["config"] == good


def test_what_was_changed_meanwhile_or_is_damaged_is_left_alone(
    tmp_path: Path, state: Path, files: GatewayFiles
) -> None:
    good = write(state, "{good: 1}")
    files.keep(good)
    bad = write(state, "{bad")
    write(state, "{mended: 1}")
    with pytest.raises(GivenUp, match="was changed meanwhile"):
        files.restore(bad, good)
    bad = write(state, "{bad")
    (tmp_path / "home/openclaw/gateway" / good).write_text("{go")
    with pytest.raises(GivenUp, match="is damaged"):
        files.restore(bad, good)
    with pytest.raises(PulseError, match="can't be put back"):
        files.restore(bad, "0" * 64)
    assert (state / "openclaw.json").read_text() == "{bad"


def test_what_is_no_config_is_not_read(tmp_path: Path, state: Path, files: GatewayFiles) -> None:
    config = state / "openclaw.json"
    config.write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(PulseError, match="more than 1048576 bytes"):
        files.look()
    config.unlink()
    config.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PulseError, match="can't be read"):
        files.look()
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(PulseError, match="it is no plain file"):
        files.look()


def test_sessions_are_counted_up_to_a_bound(state: Path, files: GatewayFiles) -> None:
    write(state, "{}")
    found = files.look()
    assert (found["agents"], found["session_files"], found["session_bytes"]) == (2, 1, 100)
    for number in range(MOST_FILES):
        (state / "agents/main/sessions" / str(number)).touch()
    (state / "agents/main/sessions/deeper").mkdir()
    (state / "agents/main/sessions/deeper/uncounted").touch()
    assert files.look()["session_files"] <= MOST_FILES + 2


def test_a_gateway_that_has_never_run_is_none(tmp_path: Path) -> None:
    for folder in (str(tmp_path / "none"), "~nobody-is-called-that/openclaw"):
        files = GatewayFiles(HomeLayout(tmp_path), OpenClawSettings(process="g", folder=folder))
        with pytest.raises(PulseError, match="can't be read: No such file"):
            files.look()
