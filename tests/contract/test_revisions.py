"""What every repository of an engine promises the daemon: in git, and in memory."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from pulse_adapters.git.git_client import GitClient
from pulse_adapters.memory.engine import MemoryRevisions
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import Revisions
from tests.integration.git.git_scene import made, promoted

STRANGER = "0" * 40


@dataclass
class EngineHistory:
    """Two commits, of which the second one is main."""

    revisions: Revisions
    first: str
    second: str


@pytest.fixture(params=["memory", "git"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> EngineHistory:
    if request.param == "memory":
        memory = MemoryRevisions({"first": (), "second": ()}, "second")
        return EngineHistory(memory, "first", "second")
    repository = made(tmp_path)
    first = repository.head()
    second = promoted(repository)
    return EngineHistory(GitClient(repository.home), first, second)


async def test_main_is_told_and_moves_from_what_was_expected(history: EngineHistory) -> None:
    revisions = history.revisions
    assert await revisions.head() == history.second
    back, _ = await revisions.going_back(history.first, history.second, "it fails")
    assert await revisions.head() == history.second, "nothing moves before it is said"
    await revisions.point_main(back.commit, history.second)
    assert await revisions.head() == back.commit
    await revisions.point_main(back.commit, history.second)  # again, as after a crash
    assert await revisions.head() == back.commit


async def test_main_does_not_move_from_what_was_not_expected(history: EngineHistory) -> None:
    back, _ = await history.revisions.going_back(history.first, history.second, "it fails")
    with pytest.raises(PulseError):
        await history.revisions.point_main(back.commit, history.first)
    assert await history.revisions.head() == history.second


async def test_going_back_makes_another_commit_and_keeps_what_was_rejected(history: EngineHistory) -> None:
    back, branch = await history.revisions.going_back(history.first, history.second, "it fails")
    assert back.commit not in (history.first, history.second)
    assert branch.startswith("rejected/")
    again = await history.revisions.ensure(back.commit)
    assert (again.commit, again.altered) == (back.commit, "")


async def test_a_commit_is_laid_out_once_and_a_stranger_never(history: EngineHistory) -> None:
    one, two = [await history.revisions.ensure(history.first) for _ in range(2)]
    assert one == two
    assert one.commit == history.first
    with pytest.raises(PulseError):
        await history.revisions.ensure(STRANGER)
