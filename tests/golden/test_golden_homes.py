"""A home that an earlier release made starts under this one, with all that it holds in force."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.make_home import HOMES, upulse

RELEASES = sorted(path.stem for path in HOMES.glob("*.json"))


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def kept(release: str) -> dict[str, Any]:
    """What this home must say, as the release that made it wrote it down."""
    loaded: dict[str, Any] = json.loads((HOMES / f"{release}.json").read_text())
    return loaded


@pytest.fixture
def home(release: str, kept: dict[str, Any], tmp_path: Path) -> Iterator[Path]:
    """The home, with a daemon of this release running in it."""
    path = tmp_path / "home"
    with tarfile.open(HOMES / f"{release}.tar.xz") as archive:
        # Debian 12's Python 3.11.2 knows no filter yet; later ones warn without one.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(path, **safely)
    path.chmod(0o700)
    (path / "run").mkdir(mode=0o700)
    upulse(path, "daemon", "start")
    try:
        yield path
    finally:
        upulse(path, "process", "stop", kept["process"])
        upulse(path, "daemon", "stop")


def test_every_event_the_engine_and_the_settings_are_in_force(home: Path, kept: dict[str, Any]) -> None:
    assert upulse(home, "verify").startswith("good: ")
    ids = [json.loads(line)["id"] for line in upulse(home, "events", "--json").splitlines()]
    assert ids[: len(kept["events"])] == kept["events"]

    status = json.loads(upulse(home, "status", "--json"))
    assert {name: status["engine"][name] for name in ("commit", "rules")} == kept["engine"]
    assert [process["name"] for process in status["processes"]] == [kept["process"]]
    upulse(home, "config", "check")  # fails if a setting of that release is none any more
