"""A large payload is gone or altered: whoever folds the log is stopped, until a person accepts the loss."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_core.model.errors import Damaged
from pulse_core.model.event import Draft
from pulse_core.model.kinds import DamageAccepted, Paused, SettingsLoaded

Open = Callable[..., AbstractAsyncContextManager[SqliteEventLog]]
ACCEPTING = Opening(accept_damage=True)


def large(name: str) -> Draft:
    return Draft(SettingsLoaded(digest=name, processes=tuple(f"process-{n:06}" for n in range(3_000))))


async def datas(log: SqliteEventLog) -> list[str]:
    return [event.data async for batch in log.since(0) for event in batch]


def missing(path: Path) -> str:
    path.unlink()
    return "missing"


def altered(path: Path) -> str:
    path.write_bytes(path.read_bytes() + b" ")
    return "not what was stored under its name"


def unreadable(path: Path) -> str:
    path.unlink()
    path.mkdir()
    return "can't be read (it is no plain file)"


def stored(home: Path) -> list[Path]:
    return [path for path in (home / "objects").rglob("*") if path.is_file()]


@pytest.mark.parametrize("how", [missing, altered, unreadable])
async def test_the_row_the_object_and_what_helps_are_named(
    tmp_path: Path, open_log: Open, how: Callable[[Path], str]
) -> None:
    async with open_log() as log:
        await log.append(Draft(Paused()), large("a"), Draft(Paused()))
    (path,) = stored(tmp_path)
    why = how(path)
    async with open_log() as log:
        with pytest.raises(Damaged) as caught:
            await datas(log)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'events.db'}: the payload of row 2 (settings-loaded) is lost")
    assert f"{path.parent.name}/{path.name}" in said
    assert why in said
    assert "; restore it from a backup, or go on without it: `upulse daemon start --accept-damage`" in said
    assert said.count("restore it") == 1


async def test_an_accepted_loss_reads_as_redacted_and_is_said_each_time(
    tmp_path: Path, open_log: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_log() as log:
        await log.append(large("a"), Draft(Paused()))
    missing(stored(tmp_path)[0])
    async with open_log(how=ACCEPTING) as log:
        assert await datas(log) == ["null", "{}"]
        await log.append(Draft(DamageAccepted(what="row 1", kept_at="damaged/1")))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        async with open_log() as log:
            assert (await datas(log))[:2] == ["null", "{}"]
    assert "the payload of row 1 (settings-loaded) is lost, as was accepted: the object" in caplog.text


async def test_a_loss_after_the_accepted_one_is_refused_again(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        await log.append(large("a"))
    missing(stored(tmp_path)[0])
    async with open_log(how=ACCEPTING) as log:
        await log.append(Draft(DamageAccepted(what="row 1", kept_at="damaged/1")), large("b"))
        missing(stored(tmp_path)[0])
        with pytest.raises(Damaged, match=r"row 3 \(settings-loaded\) is lost"):
            await datas(log)
    async with open_log() as log:
        with pytest.raises(Damaged, match=r"row 3 \(settings-loaded\) is lost"):
            await datas(log)


async def test_a_payload_that_is_put_back_is_read_again(tmp_path: Path, open_log: Open) -> None:
    async with open_log() as log:
        (event,) = await log.append(large("a"))
    (path,) = stored(tmp_path)
    kept = path.read_bytes()
    path.unlink()
    async with open_log(how=ACCEPTING) as log:
        assert await datas(log) == ["null"]
        path.write_bytes(kept)
        assert await datas(log) == [event.data]


async def test_every_lost_payload_is_found_and_readers_see_the_other_rows(
    tmp_path: Path, open_log: Open
) -> None:
    async with open_log() as log:
        await log.append(large("a"), Draft(Paused()), large("b"), large("c"))
    first, second, _ = sorted(stored(tmp_path))
    gone, odd = missing(first), altered(second)
    found = list(lost_payloads(tmp_path / "events.db", tmp_path / "objects"))
    assert {kind for _, kind, _ in found} == {"settings-loaded"}
    assert sorted(why.count(words) for _, _, why in found for words in (gone, odd)) == [0, 0, 1, 1]
    with SqliteEventReader(tmp_path) as reader:
        damaged = {event.seq for event in reader.events() if "$damaged" in event.data}
    assert damaged == {seq for seq, _, _ in found}
    assert len(damaged) == 2
