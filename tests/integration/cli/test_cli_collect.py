"""`collect`: a bundle that says everything, and keeps secrets."""

import json
import os
import tarfile
import time
from pathlib import Path

import pytest

from pulse_adapters.host.bundle import ABANDONED_S, KEPT, remove_old_bundles, write_bundle
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.run_command import Collect
from pulse_core.actions import CollectParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from tests.integration.cli.cli_home import ALLOW, CliHome, sleeper

SECRET = "slack://AAAA1111AA/BBBB2222BB/cccccccccccccccccccccccc"


def unpacked(path: Path) -> dict[str, str]:
    with tarfile.open(path) as bundle:
        files = [(member, bundle.extractfile(member)) for member in bundle.getmembers()]
        return {member.name.removeprefix("pulse/"): file.read().decode() for member, file in files if file}


def test_a_bundle_holds_what_is_known_and_no_secret(tmp_path: Path) -> None:
    home = CliHome(tmp_path / "home")
    home.upulse("init")
    home.configure(sleeper("demo", 86_395), ALLOW, f'[notify]\nurls = ["{SECRET}"]\n')
    home.start_daemon()
    try:
        home.pid_when_up("demo")
        wish = home.upulse("effect", "add", "collect", "--key", "c", "--param", 'why="it is slow"', "--wait")
        shown = home.upulse("effect", "show", wish.out.strip(), "--json").json
        result = shown["events"][-1]["data"]["result"]
        found = unpacked(Path(result["path"]))
    finally:
        home.end_everything()
    assert result["missing"] == []
    assert Path(result["path"]).stat().st_mode & 0o077 == 0
    assert json.loads(found["about.json"])["why"] == "it is slow"
    assert json.loads(found["status.json"])["daemon"]["state"] == "running"
    assert "process-up" in found["events.jsonl"]
    assert "86395" in found["processes.jsonl"]
    assert {"samples.jsonl", "ticks.jsonl", "proc/meminfo", "logs/demo.log"} <= set(found)
    assert SECRET not in "".join(found.values())


def test_a_bundle_is_written_although_a_part_cannot_be_read(tmp_path: Path) -> None:
    home = CliHome(tmp_path / "home")
    home.upulse("init", "--no-engine")
    home.configure("[nonsense]\n")
    from pulse_adapters.config.home import Home
    from upulse_cli.wiring.bundle import parts

    path = tmp_path / "b.tar.gz"
    missing = write_bundle(path, parts(Home(home.path), ""))
    assert [words.split(":")[0] for words in missing] == ["config.toml"]
    assert "events.jsonl" in unpacked(path)


def test_only_the_newest_bundles_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        (tmp_path / f"{number:02}.tar.gz").write_bytes(b"x")
    for name, age in ((".abandoned.unfinished", ABANDONED_S + 60), (".under-way.unfinished", 60)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    remove_old_bundles(tmp_path)
    assert len(list(tmp_path.glob("*.tar.gz"))) == KEPT
    assert [path.name for path in tmp_path.glob(".*")] == [".under-way.unfinished"], "another one writes it"


def test_a_bundle_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").mkdir()
    with pytest.raises(IsADirectoryError):
        write_bundle(tmp_path / "b.tar.gz", [("a", lambda: "text")])
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar.gz"]


async def test_a_bundle_that_cannot_be_written_is_a_failure_in_words(tmp_path: Path) -> None:
    effect = Effect(action="collect", key="c")
    event = Event(1, "id", *SystemClock().now(), "effect", "c", "pulse", "h", None, "")
    with pytest.raises(
        PulseError, match=r"no bundle was written: its process ended with status 1: .*nowhere"
    ):
        await Collect("upulse_cli.nowhere", tmp_path).execute(effect, CollectParams(), event)


async def test_a_disk_that_takes_no_bundle_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "bundles").write_text("no folder")
    effect = Effect(action="collect", key="c")
    event = Event(1, "id", *SystemClock().now(), "effect", "c", "pulse", "h", None, "")
    with pytest.raises(PulseError) as raised:
        await Collect("upulse_cli.wiring.bundle", tmp_path).execute(effect, CollectParams(), event)
    assert str(raised.value) == f"no bundle was written: File exists: {tmp_path / 'bundles'}"
