"""The benchmark beside peers: what it measures with, and what it says of a peer that is not there."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.benchmarks import bench_peers
from tests.benchmarks.bench_peers import beside, kept_alive
from tests.benchmarks.peers import PEERS, Breath, Scene, bare, found


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing is installed but in this directory."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PULSE_PEERS", str(place))
    return place


def words(pid: int) -> str:
    """The command line of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_is_not_installed_is_told_with_how_to_install_it(
    name: str, nowhere: Path, tmp_path: Path
) -> None:
    row = beside(name, tmp_path / name, kills=1, ours=1.0)
    assert row.measured.startswith(f"not measured: {PEERS[name].program} is not installed (")
    assert PEERS[name].package in row.measured


def test_peers_are_looked_for_where_the_environment_says(nowhere: Path) -> None:
    assert found("circusd") is None
    (nowhere / "circusd").touch(mode=0o755)
    assert found("circusd") == str(nowhere / "circusd")


def test_a_peer_that_cannot_be_run_costs_only_its_own_line(nowhere: Path, tmp_path: Path) -> None:
    (nowhere / "supervisord").write_text("no program")
    (nowhere / "supervisord").chmod(0o755)
    assert "not measured: " in beside("supervisord", tmp_path / "peer", kills=1, ours=1.0).measured


def test_every_victim_is_heard_once_and_in_order(tmp_path: Path) -> None:
    with closing(Breath(tmp_path)) as breath:
        breath.path.write_text("12\n3")
        breath.path.write_text("4\n")
        assert (breath.next(), breath.next()) == (12, 34)


def test_a_kill_is_timed_until_the_replacement_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_peers, "REST", (0.0, 0.01))
    seen: list[Scene] = []

    @contextmanager
    def watched(scene: Scene) -> Iterator[None]:
        seen.append(scene)
        with bare(scene):
            yield

    spent = kept_alive(watched, tmp_path / "bare", 3)
    assert len(spent) == 3
    assert all(0 < one < 20_000 for one in spent)
    last = int((seen[0].place / "victim.pid").read_text())
    while words(last):  # it was killed, and is about to go
        time.sleep(0.01)
