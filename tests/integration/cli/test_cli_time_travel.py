"""How it was at a moment: from what was kept of an earlier one where that can be trusted, else from the whole log.

What was kept says here what no log says, so that it shows whether it was used.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.composition import FOLD
from pulse_core.model.event import Checkpoint, Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import TickRecord
from pulse_core.projections.state import Snapshot, State
from pulse_core.tick.ticker import encode_snapshot
from tests.integration.cli.cli_home import CliHome
from tests.long_form import sampled

MINUTE = 60_000_000
Spoil = Callable[[dict[str, Any]], None]


def saying(name: str, seq: int) -> State:
    """Projections at a row that say what no log says."""
    empty = State(seq)
    return replace(empty, control=replace(empty.control, processes=(name,)))


def now() -> int:
    return time.time_ns() // 1000


async def ticked(home: CliHome, number: int, at: int, snapshot: str | None) -> None:
    moment = Moment(at, "boot", number)
    async with SqliteVitals.open(home.path / "vitals.db") as vitals:
        vitals.record(TickRecord(number, moment, "timer", Head(1), (), "", "0", (), (), 1_000, 100, snapshot))


async def kept(home: CliHome, name: str, number: int = 1, spoil: Spoil = lambda whole: None) -> str:
    """A tick of a minute ago whose snapshot was kept."""
    at = now() - MINUTE
    whole = json.loads(
        "".join(encode_snapshot(Snapshot(number, Moment(at, "boot", number), state=saying(name, 1))))
    )
    spoil(whole)
    object_ = await FileObjects(home.path / "objects").put(json.dumps(whole).encode())
    await ticked(home, number, at, object_)
    return object_


def told(home: CliHome, at: str | None = None) -> list[str]:
    return list(home.upulse("state", "control", *(("--at", at) if at else ())).json["processes"])


@pytest.fixture
def paused(quiet: CliHome) -> CliHome:
    """A home with a few rows in its log."""
    for _ in range(3):
        quiet.upulse("pause")
        quiet.upulse("resume")
    return quiet


async def test_the_log_is_folded_from_the_newest_kept_snapshot_on(paused: CliHome) -> None:
    await kept(paused, "older", 1)
    await kept(paused, "newer", 2)
    await ticked(paused, 3, now() - MINUTE // 2, None)
    assert told(paused, "1ms") == ["newer"]


async def test_a_snapshot_of_later_than_that_moment_is_of_no_use(paused: CliHome) -> None:
    await kept(paused, "later")
    assert told(paused, "1ms") == ["later"]
    assert "the log begins after" in paused.upulse("state", "--at", "10m", code=1).err
    first = paused.upulse("events", "--json").lines[0]["at"]
    await kept(paused, "much later", 2, lambda whole: whole.update(seq=5))
    assert told(paused, first) == []


@pytest.mark.parametrize(
    "spoil",
    sampled(
        [
            lambda whole: whole["folds"].update(control=-1),
            lambda whole: whole["folds"].pop("control"),
            lambda whole: whole.pop("folds"),
            lambda whole: whole.update(supposed=2),
            lambda whole: whole["projected"].pop("control"),
            lambda whole: whole["projected"].update(control=7),
        ],
        2,
    ),
    ids=sampled(
        ["other fold", "fold unknown", "no folds", "provisional events", "a part is missing", "no control"], 2
    ),
)
async def test_a_snapshot_that_cannot_be_trusted_is_not_used(paused: CliHome, spoil: Spoil) -> None:
    await kept(paused, "wrong", 1, spoil)
    assert told(paused, "1ms") == []


async def test_a_part_that_cannot_be_trusted_spoils_no_other(paused: CliHome) -> None:
    await kept(paused, "kept", 1, lambda whole: whole["folds"].update(effects=-1))
    assert told(paused, "1ms") == ["kept"]


async def test_an_altered_snapshot_is_not_used(paused: CliHome) -> None:
    name = await kept(paused, "wrong")
    path = FileObjects(paused.path / "objects").path(name)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"wrong", b"WRONG"))
    assert told(paused, "1ms") == []
    path.unlink()
    assert told(paused, "1ms") == []


async def checkpointed(home: CliHome, name: str, seq: int) -> None:
    with SqliteEventReader(home.path) as log:
        head = Head(seq, log.chain_at(seq) or b"")
    state = saying(name, seq)
    parts = {name: Checkpoint(FOLD.versions[name], head, text) for name, text in FOLD.dump(state).items()}
    await SqliteCheckpoints(Home(home.path).state).save(parts)


async def test_a_checkpoint_serves_too_if_it_is_of_an_earlier_row(paused: CliHome) -> None:
    await checkpointed(paused, "checkpoint", 3)
    assert told(paused) == told(paused, "1ms") == ["checkpoint"]
    first = paused.upulse("events", "--json").lines[0]["at"]
    assert told(paused, first) == []


async def test_the_nearer_of_snapshot_and_checkpoint_is_taken(paused: CliHome) -> None:
    await checkpointed(paused, "checkpoint", 3)
    await kept(paused, "snapshot")
    assert told(paused, "1ms") == ["checkpoint"]
    await kept(paused, "nearer", 2, lambda whole: whole.update(seq=4))
    assert told(paused, "1ms") == ["nearer"]
